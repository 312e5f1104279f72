"""From run folders to the table of runs: what is read, what is kept, and that what is kept is never trusted blindly."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labcoat import catalog
from labcoat.bench.outcome import Measure, Outcome
from labcoat.budget import Limits
from labcoat.embedding import PORTION, Embedder
from labcoat.embedding.cache import Cache, Rows
from labcoat.embedding.tokens import HashedTokens
from labcoat.embedding.windows import Pool, Windowed
from labcoat.errors import InputError, Stopped
from labcoat.history import History
from labcoat.manifest import Manifest, Measured, References
from labcoat.report import facts as reading
from labcoat.report.counting import Count
from labcoat.report.gather import Gathered, find, gather
from labcoat.report.index import Index
from labcoat.scoring.process import score

Simulate = Callable[..., History]


@contextlib.contextmanager
def silent(what: str, total: int) -> Iterator[Count]:
    yield lambda done=1, more=0: None


class Counting(HashedTokens):
    """The offline embedder, counting what it is asked for; it may be interrupted."""

    def __init__(self, most: int = 10**9) -> None:
        self.asked: list[int] = []
        self.most = most

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if len(self.asked) == self.most:
            raise KeyboardInterrupt
        self.asked.append(len(texts))
        return super().embed(texts)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


def read(place: Path, index: Path | None = None, embedder: Embedder | None = None) -> Gathered:
    with Index(index) as kept:
        return gather(find([place]), embedder, kept, silent)


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that were read from their journals, as it goes on."""
    found: list[str] = []
    real = reading.facts

    def facts(folder: Path) -> Any:
        found.append(folder.name)
        return real(folder)

    monkeypatch.setattr(reading, "facts", facts)
    return found


def test_a_run_is_what_its_history_says(simulate: Simulate) -> None:
    history = simulate("autoresearch", task="sim/fragile", steps=20, seed=3)
    (run,) = read(history.folder).runs
    assert run.spec == history.spec and run.metric == history.metric and run.seed == 3
    assert [trial.valid for trial in run.trials] == [step.value("score") for step in history.trials]
    assert [trial.status for trial in run.trials] == [step.outcome.status for step in history.trials]
    assert {trial.status for trial in run.trials} == {"ok", "crash"}
    assert history.chosen and history.best and run.chosen == history.chosen.number == history.best.number
    test, baseline = history.test_outcome(), history.test_outcome("test/baseline")
    assert test and run.test and run.test.value == test.mean("score")
    assert baseline and run.test_baseline and run.test_baseline.value == baseline.mean("score")
    assert run.finished and run.marks == ("simulated",) and 0 < run.seconds < 60


def test_a_stopped_run_is_read_as_far_as_it_went(simulate: Simulate, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        simulate("autoresearch", steps=9, limits=Limits(calls=4))
    (run,) = read(tmp_path).runs
    assert not run.finished and run.test is None and run.chosen is None and len(run.trials) == 2
    assert score(run, None, "paper").notes == ("not finished: 2 of 9 steps", "no test")


def test_runs_are_found_once_however_they_are_named(simulate: Simulate, tmp_path: Path) -> None:
    folder = simulate("random", steps=2).folder
    simulate("random", steps=2, seed=1)
    assert len(find([tmp_path, folder, folder.parent / ".." / folder.parent.name])) == 2
    with pytest.raises(InputError, match="no run there"):
        find([tmp_path / "nothing"])


def test_a_copy_is_left_out_and_a_folder_that_is_broken_too(simulate: Simulate, tmp_path: Path) -> None:
    folder = simulate("random", steps=2).folder
    shutil.copytree(folder, tmp_path / "z/copy")
    shutil.copytree(folder, tmp_path / "z/broken")
    (tmp_path / "z/broken/events.jsonl").write_text("no event\n")
    found = read(tmp_path)
    assert [Path(run.folder) for run in found.runs] == [folder]
    broken, copy = found.left_out
    assert "events.jsonl:1: not an event" in broken.why
    assert copy.what == str(tmp_path / "z/copy") and "a copy of" in copy.why


def _just_begun(folder: Path) -> None:
    for name in ("events.jsonl", "blobs"):
        (folder / name).unlink()


def _in_a_circle(folder: Path) -> None:
    (folder / "run.json").unlink()
    (folder / "run.json").symlink_to("run.json")


def _trials_without_result(folder: Path) -> None:
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    for event in events:
        if event["kind"] == "trial":
            event.pop("result", None)
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def _seed_is_a_word(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text())
    record["spec"]["seed"] = "two"
    (folder / "run.json").write_text(json.dumps(record))


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    (_just_begun, "events.jsonl: No such file or directory"),
    (_in_a_circle, "run.json: Too many levels of symbolic links"),
    (_trials_without_result, "damaged, copy it again (KeyError: 'result')"),
    (_seed_is_a_word, "run.json: spec: seed: damaged; restore it"),
]


