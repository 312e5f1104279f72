"""``labcoat score`` as a user types it: every format, the folder of tables, and two at once."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import labcoat
from labcoat.budget import Limits
from labcoat.cli import main
from labcoat.errors import Stopped
from labcoat.scoring.process import DIMENSIONS
from tests.bench import conftest

shared = conftest.shared
CLI = [sys.executable, "-c", "from labcoat.cli import main; main()", "score"]


@pytest.fixture(scope="module", autouse=True)
def own_home(shared: Path) -> Iterator[None]:
    """Never the user's own, and none that another worker uses."""
    with tempfile.TemporaryDirectory(dir=shared) as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder).chmod(0o755)
        patch.setenv("LABCOAT_HOME", folder)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two strategies, two tasks, two seeds; one cell is missing and one run was stopped."""
    folder = tmp_path_factory.mktemp("runs")
    for strategy in ("autoresearch", "random"):
        for task in ("sim/valley", "sim/ridge"):
            for seed in range(2):
                if (strategy, task) != ("random", "sim/ridge"):
                    labcoat.run(task=task, strategy=strategy, steps=8, seed=seed, runs=folder)
    with pytest.raises(Stopped):
        labcoat.run(task="sim/ridge", strategy="random", steps=8, seed=0, runs=folder, limits=Limits(calls=5))
    return folder


def score(*args: object, check: int = 0) -> str:
    """What it prints, in this process; where it should fail, what it complains about."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["labcoat", "score", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == check, err.getvalue() + out.getvalue()
    return err.getvalue() if check else out.getvalue()


def test_text_has_every_table_and_marks_simulated_runs_in_each(runs: Path) -> None:
    text = score(runs)
    assert "7 runs, 2 arms, 2 tasks; mode `paper`, codes embedded by `tokens`." in text
    tables = text.split("\n\n")
    titles = [
        "Arms", "Arms compared", "Ranks", "Normalised test improvement", "Raw test metric", "From validation to test",
        "Process metrics", "Opportunity density", "Dense and sparse tasks",
    ]  # fmt: skip
    for title in titles:
        table = tables[tables.index(title) + 1]
        assert "§ simulated" in table and "§ " in table.splitlines()[0] + table.splitlines()[2]
    assert all(name in text for name in DIMENSIONS)
    missing = tables[tables.index("What is missing") + 1]
    assert "random on sim/ridge" in missing and "no run in round 2" in missing
    assert "not finished: 2 of 8 steps" in missing and "no test" in missing


def test_csv_is_the_table_of_runs_in_full_precision(runs: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(score(runs, "--format", "csv"))))
    found = json.loads(score(runs, "--format", "json"))["runs"]
    assert len(rows) == len(found) == 7 and {row["marks"] for row in rows} == {"simulated"}
    for row, run in zip(rows, found, strict=True):
        for name in DIMENSIONS:
            assert (float(row[name]) if row[name] else None) == run["process"][name]
        assert (row["arm"], row["task"], int(row["seed"])) == (run["arm"], run["task"], run["seed"])


def test_markdown_has_tables_that_fit_their_heads(runs: Path) -> None:
    lines = score(runs, "--format", "markdown").splitlines()
    assert "## Process metrics" in lines
    for above, line in itertools.pairwise(lines):
        if above.startswith("|") and line.startswith("|"):
            assert above.count("|") == line.count("|")


