"""``labcoat sim`` as a user types it: it goes on where it stopped, and one bad run stops no other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLI = [sys.executable, "-c", "from labcoat.cli import main; main()", "sim"]
FAILING = """
from labcoat.lab import Params, Strategy

async def search(lab, params):
    "Fails on every second landscape."
    if "C9" in lab.brief.baseline.code.text("train.py"):
        raise ValueError("too many constants for me")
    await lab.trial(await lab.edit(lab.brief.baseline, "change something"))

STRATEGY = Strategy("moody", search)
"""


def started(*args: object) -> subprocess.Popen[str]:
    """The command in a process group of its own."""
    return subprocess.Popen(
        [*CLI, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def sim(*args: object, check: int = 0) -> tuple[str, str]:
    process = started(*args)
    out, err = process.communicate(timeout=120)
    assert process.returncode == check, err + out
    return out, err


def until(holds: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.02)
    raise AssertionError("not within the time")


def events(runs: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in runs.glob("**/events.jsonl")}


SMALL = ("--strategy", "random", "--strategy", "autoresearch", "--landscape", "haystack", "--landscape", "sim/triples")


def test_it_prints_and_writes_the_tables_and_reads_finished_runs(tmp_path: Path) -> None:
    options = (*SMALL, "--seeds", 2, "--steps", 6, "--runs", tmp_path / "runs")
    out, _ = sim(*options, "--out", tmp_path / "out")
    assert "8 runs: strategies 2 × landscapes 2 × seeds 2, steps 6, model `offline:mutate`" in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.md", "results.csv", "results.json"]
    before = events(tmp_path / "runs")
    assert len(before) == 8
    again, _ = sim(*options, "--json")
    assert json.loads(again) == json.loads((tmp_path / "out" / "results.json").read_text())
    assert events(tmp_path / "runs") == before
    assert (tmp_path / "runs" / "sim" / "results.json").read_text() == again


def test_a_run_that_fails_is_listed_and_the_others_are_finished(tmp_path: Path) -> None:
    (tmp_path / "moody.py").write_text(FAILING)
    options = ("--strategy", tmp_path / "moody.py", "--strategy", "random", "--landscape", "open-slope")
    out, err = sim(
        *options, "--landscape", "haystack", "--seeds", 1, "--steps", 3, "--runs", tmp_path / "runs", "--json", check=7
    )
    found = json.loads(out)
    assert [(run["landscape"], run["seed"]) for run in found["failed"]] == [("haystack", 0)]
    assert len(found["rows"]) == 3
    assert [landscape["landscape"] for landscape in found["tables"]["landscapes"]] == ["sim/open-slope"]
    assert "too many constants for me" in err


def test_an_unknown_name_is_refused_before_a_process_begins(tmp_path: Path) -> None:
    _, err = sim("--strategy", "autoreserch", "--runs", tmp_path / "runs", check=2)
    assert "did you mean autoresearch" in err
    assert not (tmp_path / "runs").exists()


def test_stopped_it_goes_on_to_the_same_results(tmp_path: Path) -> None:
    options = (*SMALL, "--seeds", 2, "--steps", 60, "--processes", 2)
    process = started(*options, "--runs", tmp_path / "a")
    until(lambda: len(events(tmp_path / "a")) > 2)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in err
    assert len(events(tmp_path / "a")) < 8
    sim(*options, "--runs", tmp_path / "a")
    sim(*options, "--runs", tmp_path / "b")
    one, other = ((tmp_path / name / "sim" / "results.csv").read_text() for name in "ab")
    assert one == other


def runs(process: str) -> bool:
    """Whether a process still runs; one that has ended and that nobody asks for has no command."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""
    except OSError:
        return False


def test_its_processes_end_with_it_however_it_ends(tmp_path: Path) -> None:
    process = started(*SMALL, "--seeds", 30, "--runs", tmp_path / "runs", "--processes", 2)
    until(lambda: len(events(tmp_path / "runs")) > 1)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) >= 2
    process.kill()
    process.communicate(timeout=60)
    until(lambda: not any(map(runs, children)))