@pytest.mark.parametrize(("damage", "why"), DAMAGES, ids=lambda part: getattr(part, "__name__", ""))
def test_whatever_happened_to_one_run_the_others_are_scored(
    simulate: Simulate, tmp_path: Path, damage: Callable[[Path], None], why: str
) -> None:
    damage(simulate("random", steps=2, seed=0).folder)
    sound = simulate("random", steps=2, seed=1).folder
    found = read(tmp_path, embedder=HashedTokens())
    assert [Path(run.folder) for run in found.runs] == [sound] == [Path(folder) for folder in found.geometry]
    (left_out,) = found.left_out
    assert why in left_out.why


def test_a_run_whose_codes_are_gone_is_scored_without_them(simulate: Simulate, tmp_path: Path) -> None:
    (simulate("random", steps=2, seed=0).folder / "blobs").unlink()
    sound = simulate("random", steps=2, seed=1).folder
    found = read(tmp_path, embedder=HashedTokens())
    assert len(found.runs) == 2 and [Path(folder) for folder in found.geometry] == [sound]
    (lacking,) = found.left_out
    assert "no exploration metrics" in lacking.why and "blobs: No such file or directory" in lacking.why


def test_no_file_is_left_open_however_many_runs_there_are(simulate: Simulate, tmp_path: Path) -> None:
    for seed in range(3):
        simulate("random", steps=2, seed=seed)
    open_before = len(os.listdir("/proc/self/fd"))
    read(tmp_path, embedder=HashedTokens())
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_run_that_another_one_replaces_while_it_is_scored_has_no_geometry(simulate: Simulate, tmp_path: Path) -> None:
    folder = simulate("random", steps=4).folder
    shorter = simulate("random", steps=2, runs=tmp_path / "elsewhere").folder

    class Replacing(HashedTokens):
        """Asked for the vectors of the first run, it puts a shorter run in the place of the second."""

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            if folder.exists():
                shutil.rmtree(folder)
                shutil.copytree(shorter, folder)
            return super().embed(texts)

    first = simulate("aide", task="sim/ridge", steps=2, runs=tmp_path / "a").folder
    with Index(None) as index:
        found = gather([first, folder], Replacing(), index, silent)
    assert len(found.runs) == 2 and list(found.geometry) == [str(first)]
    (left_out,) = found.left_out
    assert "another run took its place" in left_out.why


def test_marks_are_read_from_the_record(simulate: Simulate) -> None:
    folder = simulate("random", steps=2).folder
    record = json.loads((folder / "run.json").read_text())
    record["bench"]["sandbox"]["level"] = "none"
    record["task"] |= {
        "integrity": "self-reported", "simulation": None, "environment": {"path": "/usr"},
        "phase": [{"name": "run", "argv": ["python", "train.py"], "timeout": 9}],
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(record))
    found = read(folder)
    assert found.left_out == []
    (run,) = found.runs
    assert run.marks == ("self-reported", "no sandbox")


def test_the_noise_is_the_scorers_error_else_the_cards_deviation_else_its_floor() -> None:
    def manifest(**references: Any) -> Manifest:
        task = catalog.find("sim/ridge").manifest
        return task.model_copy(update={"references": References(**references)})

    def untouched(*errors: float | None) -> Outcome:
        return Outcome("ok", metrics={"loss": Measure([1.0] * len(errors), list(errors))})

    card = manifest(baseline_test=Measured(mean=1.0, std=0.01), noise_floor=0.06)
    assert reading.noise(untouched(0.3, 0.4), card) == 0.25
    assert reading.noise(untouched(None), card) == reading.noise(untouched(0.0), card) == 0.01
    assert reading.noise(None, card) == reading.noise(Outcome("crash"), card) == 0.01
    assert reading.noise(untouched(None), manifest(baseline_test=Measured(mean=1.0), noise_floor=0.06)) == 0.03
    assert reading.noise(untouched(None), manifest()) is None


