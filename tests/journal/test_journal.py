"""The journal: recorded results come back, everything else goes live, and nothing is counted twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labcoat.errors import CannotRunHere, Diverged, InputError, RunBusy
from labcoat.journal import RERUNS, Journal, Unrecorded, key_order, read_events


def never() -> Any:
    raise AssertionError("must not go live")


def recorded(folder: Path) -> list[dict[str, Any]]:
    """The events without the first line of each writer."""
    return [e for e in read_events(folder / "events.jsonl") if e["kind"] != "opened"]


def test_a_recorded_result_comes_back_without_going_live(tmp_path: Path) -> None:
    with Journal(tmp_path, write=True) as journal:
        assert journal.perform("/0", "ask", {"q": 1}, lambda: {"a": 2}) == {"a": 2}
    with Journal(tmp_path, write=True) as journal:
        assert journal.perform("/0", "ask", {"q": 1}, never) == {"a": 2}


def test_another_request_under_a_recorded_key_aborts_with_the_key_and_a_diff(tmp_path: Path) -> None:
    with Journal(tmp_path, write=True) as journal:
        journal.perform("/7", "ask", {"question": "old"}, lambda: None)
    before = recorded(tmp_path)
    with Journal(tmp_path, write=True) as journal, pytest.raises(Diverged) as caught:
        journal.perform("/7", "ask", {"question": "new"}, never)
    assert "/7" in str(caught.value)
    assert '- "question": "old"' in str(caught.value)
    assert '+ "question": "new"' in str(caught.value)
    assert recorded(tmp_path) == before


def test_reading_only_never_goes_live_and_writes_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path, write=True) as journal:
        journal.perform("/0", "ask", {}, lambda: 1)
    reader = Journal(tmp_path)
    with pytest.raises(Unrecorded, match="/1 is not recorded"):
        reader.perform("/1", "ask", {}, never)


@pytest.mark.parametrize("torn", [b'{"v": 1, "epo', b'{"v": 1, "epoch": 1}', b"\xff\x00"])
def test_a_torn_last_line_is_tolerated_and_cut_off(tmp_path: Path, torn: bytes) -> None:
    with Journal(tmp_path, write=True) as journal:
        journal.perform("/0", "ask", {}, lambda: 1)
    with (tmp_path / "events.jsonl").open("ab") as stream:
        stream.write(torn)
    assert len(recorded(tmp_path)) == 1
    with Journal(tmp_path, write=True) as journal:
        journal.perform("/1", "ask", {}, lambda: 2)
    assert [e["key"] for e in recorded(tmp_path)] == ["/0", "/1"]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(
        '{"v": 1, "epoch": 1, "key": "", "kind": "x", "state": "note"}\nnonsense\n{}\n'
    )
    with pytest.raises(InputError, match=r"events\.jsonl:2: not an event"):
        Journal(tmp_path)


def test_a_later_format_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"v": 99, "epoch": 1}\n')
    with pytest.raises(InputError, match="later labcoat"):
        Journal(tmp_path)


def test_unknown_kinds_are_kept(tmp_path: Path) -> None:
    with Journal(tmp_path, write=True) as journal:
        journal.perform("/0", "levitate", {"height": 3}, lambda: "done")
    assert recorded(tmp_path)[0]["kind"] == "levitate"


def test_lines_of_an_overtaken_epoch_are_ignored(tmp_path: Path) -> None:
    lines = [{"v": 1, "epoch": e, "key": f"/{n}", "kind": "x", "state": "note"} for n, e in enumerate([1, 2, 1, 2])]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [e["key"] for e in read_events(tmp_path / "events.jsonl")] == ["/0", "/1", "/3"]


def test_each_writer_raises_the_epoch_even_if_the_lock_file_was_removed(tmp_path: Path) -> None:
    for _ in range(3):
        with Journal(tmp_path, write=True) as journal:
            journal.note("x", None)
        (tmp_path / "lock").unlink()
    assert [e["epoch"] for e in recorded(tmp_path)] == [1, 2, 3]


def test_a_second_writer_is_told_who_works(tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from labcoat.journal import Journal
journal = Journal(Path({str(tmp_path)!r}), write=True)
print("held", flush=True); input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout and other.stdout.readline() == "held\n"
        with pytest.raises(RunBusy, match=f"process {other.pid} on"):
            Journal(tmp_path, write=True)
        assert [e["kind"] for e in Journal(tmp_path).events] == ["opened"]  # reading is always possible
        other.kill()
    Journal(tmp_path, write=True).close()  # a dead holder leaves nothing behind


def test_a_lock_of_another_host_is_left_to_a_person(tmp_path: Path) -> None:
    held = {"host": "elsewhere", "pid": 7, "boot_id": "x", "epoch": 4, "held": True}
    (tmp_path / "lock").write_text(json.dumps(held))
    with pytest.raises(RunBusy, match="process 7 on elsewhere"):
        Journal(tmp_path, write=True)
    (tmp_path / "lock").write_text(json.dumps(held | {"held": False}))
    with Journal(tmp_path, write=True) as journal:
        journal.note("x", None)
        assert journal.events[0]["epoch"] == 5


def begin_and_die(folder: Path) -> None:
    """Leave a `started` behind, as a killed process does."""
    with Journal(folder, write=True) as journal:
        journal._append({"key": "/0", "kind": "trial", "state": "started", "hash": "x"})


def test_a_begun_effect_runs_again_a_few_times_then_is_recorded_as_lost(tmp_path: Path) -> None:
    for _ in range(RERUNS):
        begin_and_die(tmp_path)
    with Journal(tmp_path, write=True) as journal:
        assert journal._begun["/0"] == RERUNS
    begin_and_die(tmp_path)
    with Journal(tmp_path, write=True) as journal:
        assert journal.perform("/0", "trial", {}, never, lost=lambda: "crash") == "crash"


def test_after_the_last_rerun_a_result_still_counts(tmp_path: Path) -> None:
    for _ in range(RERUNS):
        begin_and_die(tmp_path)
    with Journal(tmp_path, write=True) as journal:
        assert journal.perform("/0", "trial", {}, lambda: "ok", lost=never) == "ok"


def test_an_interruption_of_ours_is_not_held_against_the_candidate(tmp_path: Path) -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    for _ in range(RERUNS + 3):
        with Journal(tmp_path, write=True) as journal, pytest.raises(KeyboardInterrupt):
            journal.perform("/0", "trial", {}, interrupted, lost=never)
    with Journal(tmp_path, write=True) as journal:
        assert journal.perform("/0", "trial", {}, lambda: 1, lost=never) == 1


def test_contents_are_stored_once_and_checked_when_read(tmp_path: Path) -> None:
    with Journal(tmp_path, write=True) as journal:
        sha = journal.blobs.put("a text")
        assert journal.blobs.put(b"a text") == sha
        journal.note("x", sha)
    with Journal(tmp_path, write=True) as journal:
        assert journal.blobs.put("a text") == sha
        assert journal.blobs.text(sha) == "a text"
    assert (tmp_path / "blobs").read_bytes() == b"a text"
    (tmp_path / "blobs").write_bytes(b"b text")
    with pytest.raises(Diverged, match="was changed"):
        Journal(tmp_path).blobs.get(sha)


def test_contents_of_a_dead_writer_are_no_obstacle(tmp_path: Path) -> None:
    with Journal(tmp_path, write=True) as journal:
        journal.blobs.put("named by no event")
    with Journal(tmp_path, write=True) as journal:
        sha = journal.blobs.put("another")
        journal.note("x", sha)
    assert Journal(tmp_path).blobs.text(sha) == "another"


def test_a_failing_observer_is_reported_and_switched_off(tmp_path: Path) -> None:
    seen: list[str] = []

    def broken(event: dict[str, Any]) -> None:
        raise RuntimeError("no display")

    with Journal(tmp_path, write=True, observers=[broken, lambda e: seen.append(e["kind"])]) as journal:
        journal.note("one", None)
        journal.note("two", None)
    failures = [e["result"] for e in Journal(tmp_path).events if e["kind"] == "observer_failed"]
    assert len(failures) == 1
    assert failures[0]["error"] == "RuntimeError: no display"
    assert "broken" in failures[0]["observer"]
    assert "two" in seen


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "blobs").symlink_to("/dev/full")
    with Journal(tmp_path, write=True) as journal, pytest.raises(CannotRunHere, match="free some space"):
        journal.blobs.put("x")


def test_a_write_that_stops_half_way_leaves_no_half_line(tmp_path: Path) -> None:
    script = f"""
