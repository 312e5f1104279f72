"""The check of a task: what is inert, refused and neutralised, and that a task which leaks is caught."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.testing

from labcoat import catalog, checking
from labcoat.bench import environment, sandbox
from labcoat.bench.environment import Environment
from labcoat.bench.outcome import Measure, Outcome
from labcoat.bench.sandbox import probe
from labcoat.bench.suite import SUITE, Adversary, in_front, suite
from labcoat.checking import Row, check, difference, gist, unlike
from labcoat.cli.task import app
from labcoat.errors import CannotRunHere, InputError
from labcoat.task import Task
from tests.bench import conftest
from tests.bench import test_problem_words as problem_words
from tests.bench.tiny import CONSTANT, DATA, MANIFEST, SCORER, WITHOUT_FIT, make_task, program
from tests.bench.users import run_as_nobody

shared, bwrap, open_folder = conftest.shared, conftest.bwrap, conftest.open_folder
OUTSIDE = dict(os.environ)  # before a fixture sets LABCOAT_HOME

ONE_PROBLEM = DATA.replace("[4, 5]", "[4]")
LEVEL = "np.save(f'{artefact}/level.npy', %s)"


@pytest.fixture(scope="module", autouse=True)
def labcoat_home(shared: Path) -> Iterator[Path]:
    """Never the user's own home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABCOAT_HOME", str(shared / "home"))
        yield shared / "home"


