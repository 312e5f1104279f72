"""What `labcoat doctor` finds: the truth about this machine, also where much is missing, and what to do."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from labcoat.bench import command, doctor, environment, home, remedies, sandbox, seccomp
from labcoat.bench.attempts import Attempts
from labcoat.bench.doctor import Diagnosis, Row
from labcoat.bench.environment import Environment
from labcoat.bench.process import Finished
from labcoat.cli import app
from tests.bench.test_environment import disk
from tests.bench.users import run_as_nobody
from tests.docs.test_docs import check

WORDS = "files network memory processes disk time logs threads calls tree user gpu".split()


def by_name(found: Diagnosis) -> dict[str, Row]:
    """The rows."""
    return {row.what: row for row in found.rows}


@pytest.fixture(scope="module")
def sandboxed(labcoat_home: Path, bwrap: sandbox.Bubblewrap) -> Diagnosis:
    """The diagnosis of this machine."""
    return doctor.examine()


def test_every_protection_is_tried_and_holds(sandboxed: Diagnosis) -> None:
    rows = by_name(sandboxed)
    assert list(rows) == [*WORDS, "home", "python"]
    without = set() if command.available() else {"memory"}
    assert {name for name, row in rows.items() if row.state != "holds"} <= without
    assert all(row.seen and row.how and bool(row.remedy) == (row.state != "holds") for row in rows.values())
    assert sandboxed.lacking == [] and sandboxed.note == "" and sandboxed.seconds < 30


def test_the_words_are_those_that_a_run_records(either: sandbox.Sandbox, sandboxed: Diagnosis) -> None:
    assert list(either.enforced()) == WORDS
    if either.level == "bwrap":
        recorded = sandbox.facts(either)["enforced"]
        assert recorded == {name: row.how for name, row in by_name(sandboxed).items() if name in WORDS}


def test_without_bubblewrap_it_says_what_is_open_and_what_to_install(
    labcoat_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "probe", lambda: remedies.MISSING_BWRAP)
    found = doctor.examine()
    rows = by_name(found)
    assert (found.sandbox, found.note, found.lacking) == ("none", remedies.MISSING_BWRAP, ["sandbox"])
    assert rows["network"].state == rows["files"].state == rows["calls"].state == "missing"
    assert rows["threads"].state == rows["tree"].state == "weaker"
    assert rows["time"].state == rows["disk"].state == rows["logs"].state == "holds"
    assert all(row.remedy == remedies.MISSING_BWRAP for row in found.rows if row.state == "missing")


def test_a_filter_that_is_not_there_is_noticed(
    labcoat_home: Path, bwrap: sandbox.Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seccomp, "descriptor", lambda counted: None)
    rows = by_name(doctor.examine())
    assert rows["threads"].state == "weaker" and rows["threads"].seen.endswith("leaving that one: it could")
    assert rows["calls"].state == "missing" and "ptrace" in rows["calls"].seen
    assert rows["calls"].remedy == remedies.STRANGE  # it should have been there
    assert rows["files"].state == rows["user"].state == "holds"


def test_limits_that_do_not_hold_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Attempts(sandbox.Unsandboxed(), tmp_path, tmp_path)
    endless = Finished(0, "x" * (4 << 20), "", 9.0)
    monkeypatch.setattr(place, "run", lambda *given, **limits: endless)
    for what in ("memory", "disk", "time", "logs"):
        state, seen = place.at(what)
        assert state == "missing" and ("not ended" in seen or "4096 KiB were kept" in seen)
    answers = {"processes": 48, "files": "", "network": "", "user": {"uid": 0, "capabilities": 0, "more": False}}
    answers["threads"] = {"given": 2, "said": "", "share": 2.0}
    answers["gpu"] = {"devices": ["nvidia0"], "cuda": 0}
    monkeypatch.setattr(place, "answer", lambda name, *given, **limits: answers[name])
    assert {what: place.at(what)[0] for what in answers} == dict.fromkeys(answers, "missing")


def test_an_attempt_that_cannot_be_made_is_not_taken_for_one_that_failed(
    labcoat_home: Path, monkeypatch: pytest.MonkeyPatch, open_folder: Path
) -> None:
    attempts = Attempts(sandbox.Unsandboxed(), open_folder, environment.base_prefix(lambda text: None))
    monkeypatch.setattr("labcoat.bench.probe.__file__", __file__)  # another program, which fails
    for what in ("files", "network", "processes", "threads", "user", "time", "memory", "tree"):
        found = doctor.row(what, "", attempts, None)
        assert found.state == "missing" and "Error" in found.seen, found


@pytest.mark.parametrize(
    ("version", "root", "systemd", "expected"),
    [
        (2, False, True, "`systemd-run --user --scope -p Delegate=yes labcoat run ...`"),
        (2, False, False, "`sudo labcoat run ...`"),
        (1, False, True, "`sudo labcoat run ...`"),
        (2, True, True, "`docker run --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:rw`"),
    ],
)
def test_what_gives_control_groups(version: int, root: bool, systemd: bool, expected: str) -> None:
    assert remedies.no_groups(version, root, systemd).endswith(expected)


def test_a_home_that_cannot_be_used_is_a_row_and_the_rest_is_tried_elsewhere(
    bwrap: sandbox.Bubblewrap, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_folder / "file").write_text("")
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder / "file/below"))
    found = doctor.examine()
    rows = by_name(found)
    assert rows["home"].state == "missing" and "set LABCOAT_HOME to a folder" in rows["home"].remedy
    assert rows["files"].state == rows["disk"].state == "holds" and found.lacking == ["home"]
    assert os.environ["LABCOAT_HOME"] == str(open_folder / "file/below")


def test_a_full_home_is_a_row_too(
    bwrap: sandbox.Bubblewrap, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with disk(open_folder / "small", megabytes=1) as place:
        monkeypatch.setenv("LABCOAT_HOME", str(place / "home"))
        with suppress(OSError):
            (place / "fill").write_bytes(bytes(900 << 10))
        rows = by_name(doctor.examine())
    assert rows["home"].state == "missing" and "free some space" in rows["home"].remedy
    assert rows["files"].state == rows["disk"].state == "holds"


def test_little_space_is_a_weakness(labcoat_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "free", lambda path: 1 << 30)
    found = doctor.home_row("")
    assert found.state == "weaker" and "1.0 GiB are free" in found.seen and "free some space" in found.remedy


def call(*args: str) -> tuple[int, str]:
    """Exit code and output of ``labcoat doctor``."""
    done = CliRunner().invoke(app, ["doctor", *args])
    return done.exit_code, done.stdout


def test_the_table_names_what_to_do_and_the_exit_code_says_whether_runs_can_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        Row("memory", "weaker", "watcher", "it took", "run `this`"),
        Row("threads", "weaker", "affinity", "it left", "run `this`"),
        Row("home", "holds", "/h", "made"),
        Row("python", "holds", "Python", "started"),
    ]
    monkeypatch.setattr(doctor, "examine", lambda report: Diagnosis("bwrap", "", rows, 1.0))
    code, said = call()
    assert code == 0 and "memory, threads: run `this`" in said and "watcher. Tried: it took" in said
    assert said.splitlines()[-1] == "sandbox bwrap, labcoat can run here (1.0 s)"
    monkeypatch.setattr(doctor, "examine", lambda report: Diagnosis("none", "no bwrap", rows, 1.0))
    code, said = call()
    assert code == 3 and said.splitlines()[-1] == "sandbox none, labcoat cannot run here, it lacks: sandbox (1.0 s)"
    rows[2] = Row("home", "missing", "/h", "not made", "set it")
    assert call("--json")[0] == 3


def test_json_is_as_documented(sandboxed: Diagnosis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda report: sandboxed)
    code, said = call("--json")
    told: dict[str, Any] = json.loads(said)
    assert code == 0
    check(told, "Diagnosis")
    for row in told["rows"]:
        check(row, "Protection")


def test_an_ordinary_user_is_told_the_same(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    script = "from labcoat.bench import doctor; import json; print(json.dumps(doctor.examine().to_json()))"
    begin = time.monotonic()
    told = json.loads(run_as_nobody(numpy_environment, open_folder, script))
    rows = {row["what"]: row for row in told["rows"]}
    assert told["ready"] and told["sandbox"] == "bwrap" and time.monotonic() - begin < 30
    assert {name for name, row in rows.items() if row["state"] != "holds"} <= {"memory"}
    if rows["memory"]["state"] == "weaker":
        assert rows["memory"]["how"] == "watcher 10 Hz" and "may make no control groups" in rows["memory"]["remedy"]