def test_a_fork_has_the_costs_of_what_it_shares(simulate: Simulate) -> None:
    first = simulate("autoresearch", steps=6)
    fork = simulate("autoresearch", steps=8, fork=f"{first.folder}:3")
    (run,) = read(fork.folder).runs
    assert "fork" in run.marks and len(run.trials) == 8
    assert run.seconds >= fork.ledger.shared.seconds > 0


def events(*told: tuple[str, str, str]) -> list[dict[str, Any]]:
    return [{"at": f"2026-01-01T{at}+00:00", "kind": kind, "state": state} for at, kind, state in told]


def test_wall_clock_runs_from_the_baseline_to_the_last_event_without_pauses() -> None:
    told = events(
        ("10:00:00", "opened", "note"),
        ("10:00:30", "baseline", "finished"),
        ("10:01:00", "ask", "finished"),
        ("12:00:00", "opened", "note"),  # it was stopped, and begun again two hours later
        ("12:00:05", "trial", "finished"),
        ("12:00:20", "test", "finished"),
    )
    assert reading.worked(told) == 30 + 20
    assert reading.worked(told[:2]) == 0


# --- embeddings -----------------------------------------------------------------------------------------------------


def test_equal_codes_are_embedded_once(simulate: Simulate) -> None:
    history = simulate("aide", task="sim/ridge", steps=20)
    counting = Counting()
    found = read(history.folder, embedder=counting)
    assert sum(counting.asked) == len({history.text(step) for step in history.steps})
    assert max(counting.asked) <= PORTION
    (run,) = found.runs
    geometry = found.geometry[run.folder]
    assert len(geometry.distances) == len(run.trials)
    reach = score(run, geometry, "paper").process["Exploration Reach"]
    valid = [far for far, trial in zip(geometry.distances, run.trials, strict=True) if trial.status == "ok"]
    assert reach == pytest.approx(max(valid))
    assert score(run, geometry, "released").process["Exploration Reach"] == pytest.approx(max(geometry.distances))


def test_an_interrupted_embedding_goes_on_where_it_stopped(simulate: Simulate, tmp_path: Path, index: Path) -> None:
    for seed in range(3):
        simulate("random", steps=3, seed=seed)
    with pytest.raises(KeyboardInterrupt):
        read(tmp_path, index, Counting(most=2))
    rest = Counting()
    assert len(read(tmp_path, index, rest).geometry) == 3 and len(rest.asked) == 1
    again = Counting()
    assert len(read(tmp_path, index, again).geometry) == 3 and again.asked == []


class Words:
    """A tiny encoder: a token for each word; ``name`` stands for its weights."""

    dimensions = 2

    def __init__(self, name: str) -> None:
        self.name = name
        self.encoded: list[Sequence[int]] = []

    def tokens(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]

    def encode(self, windows: Sequence[Sequence[int]], pool: Pool) -> Rows:
        self.encoded += windows
        return np.array([[sum(window), 1.0] for window in windows], np.float32)


def test_a_window_is_encoded_once_over_all_runs_and_vectors_of_other_weights_are_not_taken(
    simulate: Simulate, tmp_path: Path, index: Path
) -> None:
    for seed in range(3):
        simulate("random", steps=6, seed=seed)
    cache = Cache(tmp_path / "windows.sqlite")
    one, other = Words("one"), Words("other")
    first = read(tmp_path, index, Windowed("words", one, "sum", cache))
    assert len(one.encoded) == len({tuple(window) for window in one.encoded}) > 1
    assert all(geometry.shape["paper"]["Exploration Reach"] >= 0 for geometry in first.geometry.values())
    again = Words("one")
    assert read(tmp_path, index, Windowed("words", again, "sum", cache)).geometry == first.geometry
    assert again.encoded == []
    read(tmp_path, index, Windowed("words", other, "sum", cache))
    assert other.encoded == one.encoded


# --- the index ------------------------------------------------------------------------------------------------------


def test_only_new_runs_are_read_again(simulate: Simulate, tmp_path: Path, index: Path, folded: list[str]) -> None:
    simulate("random", steps=3, seed=0)
    first = read(tmp_path, index)
    simulate("random", steps=3, seed=1)
    second = read(tmp_path, index)
    assert folded == ["0", "1"] and second.runs[0] == first.runs[0] and len(second.runs) == 2