@pytest.fixture(scope="module")
def numpy_environment(labcoat_home: Path) -> Environment:
    """The environment of the tiny task."""
    return conftest.with_numpy(environment.prepare([], lambda text: None))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Limits that are reached sooner than those of a real check."""
    monkeypatch.setitem(checking.TIGHT, "timeout", 1.5)
    monkeypatch.setitem(checking.TIGHT, "memory_mb", 128)
    yield


def some(*names: str) -> list[Adversary]:
    """Some adversaries of the suite."""
    return [adversary for adversary in suite() if adversary.name in names]


def small(folder: Path, data: str = ONE_PROBLEM, **parts: str) -> Task:
    """A tiny task whose validation is one problem: what an adversary leaves fits it."""
    return make_task(folder, data=data, **parts)


def broken(rows: list[Row]) -> dict[str, str]:
    """What the adversaries that got through have found."""
    return {row.adversary: row.found for row in rows if row.verdict == "broken"}


# --- the suite --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adversary", suite(), ids=lambda a: f"{a.kind}/{a.name}")
def test_each_says_what_it_attempts_and_what_must_become_of_it(adversary: Adversary) -> None:
    assert adversary.attempts.endswith(".") and len(adversary.attempts) < 200
    assert bool(adversary.expected) == bool(adversary.reason) == (adversary.kind == "refused")
    assert set(adversary.expected) <= {"crash", "timeout", "out_of_memory", "bad_output", "tampered"}
    assert adversary.phase in ("", "fit", "predict") and (adversary.kind == "refused" or not adversary.phase)
    imported = {
        alias.name if isinstance(line, ast.Import) else line.module
        for line in ast.walk(ast.parse(adversary.source))
        if isinstance(line, ast.Import | ast.ImportFrom)
        for alias in line.names
    }
    assert {str(name).split(".")[0] for name in imported} <= {*sys.stdlib_module_names, "adversary", "numpy"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\n", "P\nx = 1\n"),
        ("", "P\n"),
        ('"""Doc."""', '"""Doc."""\nP\n'),
        ('"""Doc\ntwo."""\nx = 1\n', '"""Doc\ntwo."""\nP\nx = 1\n'),
        ("# comment\nfrom __future__ import annotations\nx = 1\n", None),
        ('"""Doc."""\n\nfrom __future__ import (\n    annotations,\n)\nimport os\n', None),
        ('"""Doc."""; x = """a\nb"""\ny = 1\n', '"""Doc."""; x = """a\nb"""\nP\ny = 1\n'),
        ("import os\n'no docstring'\n", "P\nimport os\n'no docstring'\n"),
    ],
)
def test_the_prelude_comes_first(source: str, expected: str | None) -> None:
    found = in_front(source, "P\n")
    compile(found, "x", "exec")
    assert ast.get_docstring(ast.parse(found)) == ast.get_docstring(ast.parse(source))
    assert expected is None or found == expected
    before, _, after = found.partition("P\n")
    assert "__future__" not in after and "import os" not in before


# --- the whole suite on a small task ----------------------------------------------------------------------------------


def test_a_sound_task_passes(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path, soon: None
) -> None:
    task = small(open_folder / "task")
    said: list[str] = []
    checked = check(task, report=said.append)
    assert broken(checked.rows) == {} and checked.holds and checked.sandbox == "bwrap"
    assert [row.adversary for row in checked.rows] == [a.name for a in suite()]
    assert {row.verdict for row in checked.rows} == {"holds"}
    assert f"inert: {sum(a.kind == 'inert' for a in suite())} adversaries together again" in said
    assert json.loads(json.dumps(checked.to_json()))["holds"] is True


def test_a_task_without_fit(numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path) -> None:
    task = small(open_folder / "task", manifest=WITHOUT_FIT, main=CONSTANT)
    rows = check(task, adversaries=some("leftovers", "survivor", "fifo_out", "fifo_artefact", "disk")).rows
    assert {row.adversary: row.verdict for row in rows} == {
        "leftovers": "holds", "survivor": "holds", "disk": "holds", "fifo_out": "holds", "fifo_artefact": "not run",
    }  # fmt: skip


def test_what_a_unit_leaves_for_the_next_is_no_finding(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    main = problem_words.program(problem_words.SUM).text("main.py")
    task = small(open_folder / "task", problem_words.UNITS_DATA, manifest=problem_words.units(), main=main)
    rows = check(task, adversaries=some("results", "leftovers", "other_runs")).rows
    assert [row.verdict for row in rows] == ["holds"] * 3, broken(rows)


def test_without_a_sandbox_only_what_does_no_harm_is_tried(
    numpy_environment: Environment, open_folder: Path, soon: None
) -> None:
    task = small(open_folder / "task")
    chosen = some("patch_numpy", "exit_zero", "flood", "keys", "fifo_out", "nan", "memory", "forks", "network")
    checked = check(task, "none", adversaries=chosen)
    verdicts = {row.adversary: row.verdict for row in checked.rows}
    assert [name for name, verdict in verdicts.items() if verdict == "not run"] == ["keys", "forks", "network"]
    assert checked.holds and checked.note.startswith("without a sandbox")


# --- tasks that leak --------------------------------------------------------------------------------------------------


LEAKS = """import shutil
shutil.copy(out / "val/0/answers/y.npy", out / "val/0/inputs/hint.npy")
shutil.copy(out / "test/0/inputs/x.npy", out / "train/more.npy")
shutil.copy(Path(__file__).parent / "scorer.py", out / "train/metric.txt")
shutil.copy(Path(__file__).parent / "task.toml", out / "train/task.toml")
(out / "train/run.json").write_text("{}")
"""


def test_hidden_files_are_found_under_any_name(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    task = small(open_folder / "task", data=ONE_PROBLEM + LEAKS)
    (task.folder / "workspace/manifest.txt").write_bytes((task.folder / "task.toml").read_bytes())
    task = Task.load(task.folder)  # what its workspace holds is no secret
    rows = check(task, adversaries=some("hidden_answers", "hidden_inputs", "task_files", "other_runs", "keys")).rows
    assert broken(rows) == {
        "hidden_answers": "found answers of val/0 in /inputs/hint.npy",
        "hidden_inputs": "found inputs of test/0 in /train/more.npy",
        "task_files": "found scorer.py in /train/metric.txt",
        "other_runs": "found /train/run.json",
    }


BELIEVES = """import json
try:
    told = json.load(open(f'{artefact}/results.json'))['error']['value']
except OSError:
    told = np.load(f'{artefact}/level.npy')