import resource
from pathlib import Path
from labcoat.errors import CannotRunHere
from labcoat.journal import Journal
with Journal(Path({str(tmp_path)!r}), write=True) as journal:
    journal.note("x", None)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    try:
        journal.note("y", "long " * 1000)
    except CannotRunHere as error:
        assert "events.jsonl" in str(error)
        print("told")
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == "told\n"
    assert [e["kind"] for e in recorded(tmp_path)] == ["x"]
    assert (tmp_path / "events.jsonl").read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    ("cost", "synced"),
    [(0.01, True), (0.0, False), (None, True)],
)
def test_what_cost_money_is_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost: float | None, synced: bool
) -> None:
    forced: list[int] = []
    monkeypatch.setattr("os.fsync", forced.append)
    with Journal(tmp_path, write=True) as journal:
        journal.perform("/0", "ask", {}, lambda: {"reply": {"cost": cost}})
    assert bool(forced) == synced


def test_contents_reach_the_disk_before_the_event_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(tmp_path, write=True) as journal:
        order: list[str] = []
        names = {os.stat(tmp_path / name).st_ino: name for name in ("events.jsonl",)}

        def forced(descriptor: int) -> None:
            order.append(names.get(os.fstat(descriptor).st_ino, "blobs"))

        monkeypatch.setattr("os.fsync", forced)

        def paid() -> Any:
            return {"reply": {"cost": 0.5, "text": journal.blobs.put("an answer")}}

        journal.perform("/0", "ask", {}, paid)
    assert order == ["blobs", "events.jsonl"]