def test_the_folder_holds_every_table_and_the_whole(runs: Path, tmp_path: Path) -> None:
    printed = score(runs, "--format", "json", "--out", tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    tables = (
        "arms", "pairs", "ranks", "improvement", "test", "validation_to_test", "process", "correlations", "density",
        "partition", "runs", "missing",
    )  # fmt: skip
    assert names == {"score.json", "report.md", *(f"{name}.csv" for name in tables)}
    assert json.loads((tmp_path / "out/score.json").read_text()) == json.loads(printed)
    (first, *_) = csv.DictReader(io.StringIO((tmp_path / "out/improvement.csv").read_text()))
    assert set(first) == {
        "task", "autoresearch [simulated]", "autoresearch [simulated] sd", "autoresearch [simulated] marks",
        "random [simulated]", "random [simulated] sd", "random [simulated] marks",
    }  # fmt: skip


@pytest.mark.parametrize("place", ["/proc/scores", "/dev/null", "/dev/null/scores"])
def test_a_folder_that_cannot_be_is_refused_before_anything_is_read(place: str, tmp_path: Path) -> None:
    assert f"{place}: " in (said := score(tmp_path / "nothing", "--out", place, check=3)) and "--out" in said


def test_what_cannot_be_written_is_said_and_leaves_nothing_half_done(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").mkdir()
    assert f"{tmp_path}: " in score(runs, "--embedder", "none", "--out", tmp_path, check=3)
    assert not list(tmp_path.glob("*.part"))


def test_a_run_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = labcoat.run(task="sim/valley", strategy="random", steps=2, runs=tmp_path / "first").folder
    folder.rename(place := tmp_path / os.fsdecode(b"no\xfftext|\n"))
    for _ in range(2):
        score(place, "--out", tmp_path / "scores")
    (run,) = json.loads((tmp_path / "scores/score.json").read_text(encoding="utf-8"))["runs"]
    assert Path(run["folder"]) == place


def test_the_mode_decides_what_a_stopped_run_is_worth(runs: Path) -> None:
    for mode, improvement in (("paper", None), ("released", 0.0)):
        found = json.loads(score(runs, "--mode", mode, "--format", "json"))
        (stopped,) = (run for run in found["runs"] if not run["finished"])
        assert found["mode"] == mode and stopped["improvement"] == improvement


def test_without_embedder_there_is_no_exploration_metric(runs: Path) -> None:
    found = json.loads(score(runs, "--embedder", "none", "--format", "json"))
    assert all(run["process"]["Exploration Reach"] is None for run in found["runs"])
    assert found["partition"] is None and "no exploration metrics" in score(runs, "--embedder", "none")


def test_what_cannot_be_scored_is_said(runs: Path, tmp_path: Path) -> None:
    assert "no run there" in score(tmp_path, check=2)
    assert "unknown embedder 'word2vec'" in score(runs, "--embedder", "word2vec", check=2)


def test_two_processes_at_once_say_the_same(runs: Path) -> None:
    (Path(os.environ["LABCOAT_HOME"]) / "score/index.sqlite").unlink(missing_ok=True)
    both = [subprocess.Popen([*CLI, str(runs), "--format", "json"], stdout=subprocess.PIPE) for _ in range(2)]
    one, other = (process.communicate(timeout=120)[0] for process in both)
    assert [process.returncode for process in both] == [0, 0] and one == other


def test_following_scores_when_the_last_run_has_ended(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        labcoat.run(task="sim/ridge", strategy="aide", steps=8, seed=0, runs=tmp_path, limits=Limits(calls=5))
    with subprocess.Popen(
        [*CLI, str(tmp_path), "--follow", "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        for seed in range(2):  # the first of them goes on with the run that was stopped
            time.sleep(2)
            assert process.poll() is None
            labcoat.run(task="sim/ridge", strategy="aide", steps=8, seed=seed, runs=tmp_path)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert [run["steps"] for run in json.loads(out)["runs"]] == [8, 8]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_following_can_be_interrupted(runs: Path, number: signal.Signals) -> None:
    with subprocess.Popen([*CLI, str(runs), "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while os.getpriority(os.PRIO_PROCESS, process.pid) < 19:  # it has not begun
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and b"the same command goes on from here" in err and not out


def test_where_nothing_can_be_kept_runs_are_scored_all_the_same(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*CLI, str(runs)], capture_output=True, text=True, env={**os.environ, "LABCOAT_HOME": str(tmp_path / "file")}
    )
    assert done.returncode == 0 and "nothing is kept for the next time" in done.stderr and "7 runs" in done.stdout
