"""The commands as a user types them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

CLI = [sys.executable, "-c", "from labcoat.cli import main; main()"]


def labcoat(*args: object, check: int = 0) -> str:
    done = subprocess.run([*CLI, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == check, done.stderr + done.stdout
    return done.stdout if check == 0 else done.stderr


def as_json(*args: object) -> Any:
    return json.loads(labcoat(*args, "--json"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    labcoat("run", "sim/ridge", "--strategy", "autoresearch", "--steps", 15, "--seed", 3, "--runs", folder)
    return folder


def test_listings_have_a_stable_json_form() -> None:
    tasks = as_json("tasks")
    assert {"sim/valley", "sim/ridge", "fml/fairlearn-adult"} <= {task["id"] for task in tasks}
    assert all(task["metric"]["direction"] in ("higher", "lower") for task in tasks)
    strategies = as_json("strategies")
    assert {"autoresearch", "random"} <= {strategy["name"] for strategy in strategies}
    assert next(s for s in strategies if s["name"] == "autoresearch")["parameters"]["attempts"]["default"] == 3


def test_show_json_has_what_docs_promise(runs: Path) -> None:
    shown = as_json("show", runs)
    assert len(shown["trials"]) == 15
    assert [trial["step"] for trial in shown["trials"]] == list(range(1, 16))
    assert isinstance(shown["test"]["value"], float)
    assert isinstance(shown["test"]["baseline"]["value"], float)
    assert shown["best"]["value"] == min(t["value"] for t in shown["trials"] if t["status"] == "ok")
    assert shown["sandbox"] == "none needed"
    assert shown["status"] == "finished"


def test_show_prints_table_tree_and_summary(runs: Path) -> None:
    text = labcoat("show", runs)
    assert "baseline" in text and "└──" in text
    assert "trials      15 of 15" in text
    assert "sandbox     none needed" in text


def test_diff_shows_what_a_step_changed_and_the_way_between_two(runs: Path) -> None:
    step = labcoat("diff", runs, 1)
    assert step.startswith("--- a/train.py\n+++ b/train.py\n")
    assert step.count("\n-") == 1 and step.count("\n+") == 2  # one line, and the header of the new file
    assert labcoat("diff", runs, "baseline", "best").startswith("--- a/train.py")
    assert "have the same code" in labcoat("diff", runs, 2, 2)


def test_log_shows_prompt_reply_and_outcome(runs: Path) -> None:
    text = labcoat("log", runs, 2)
    assert "prompt: instruction" in text
    assert "reply (stop)" in text
    assert "outcome: " in text


def test_replay_verifies(runs: Path) -> None:
    assert "decisions re-executed and equal to the journal, 15 trials" in labcoat("replay", runs)


def test_git_gives_a_sound_repository_with_the_search_tree(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "tree.git"
    labcoat("git", runs, "--to", target)

    def git(*args: str) -> str:
        return subprocess.run(["git", "--git-dir", target, *args], capture_output=True, text=True, check=True).stdout

    git("fsck", "--strict")
    shown = as_json("show", runs)
    for trial in shown["trials"]:
        parents = git("log", "-1", "--format=%P", f"step-{trial['step']}").split()
        assert parents == git("rev-parse", f"step-{trial['parent']}^{{commit}}").split()
    assert git("show", "best:train.py") != git("show", "baseline:train.py")
    assert len(list((target / "objects/pack").glob("*.pack"))) == 1
    assert "exists" in labcoat("git", runs, "--to", target, check=2)


def test_a_finished_run_exits_at_once(runs: Path) -> None:
    done = subprocess.run(
        [*CLI, "run", "sim/ridge", "--steps", "15", "--seed", "3", "--runs", str(runs)], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "already finished" in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["run", "sim/vallei"], 2, "did you mean sim/valley"),
        (["run", "sim/valley", "--strategy", "greedy"], 2, "unknown strategy 'greedy'"),
        (["run", "sim/valley", "-S", "attempts"], 2, "write it as NAME=VALUE"),
        (["run", "sim/valley", "-S", "attempts=many"], 2, "attempts: Input should be a valid integer"),
        (["show", "/nowhere"], 2, "no run there"),
        (["run", "sim/valley", "--steps", "x"], 2, "Invalid value"),
    ],
)
def test_bad_input_gets_one_clear_message(tmp_path: Path, args: list[str], code: int, message: str) -> None:
    text = labcoat(*args, *(["--runs", tmp_path] if args[0] == "run" else []), check=code)
    assert message in text
    assert "Traceback" not in text


def test_several_runs_are_listed(runs: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        labcoat("run", "sim/valley", "--steps", 1, "--seed", seed, "--runs", tmp_path)
    assert "2 runs there, name one of them" in labcoat("show", tmp_path, check=2)


def test_unknown_steps_are_named(runs: Path) -> None:
    assert "it has steps 0 (the baseline) to 15, or `best`" in labcoat("diff", runs, 99, check=2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal_the_same_command_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    command = [*CLI, "run", "sim/valley", "--steps", "3000", "--runs", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stderr
        for line in first.stderr:
            if "step 5/" in line:
                break
        first.send_signal(number)
        _, rest = first.communicate(timeout=30)
        assert first.returncode == 130, rest
        assert "the same command goes on from here" in rest
    shown = as_json("show", tmp_path)
    assert shown["status"] == "stopped" and 5 <= len(shown["trials"]) < 3000
    assert "the run is not finished" in labcoat("replay", tmp_path)


def test_a_limit_has_its_own_exit_code(tmp_path: Path) -> None:
    text = labcoat("run", "sim/valley", "--steps", 5, "--max-calls", 4, "--runs", tmp_path, check=5)
    assert "limit reached: calls = 4" in text
    labcoat("run", "sim/valley", "--steps", 5, "--runs", tmp_path)


def test_help_is_quick_enough_to_be_used() -> None:
    begin = time.monotonic()
    assert "replay" in labcoat("--help")
    assert time.monotonic() - begin < 5  # benchmarks/ measures it; this only catches an accident
