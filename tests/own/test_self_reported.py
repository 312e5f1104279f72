"""A user's own project on its bench: each trial on its own copy, the user's files untouched, the number as it says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pydantic
import pytest
from dulwich.objects import Commit
from dulwich.repo import Repo

import labcoat
from labcoat.bench import home, own_environment
from labcoat.bench.bubblewrap import Bubblewrap
from labcoat.bench.command import Bind
from labcoat.bench.outcome import Outcome
from labcoat.bench.own_environment import OwnEnvironment
from labcoat.bench.self_reported import SelfReportedBench
from labcoat.checking import check
from labcoat.cli import look
from labcoat.errors import CannotRunHere, InputError
from labcoat.task import Task
from labcoat.tree import Code
from tests.bench.users import NOBODY
from tests.own.conftest import Make, Open
from tests.own.small import MODEL, base_python, state

BETTER = MODEL.replace("0.5", "1.0")


def tried(bench: SelfReportedBench, code: Code, seed: int = 0) -> Outcome:
    with bench.trial(code, seed) as (outcome, kept):
        assert kept is None
        return outcome


def editing(task: Task, model: str) -> Code:
    return task.baseline.put({"src/small/model.py": model})


def test_the_number_is_what_the_command_says(new: Make, open_own: Open) -> None:
    task = new().task
    bench = open_own(task)
    baseline = bench.baseline(0)
    assert (baseline.status, baseline.mean("loss"), baseline.artefact) == ("ok", 2.0, None)
    better = tried(bench, editing(task, BETTER), seed=3)
    assert (better.status, better.mean("loss")) == ("ok", 1.0)
    (ran,) = better.executions
    assert (ran.phase, ran.argv, ran.exit) == ("run", ["python", "train.py", "--seed", "3"], 0)
    assert "epoch 2 loss: 1.000000" in ran.stdout


def test_nothing_of_one_trial_is_seen_in_the_next_and_nothing_of_the_project_is_changed(
    new: Make, open_own: Open, project: Path
) -> None:
    before = state(project)
    task = new().task
    bench = open_own(task)
    look = "import os\nprint([os.path.exists(p) for p in ('cache', 'checkpoints', 'metrics.json', '/tmp/x')])\n"
    leave = "open('/tmp/x', 'w').close()\nopen('src/small/more.py', 'w').close()\n"
    for _ in range(2):
        found = tried(bench, editing(task, look + leave + MODEL))
        assert found.ok and "[False, False, False, False]" in found.executions[0].stdout
        assert "from the cache" not in found.executions[0].stdout
    assert state(project) == before


def test_absolute_paths_and_editable_installs_meet_the_candidates_files(
    new: Make, open_own: Open, project: Path
) -> None:
    task = new().task
    lines = "import os\nprint(__file__, os.getcwd())\nprint(open({!r}).read().count('MARK'))\n# MARK\n"
    found = tried(open_own(task), editing(task, lines.format(f"{project}/src/small/model.py") + MODEL))
    assert f"{project}/src/small/model.py /ws\n2\n" in found.executions[0].stdout


def test_files_that_were_left_out_are_nowhere(new: Make, open_own: Open, project: Path) -> None:
    task = new().task
    lines = f"import os\nprint([os.path.exists(p + '/.env') for p in ({str(project)!r}, '/ws')])\n"
    lines += f"print(sorted(os.listdir({str(project)!r})))\n"
    said = tried(open_own(task), editing(task, lines + MODEL)).executions[0].stdout
    assert "[False, False]\n['.venv', 'data', 'src', 'train.py']" in said


@pytest.mark.parametrize("place", ["data/points.txt", "{project}/data/points.txt", "{project}/.venv/pyvenv.cfg"])
def test_data_and_environment_cannot_be_changed(place: str, new: Make, open_own: Open, project: Path) -> None:
    for path in (project / "data/points.txt", project / ".venv/pyvenv.cfg"):
        path.chmod(0o666)
    task = new().task
    found = tried(open_own(task), editing(task, f"open({place.format(project=project)!r}, 'a')\n" + MODEL))
    assert found.status == "crash" and "Read-only file system" in found.error


def test_data_elsewhere_are_seen_at_their_real_place(new: Make, open_own: Open, project: Path) -> None:
    far = project.parent / "far"
    far.mkdir()
    (far / "x").write_text("7")
    task = new(data=[project / "data", far]).task
    found = tried(open_own(task), editing(task, f"print('far', open({str(far / 'x')!r}).read())\n" + MODEL))
    assert "far 7" in found.executions[0].stdout


def test_the_test_command_runs_in_the_workspace_after_the_command(new: Make, open_own: Open) -> None:
    task = new(test_command="python train.py --evaluate").task
    bench = open_own(task)
    assert bench.baseline_test(0).mean("loss") == 2.25
    found = bench.test(None, editing(task, BETTER), 0)
    assert (found.status, found.mean("loss"), found.artefact) == ("ok", 0.25, None)
    assert [execution.phase for execution in found.executions] == ["run", "test"]


def test_without_a_test_command_the_command_is_measured_again(new: Make, open_own: Open) -> None:
    task = new().task
    found = open_own(task).test(None, editing(task, BETTER), 0)
    assert found.mean("loss") == 1.0 and [execution.phase for execution in found.executions] == ["run"]


@pytest.mark.parametrize(
    ("model", "status", "said"),
    [
        ("raise SystemExit(print('hello'))\n", "bad_output", "no number loss: looked for `loss = NUMBER`"),
        (MODEL + "FACTOR = float('nan')\n", "bad_output", "loss is nan: a result is a finite number"),
        ("1 / 0\n", "crash", "ZeroDivisionError"),
        ("import time\ntime.sleep(60)\n", "timeout", "run ran longer than 3 s"),
        ("x = b'x' * (500 << 20)\nimport time\ntime.sleep(60)\n", "out_of_memory", "more than 300 MiB"),
        ("import socket\nsocket.create_connection(('192.0.2.1', 80))\n", "crash", "Network is unreachable"),
        ("open('big', 'wb').truncate(3 << 30)\n", "crash", "File too large"),
    ],
)
def test_statuses(model: str, status: str, said: str, new: Make, open_own: Open) -> None:
    task = new(timeout=3, memory_mb=300).task
    found = tried(open_own(task), editing(task, model))
    assert (found.status, found.metrics) == (status, {}) and said in found.error


def test_a_report_file_is_written_by_the_command_itself(new: Make, open_own: Open, project: Path) -> None:
    (project / ".gitignore").unlink()  # so that an old report and an old cache are in the snapshot
    (project / "metrics.json").write_text('{"loss": 0.0}')
    task = new(metric_file="metrics.json").task
    bench = open_own(task)
    assert "metrics.json" in task.baseline and "cache/mean.json" in task.baseline
    assert tried(bench, editing(task, MODEL)).mean("loss") == (50 - 1) ** 2 / 2 + (50 - 3) ** 2 / 2
    silent = tried(bench, editing(task, "raise SystemExit(0)\n"))
    assert silent.status == "bad_output" and "metrics.json is missing" in silent.error


def test_constraints_are_on_further_numbers(new: Make, open_own: Open) -> None:
    made = new()
    path = made.task.folder / "task.toml"
    bound = '[[constraint]]\nmetric = "epoch"\nside = "at_most"\nreference = 1.0\n'
    path.write_text(path.read_text() + bound)
    task = Task.load(made.task.folder)
    bench = open_own(task)
    one = tried(bench, editing(task, "print('epoch: 1')\n" + MODEL))
    assert one.status == "ok" and one.slack == {"epoch": 0.0}
    assert tried(bench, editing(task, "print('epoch: 2')\n" + MODEL)).status == "violation"
    assert "no number epoch" in tried(bench, editing(task, MODEL)).error


def test_scripts_can_be_executed(new: Make, open_own: Open, project: Path) -> None:
    (project / "run.sh").write_text("#!/bin/sh\nexec python train.py\n")
    (project / "run.sh").chmod(0o755)
    assert open_own(new(command="./run.sh").task).baseline(0).mean("loss") == 2.0


def test_a_change_of_data_or_environment_is_noticed(new: Make, open_own: Open, project: Path) -> None:
    task = new().task
    bench = open_own(task)
    (project / "data/points.txt").write_text("2.0\n2.0\n2.5\n")
    again = open_own(task)
    assert bench.baseline(0).mean("loss") == again.baseline(0).mean("loss") == 1.0
    assert bench.facts()["dataset"] != again.facts()["dataset"]
    packages = next((project / ".venv/lib").glob("python*/site-packages"))
    (packages / "more-1.0.dist-info").mkdir()
    (packages / "more-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: more\nVersion: 1.0\n")
    assert "more==1.0" in open_own(task).environment.lock != again.environment.lock


def test_data_that_are_gone_are_named(new: Make, open_own: Open, project: Path) -> None:
    task = new().task
    (project / "data").rename(project.parent / "moved")
    with pytest.raises(InputError, match=r"data\.mounts\.0\.from: .*/data: no such folder"):
        open_own(task)


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's worker is that user")
def test_for_root_a_closed_folder_is_named_with_its_remedy(new: Make, open_own: Open, project: Path) -> None:
    task = new().task
    project.chmod(0o700)
    with pytest.raises(CannotRunHere, match=rf"{project}: closed to other users.*`chmod o\+x {project}`"):
        open_own(task)


def test_without_a_sandbox_there_is_no_run(new: Make, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a self-reported task needs bwrap"):
        labcoat.run(task=new().task, steps=1, runs=tmp_path, sandbox="none")


# --- the environment --------------------------------------------------------------------------------------------------


def test_an_environment_is_found_by_prefix_or_interpreter(project: Path) -> None:
    found = own_environment.find(project / ".venv")
    other = own_environment.find(project / ".venv/bin/python")
    assert found.prefix == other.prefix == str(project / ".venv") and found.lock_hash == other.lock_hash
    inside = {bind.inside for bind in found.binds([project])}
    assert str(project / ".venv") in inside and str(project / "src") not in inside


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="this system has no Python of its own")
def test_the_systems_python_is_an_environment_too(new: Make, open_own: Open) -> None:
    task = new(python=Path("/usr/bin/python3"), command="env PYTHONPATH=src python3 train.py").task
    assert open_own(task).baseline(0).mean("loss") == 2.0


def test_no_environment_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no Python there \(no bin/python3\)"):
        own_environment.find(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "bin/python3").chmod(0o755)
    with pytest.raises(InputError, match="does not answer as a Python"):
        own_environment.find(tmp_path)


def test_what_lies_around_the_project_or_the_users_home_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "me/project").mkdir(parents=True)
    (tmp_path / "me/library").mkdir()
    paths = [str(tmp_path / name) for name in ("", "me", "me/project", "me/library", "gone")]
    own = OwnEnvironment("/usr/bin/python3", "/usr", ("/usr",), tuple(paths), "", "3", "")
    shown = {bind.inside for bind in own.binds([tmp_path / "me/project"])}
    assert shown & set(paths) == {str(tmp_path / "me/library")}


# --- runs -------------------------------------------------------------------------------------------------------------


def test_the_offline_model_improves_it_and_every_number_is_marked(
    new: Make, tmp_path: Path, project: Path, capsys: pytest.CaptureFixture[str], bwrap: object
) -> None:
    before = state(project)
    task = new().task
    run = labcoat.run(task=task, steps=5, seed=1, runs=tmp_path, model="offline:mutate")
    best = run.best
    assert best is not None and best.number > 0
    value = best.value("loss")
    assert value is not None and value < 2.0
    data = run.to_json()
    assert data["integrity"] == "self-reported" and data["sandbox"] == "bwrap"
    assert [warning.split(":")[0] for warning in data["warnings"]] == ["self-reported", "no-test-command"]
    assert data["test"]["value"] == value
    look.show(tmp_path)
    shown = capsys.readouterr().out
    assert shown.count("loss (lower is better, self-reported)") == 2
    assert ", self-reported; no test command: measured again" in shown
    look.log(tmp_path, "best")
    assert f"loss = {value:.6g} (self-reported)" in capsys.readouterr().out
    repo = Repo(str(labcoat.export_git(run, tmp_path / "git")))
    commit = repo[repo.head()]
    assert isinstance(commit, Commit) and f"loss = {value:.6g} (self-reported)".encode() in commit.message
    repo.close()
    assert labcoat.replay(run, task=str(task.folder)).text
    assert state(project) == before


def test_the_check_says_what_holds(new: Make, project: Path, bwrap: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    (project.parent / "diary").write_text("dear")
    before = state(project)
    checked = check(new().task)
    assert checked.holds and "self-reported" in checked.note
    assert [row.adversary for row in checked.rows] == [
        "number", "number again", "files", "variables", "network", "read-only", "leftovers",
    ]  # fmt: skip
    assert checked.rows[0].found.startswith("loss = 2 (lower is better)") and checked.rows[1].found == "the same"
    assert state(project) == before


def test_the_check_finds_what_is_open(new: Make, project: Path, bwrap: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same looks, through holes that were made for them."""
    made = new()
    (project.parent / "kept").mkdir()
    (project.parent / "kept").chmod(0o777)
    (project / "data").chmod(0o777)
    holes = [
        Bind(project / ".env", f"{project}/.env"),
        Bind(project.parent / "kept", "/dev/shm", writable=True),
        Bind(project / "data", "/ws/data", writable=True),
    ]
    plain = Bubblewrap._binds
    monkeypatch.setattr(Bubblewrap, "_binds", lambda self, binds: [*plain(self, binds), *holes])
    checked = check(made.task)
    broken = {row.adversary: row.found for row in checked.rows if row.verdict == "broken"}
    assert broken == {
        "files": f"found {project}/.env",
        "leftovers": "found /dev/shm/labcoat-was-here",
        "read-only": "found /ws/data",
    }