def test_after_a_power_cut_events_without_their_contents_run_again(tmp_path: Path) -> None:
    with Journal(tmp_path, write=True) as journal:
        for number in range(3):
            journal.perform(f"/{number}", "ask", {}, lambda n=number: journal.blobs.put(f"answer {n}"))  # type: ignore[misc]
    os.truncate(tmp_path / "blobs", len("answer 0answer 1"))
    with Journal(tmp_path, write=True) as journal:
        assert journal.finished("/1") and not journal.finished("/2")
        assert journal.perform("/2", "ask", {}, lambda: journal.blobs.put("answer 2"))
    assert Journal(tmp_path).blobs.verify() == 3


def test_lines_that_an_overtaken_writer_still_adds_are_void(tmp_path: Path) -> None:
    first = Journal(tmp_path, write=True)
    first.perform("/0", "ask", {}, lambda: "first")
    (tmp_path / "lock").unlink()  # by hand: nobody should, somebody will
    second = Journal(tmp_path, write=True)
    first.perform("/1", "ask", {}, lambda: "late")
    second.perform("/1", "ask", {}, lambda: "second")
    assert [e["result"] for e in recorded(tmp_path)] == ["first", "second"]
    first.close()
    second.close()


def test_what_goes_on_live_is_what_a_resume_will_see(tmp_path: Path) -> None:
    with Journal(tmp_path, write=True) as journal:
        live = journal.perform("/0", "ask", {}, lambda: {"parsed": {1: (2, 3)}, "text": "\ud800"})
    with Journal(tmp_path, write=True) as journal:
        assert journal.perform("/0", "ask", {}, never) == live == {"parsed": {"1": [2, 3]}, "text": "?"}


def test_a_missing_event_is_not_made_up_for_behind_later_ones(tmp_path: Path) -> None:
    with Journal(tmp_path, write=True) as journal:
        for number in range(3):
            journal.perform(f"/{number}", "ask", {}, lambda: None)
    lines = (tmp_path / "events.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "events.jsonl").write_text("".join(line for line in lines if '"/1"' not in line))
    with Journal(tmp_path, write=True) as journal, pytest.raises(Diverged, match="/1 is missing"):
        journal.perform("/1", "ask", {}, never)


def test_keys_sort_by_number_and_batches_stand_where_they_began() -> None:
    keys = ["/10", "/2", "/9.1/0", "/9.0/0", "/9.0/11", "/9.0/2", "/9"]
    assert sorted(keys, key=key_order) == ["/2", "/9", "/9.0/0", "/9.0/2", "/9.0/11", "/9.1/0", "/10"]