x = np.load(f'{inputs}/x.npy')
np.save(f'{out}/prediction.npy', np.full(len(x), told))"""


def test_a_program_that_believes_a_result_file_is_found_among_others(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    task = small(open_folder / "task", manifest=MANIFEST, main=program(predict=BELIEVES))
    said: list[str] = []
    rows = check(task, adversaries=some("results", "flood", "exit_zero"), report=said.append).rows
    assert broken(rows) == {"results": "error is [2.5] and not [0.5]"}
    assert [line for line in said if "alone" in line] == [
        "inert: exit_zero alone", "inert: flood alone", "inert: results alone",
    ]  # fmt: skip


def test_a_baseline_that_is_never_the_same_is_named(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    task = small(open_folder / "task", manifest=MANIFEST, main=program(LEVEL % "time.time()"))
    rows = check(task, adversaries=some("flood")).rows
    assert broken(rows)["flood"].startswith("error is [")
    task = small(open_folder / "bad", main=program("1 / 0"))
    with pytest.raises(CannotRunHere, match="unchanged code cannot be measured"):
        check(task, adversaries=some("flood"))


def test_adversaries_that_never_act_hold_nothing(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    manifest = MANIFEST.replace('editable = ["main.py"]', 'editable = ["unused.py"]')
    folder = open_folder / "task"
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace/unused.py").write_text("LEVEL = 1\n")
    for name, text in (("task.toml", manifest), ("data.py", DATA), ("scorer.py", SCORER)):
        (folder / name).write_text(text)
    (folder / "workspace/main.py").write_text(program())
    rows = check(Task.load(folder), adversaries=some("flood", "nan")).rows
    assert broken(rows)["flood"] == "flood did not act in every phase: no editable file is imported there"
    assert broken(rows)["nan"].startswith("nan did not act")
    manifest = MANIFEST.replace('editable = ["main.py"]', 'editable = ["*.txt"]')
    (folder / "workspace/notes.txt").write_text("")
    (folder / "task.toml").write_text(manifest)
    with pytest.raises(InputError, match="names no Python file"):
        check(Task.load(folder), adversaries=some("flood"))


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_verdict_on_what_must_be_refused(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    def adversary(name: str, body: str, expect: str = "bad_output", says: str = "") -> Adversary:
        return Adversary(
            "refused", name, f'"""X."""\nfrom adversary import leave\nEXPECT = "{expect}"\n{says}\n{body}\n'
        )

    made = [
        adversary("scored", "leave()"),
        adversary("other_status", "1 / 0"),
        adversary("other_reason", "1 / 0", "crash", 'SAYS = "No space left"'),
        adversary("right", "1 / 0", "crash", 'SAYS = "ZeroDivision"'),
    ]
    rows = check(small(open_folder / "task", manifest=MANIFEST), adversaries=made).rows
    assert broken(rows) == {
        "scored": "it has a score; ok",
        "other_status": "another status; crash: ZeroDivisionError: division by zero",
        "other_reason": "refused for another reason; crash: ZeroDivisionError: division by zero",
    }
    assert rows[3].verdict == "holds"


def test_differences() -> None:
    one = Outcome("ok", metrics={"m": Measure([1.0], [None])})
    assert difference(one, one) == ""
    assert difference(Outcome("ok", metrics={"m": Measure([1.0 + 1e-15], [None])}), one).startswith("m is [1.0000000")
    assert difference(Outcome("ok"), one) == "m is [] and not [1.0]"
    assert (
        difference(Outcome("crash", error="fit ended\nTraceback\nKeyError: 1"), one) == "crash and not ok: KeyError: 1"
    )
    assert gist("fit wrote too much\nlabcoat-adversary ran disk\n") == "fit wrote too much"
    assert unlike(Adversary("refused", "x", 'EXPECT = "crash", "timeout"'), Outcome("timeout")) == ""


# --- solutions --------------------------------------------------------------------------------------------------------


def with_solutions(folder: Path, expected: str) -> Task:
    task = small(folder)
    for name, level in (("better", 2.5), ("low", 1.0)):
        (folder / "solutions" / name).mkdir(parents=True)
        (folder / "solutions" / name / "main.py").write_text(program(LEVEL % level))
    (folder / "solutions/expected.toml").write_text(expected)
    return task


def test_solutions_get_what_the_task_says(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    task = with_solutions(open_folder / "task", 'better = { val = 0.0 }\nlow = { status = "violation" }\n')
    rows = check(task, adversaries=[]).rows
    assert [(r.adversary, r.kind, r.expected, r.found, r.verdict) for r in rows] == [
        ("better", "neutralised", "ok, 0", "ok, 0", "holds"),
        ("low", "neutralised", "violation", "violation, 1.5", "holds"),
    ]
    (task.folder / "solutions/expected.toml").write_text("better = { val = 0.1, tolerance = 0.05 }\n")
    rows = check(task, adversaries=[]).rows
    assert [(row.verdict, row.found) for row in rows] == [
        ("broken", "ok, 0"), ("not run", "solutions/expected.toml does not say what it must get"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("better = {", "not valid TOML"),
        ("better = { value = 1 }", "better.value: no such field"),
        ('better = { status = "fine" }', "better.status"),
        ("worse = { val = 1 }", "worse: no such folder"),
    ],
)
def test_what_is_wrong_with_expected_toml_is_named(expected: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        check(with_solutions(tmp_path / "task", expected), adversaries=[])


def test_a_simulated_task_runs_no_code() -> None:
    checked = check(catalog.find("sim/valley"))
    assert checked.holds and checked.rows == [] and "no candidate code is executed" in checked.note


# --- controls: adversaries that hold nothing back would find nothing either -------------------------------------------


def outside(name: str, env: dict[str, str], fds: tuple[int, ...] = ()) -> str:
    """What an adversary says where nothing holds it back: as an ordinary process of this machine."""
    setup: dict[str, Any] = {"phases": {"fit": ["-c", ".*"]}, "adversaries": [(name, some(name)[0].source, "")]}
    text = (SUITE / "adversary.py").read_text()
    code = f"exec({text!r}, {{'SETUP': {setup | {'alone': False}!r}}})"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, pass_fds=fds, capture_output=True, text=True, check=True
    )
    return done.stderr


def test_outside_of_a_sandbox_they_do_find_something(tmp_path: Path) -> None:
    assert "found keys: variable OPENAI_API_KEY" in outside("keys", {"OPENAI_API_KEY": "x"})
    assert f"found other_processes: /proc/{os.getpid()}/cmdline" in outside("other_processes", {})
    with (tmp_path / "secret").open("w") as stream:
        assert f"descriptor {stream.fileno()}: {tmp_path}/secret" in outside("descriptors", {}, (stream.fileno(),))
    assert "ran keys\n" in outside("keys", {})


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "suite", lambda: some("flood", "nan"))
    task = with_solutions(open_folder / "task", "better = { val = 0.0 }\n")
    call = typer.testing.CliRunner().invoke
    found = call(app, ["check", str(task.folder)])
    assert found.exit_code == 0, found.output
    assert "test/tiny, sandbox bwrap: 3 holds, 1 not run (" in found.stdout
    assert "refused: nan (1 of 1)" in found.stderr
    (task.folder / "solutions/expected.toml").write_text("better = { val = 0.1 }\n")
    found = call(app, ["check", str(task.folder), "--json", "--sandbox", "bwrap"])
    assert found.exit_code == 6
    told = json.loads(found.stdout)
    assert told["holds"] is False and told["rows"][2] == {
        "adversary": "better", "kind": "neutralised", "attempts": "", "expected": "ok, 0.1", "found": "ok, 0",
        "verdict": "broken",
    }  # fmt: skip
    found = call(app, ["check", "sim/ridge"])
    assert found.exit_code == 0 and "nothing to try" in found.stdout


# --- slow -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_sound_task_passes_for_an_ordinary_user(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    small(open_folder / "task")
    script = f"""
        import json
        from pathlib import Path
        from labcoat import checking
        from labcoat.bench import environment
        from labcoat.task import Task
        from tests.bench.conftest import with_numpy
        with_numpy(environment.prepare([], lambda text: None))
        checked = checking.check(Task.load(Path({str(open_folder / "task")!r})))
        print(json.dumps(checked.to_json()))
    """
    said = run_as_nobody(numpy_environment, open_folder, textwrap.dedent(script))
    rows = [Row(**row) for row in json.loads(said)["rows"]]
    assert broken(rows) == {} and len(rows) == len(suite())


@pytest.mark.slow
@pytest.mark.skipif(probe() is not None, reason=str(probe()))
def test_adult_passes() -> None:
    command = [
        sys.executable,
        "-c",
        "from labcoat.cli.task import app; app()",
        "check",
        "fml/fairlearn-adult",
        "--json",
    ]
    done = subprocess.run(command, env=OUTSIDE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["holds"] and {row["verdict"] for row in told["rows"]} == {"holds"}
    assert [row["adversary"] for row in told["rows"] if row["kind"] == "neutralised"] == [
        "batch", "constant", "noop", "random", "reference",
    ]  # fmt: skip