# --- an ordinary user -------------------------------------------------------------------------------------------------

SCRIPT = """
import json, os, sys
from pathlib import Path
import labcoat
from labcoat.new_task import Wishes, attempt, make
from tests.own.small import make_project, state
assert os.getuid() == 65534
here = Path.cwd()
os.umask(0o077)
project = make_project(here / "project")
before = state(project)
made = make(Wishes(project=project, edit=["src/*.py"], command="python train.py --seed {seed}", metric="loss",
                   direction="lower", data=[project / "data"], to=here / "task"))
said = attempt(made.task, lambda text: None)
run = labcoat.run(task=made.task, steps=3, runs=here / "runs")
print(json.dumps([said, [step.outcome.status for step in run.steps], state(project) == before]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="we are an ordinary user already, in every test")
def test_an_ordinary_users_closed_project_works(bwrap: object, open_folder: Path) -> None:
    paths = [Path(labcoat.__file__).parents[1], Path(pydantic.__file__).parents[1], Path(__file__).parents[2]]
    if any(home.closed_to_others(path) for path in paths):
        pytest.skip("another user cannot read this checkout or its packages")
    theirs = open_folder / "home"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, NOBODY, NOBODY)
    python = (home.home() / "pythons").glob("*/bin/python3")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(theirs), "LABCOAT_HOME": str(theirs / "labcoat")}
    env |= {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [str(next(python, base_python())), "-c", SCRIPT], env=env, user=NOBODY, group=NOBODY, extra_groups=[],
        cwd=theirs, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, statuses, unchanged = json.loads(done.stdout.splitlines()[-1])
    assert said.startswith("loss = 2 (lower is better)") and unchanged
    assert statuses[0] == "ok" and len(statuses) == 4
