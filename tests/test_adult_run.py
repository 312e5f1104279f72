"""The whole thing on real data: slow, needs the package index once and bubblewrap."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import labcoat
from labcoat.bench.sandbox import probe
from labcoat.history import History
from labcoat.journal import read_events
from labcoat.models import Call, Models, Prompt
from labcoat.models.scripted import ScriptedModel
from labcoat.replaying import replay

pytestmark = [pytest.mark.slow, pytest.mark.skipif(probe() is not None, reason=str(probe()))]

TASK = "fml/fairlearn-adult"
SOLUTIONS = Path(labcoat.__file__).parent / "tasks" / TASK / "solutions"
COMMAND = [sys.executable, "-c", "from labcoat.cli import main; main()", "run", TASK, "--seed", "0", "--steps"]


def story(folder: Path) -> Any:
    """All that must not depend on interruptions: not the time that things took."""
    data = History.find(folder).to_json()
    for name in ("folder", "spent"):
        del data[name]
    for step in [data["baseline"], data["best"], *data["trials"]]:
        del step["process_seconds"]
    return json.loads(json.dumps(data))


def descendants(pid: int) -> set[tuple[int, str]]:
    """Living processes below ``pid``, each with its start time."""
    parents: dict[int, tuple[int, str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1]), fields[19]

    def below(root: int) -> Iterator[tuple[int, str]]:
        for child, (parent, begun) in parents.items():
            if parent == root:
                yield child, begun
                yield from below(child)

    return set(below(pid))


def alive(processes: set[tuple[int, str]]) -> set[tuple[int, str]]:
    """Those that still run (a zombie does not)."""
    found = set()
    for pid, begun in processes:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[19] == begun and fields[0] != "Z":
            found.add((pid, begun))
    return found


def kill_inside_the_third_trial(runs: Path) -> None:
    """Start, wait until the third trial runs its code, kill -9; nothing may be alive two seconds later."""
    with subprocess.Popen([*COMMAND, "5", "--runs", str(runs)], stderr=subprocess.DEVNULL) as controller:
        begun: set[tuple[int, str]] = set()
        before = [e for p in runs.rglob("events.jsonl") for e in read_events(p) if e["state"] == "started"]
        while len(begun) < 3:  # bwrap, its init, the candidate
            assert controller.poll() is None
            time.sleep(0.05)
            events = [e for p in runs.rglob("events.jsonl") for e in read_events(p)]
            open_trials = {e["key"] for e in events if e["state"] == "started"} - {
                e["key"] for e in events if e["state"] == "finished"
            }
            started_anew = sum(e["state"] == "started" for e in events) > len(before)
            third = len({e["key"] for e in events if e["kind"] == "trial"}) == 3
            begun = descendants(controller.pid) if third and open_trials and started_anew else set()
        time.sleep(0.3)
        begun |= descendants(controller.pid)
        os.kill(controller.pid, signal.SIGKILL)
        controller.wait()
    time.sleep(2)
    assert alive(begun) == set()


def test_killed_three_times_inside_one_trial_the_run_comes_out_the_same(tmp_path: Path) -> None:
    subprocess.run([*COMMAND, "5", "--runs", str(tmp_path / "whole")], check=True, stderr=subprocess.DEVNULL)
    for _ in range(3):
        kill_inside_the_third_trial(tmp_path / "killed")
    subprocess.run([*COMMAND, "5", "--runs", str(tmp_path / "killed")], check=True, stderr=subprocess.DEVNULL)
    assert story(tmp_path / "killed") == story(tmp_path / "whole")
    events = History.find(tmp_path / "killed").journal.events
    assert [e["state"] for e in events if e["key"] == "/8"].count("started") == 4
    best = History.find(tmp_path / "killed").folder / "best"
    assert len(list(best.iterdir())) == 1


def solution(name: str) -> Models:
    """A model that answers every edit with one of the task's known solutions."""
    code = (SOLUTIONS / name / "algorithm.py").read_text()

    def answer(prompt: Prompt, call: Call) -> str:
        return f"### FILE: algorithm.py\n````python\n{code}\n````" if call.purpose == "edit" else f"use {name}"

    return Models({"*": ScriptedModel(answer, name=f"scripted:{name}")})


@pytest.mark.parametrize(
    ("name", "status", "value"),
    [
        ("constant", "violation", 0.0),
        ("random", "violation", 0.0019),
        ("noop", "ok", 0.1899),
        ("reference", "ok", 0.0065),
    ],
)
def test_known_solutions_score_what_the_card_says(tmp_path: Path, name: str, status: str, value: float) -> None:
    history = labcoat.run(task=TASK, strategy="random", model=solution(name), steps=1, runs=tmp_path)
    step = history.trials[0]
    assert step.outcome.status == status
    assert step.outcome.metrics[history.metric.name].mean == pytest.approx(value, abs=5e-4)
    assert history.best is not None
    assert history.best.number == (1 if name == "reference" else 0)
    assert history.sandbox == "bwrap"
    assert replay(history).finished


def test_the_test_is_predicted_from_the_kept_artefact(tmp_path: Path) -> None:
    history = labcoat.run(task=TASK, strategy="random", model=solution("reference"), steps=1, runs=tmp_path)
    outcome = history.test_outcome()
    assert outcome is not None and outcome.ok
    assert [execution.phase for execution in outcome.executions] == ["predict"]
    assert outcome.metrics[history.metric.name].mean == pytest.approx(0.0021, abs=5e-4)
    assert [path.name for path in (history.folder / "best").iterdir()] == [history.trials[0].outcome.artefact]


def test_unsandboxed_runs_are_refused_or_marked(tmp_path: Path) -> None:
    without = {"PATH": "/nowhere", "HOME": os.environ.get("HOME", "/"), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    script = tmp_path / "script.jsonl"
    script.write_text('"x"\n')
    command = [*COMMAND, "1", "--runs", str(tmp_path / "runs")]
    refused = subprocess.run([*command, "--model", f"scripted:{script}"], env=without, capture_output=True, text=True)
    assert refused.returncode == 3
    assert "sudo apt-get install bubblewrap" in refused.stderr
    marked = subprocess.run(command, env=without, capture_output=True, text=True)
    assert marked.returncode == 0, marked.stderr
    assert "NO SANDBOX: bubblewrap is not installed" in marked.stderr
    assert History.find(tmp_path / "runs").to_json()["sandbox"] == "none"