def test_a_run_that_went_on_is_read_again(simulate: Simulate, tmp_path: Path, index: Path) -> None:
    with pytest.raises(Stopped):
        simulate("autoresearch", steps=9, limits=Limits(calls=4))
    (before,) = read(tmp_path, index, HashedTokens()).runs
    simulate("autoresearch", steps=9)
    found = read(tmp_path, index, HashedTokens())
    (after,) = found.runs
    assert after.finished and len(before.trials) < len(after.trials) == len(found.geometry[after.folder].distances)


def test_a_journal_that_was_changed_is_read_again_though_size_and_time_are_the_same(
    simulate: Simulate, tmp_path: Path, index: Path, folded: list[str]
) -> None:
    folder = simulate("random", steps=3).folder
    (before,) = read(tmp_path, index).runs
    journal = folder / "events.jsonl"
    state, text = journal.stat(), journal.read_text()
    assert before.trials[0].value
    journal.write_text(text.replace(str(before.trials[0].value), str(before.trials[0].value)[:-1] + "0", 1))
    os.utime(journal, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert journal.stat().st_size == state.st_size
    read(tmp_path, index)
    assert folded == ["0", "0"]


def test_a_run_that_was_replaced_by_another_is_read_again(
    simulate: Simulate, tmp_path: Path, index: Path, folded: list[str]
) -> None:
    one, other = (simulate("random", steps=3, seed=seed).folder for seed in range(2))
    read(one, index)
    shutil.rmtree(one)
    shutil.copytree(other, one)
    assert read(one, index).runs[0].seed == 1 and folded == ["0", "0"]


def test_a_broken_or_lost_index_is_made_anew(simulate: Simulate, tmp_path: Path, index: Path) -> None:
    simulate("random", steps=3)
    before = read(tmp_path, index).runs
    index.write_bytes(b"no table" * 1000)
    for suffix in ("-wal", "-shm"):
        Path(f"{index}{suffix}").unlink(missing_ok=True)
    assert read(tmp_path, index).runs == before
    index.unlink()
    assert read(tmp_path, index).runs == before == read(tmp_path, None).runs


def test_entries_of_runs_that_are_gone_go_too(simulate: Simulate, tmp_path: Path, index: Path) -> None:
    gone, kept = (simulate("random", steps=3, seed=seed).folder for seed in range(2))
    read(tmp_path, index)
    shutil.rmtree(gone)
    simulate("random", steps=3, seed=2)
    read(tmp_path, index)
    with contextlib.closing(sqlite3.connect(index)) as table:
        folders = {Path(os.fsdecode(folder)) for (folder,) in table.execute("SELECT folder FROM entries")}
    assert folders == {kept, kept.parent / "2"}


def test_a_folder_whose_name_is_no_text_is_kept_like_any_other(
    simulate: Simulate, tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = simulate("random", steps=2).folder
    folder.rename(place := tmp_path / os.fsdecode(b"no\xfftext"))
    before = read(place, index)
    monkeypatch.setattr(reading, "facts", lambda folder: pytest.fail("it is read again"))
    assert read(place, index) == before


def test_an_index_that_breaks_while_it_is_used_is_lost_and_made_anew(
    simulate: Simulate, tmp_path: Path, index: Path
) -> None:
    for seed in range(6):
        simulate("random", steps=3, seed=seed)
    before = read(tmp_path, index, HashedTokens())
    content = index.read_bytes()
    index.write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    with Index(index) as broken:
        found = gather(find([tmp_path]), HashedTokens(), broken, silent)
    assert found == before and broken.lost
    assert read(tmp_path, index, HashedTokens()) == before
    with Index(index) as anew:
        assert gather(find([tmp_path]), HashedTokens(), anew, silent) == before and not anew.lost


def test_a_full_disk_costs_the_index_only(simulate: Simulate, tmp_path: Path, index: Path) -> None:
    simulate("random", steps=3)
    with Index(index) as full:
        full._table.execute("PRAGMA max_page_count = 2")
        found = gather(find([tmp_path]), HashedTokens(), full, silent)
    assert "database or disk is full" in full.lost and index.exists()
    assert found == read(tmp_path, index, HashedTokens())
