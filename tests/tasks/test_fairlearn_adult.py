"""The task fml/fairlearn-adult: manifest, splits, scorer, and its programs."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import math
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import labcoat
from labcoat.bench import dataset
from labcoat.bench.environment import Environment, outside, prepare
from labcoat.task import Task

FOLDER = Path(labcoat.__file__).parent / "tasks/fml/fairlearn-adult"
SOLUTIONS = sorted(path.name for path in (FOLDER / "solutions").iterdir() if path.is_dir())


def load(name: str) -> ModuleType:
    """Import one of the task's files; its folder is no package."""
    spec = importlib.util.spec_from_file_location(f"fairlearn_adult_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


data, scorer = load("data"), load("scorer")


@pytest.fixture(scope="module")
def environment() -> Environment:
    """The task's own, where its programs run."""
    return prepare(Task.load(FOLDER).manifest.environment.requires, print)


def score(prediction: Any, label: Any, group: Any) -> dict[str, dict[str, float]]:
    """Score plain lists."""
    answers = {"label": np.array(label), "group": np.array(group)}
    scores: dict[str, dict[str, float]] = scorer.score({"prediction": np.array(prediction)}, answers)
    return scores


# --- manifest


def test_manifest_loads_and_only_the_algorithm_is_editable() -> None:
    task = Task.load(FOLDER)
    assert task.id == "fml/fairlearn-adult"
    assert task.editable_files(task.baseline) == ["algorithm.py"]
    assert task.manifest.constraint[0].metric == "balanced_accuracy"
    assert all("==" in requirement for requirement in task.manifest.environment.requires)


def test_manifest_agrees_with_the_scripts() -> None:
    manifest = Task.load(FOLDER).manifest
    (source,) = manifest.data.source
    assert Path(source.member).name == data.SOURCE
    scores = score([0, 1, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1])
    assert {manifest.metric.name, manifest.constraint[0].metric} <= set(scores)
    train = data.ROWS - sum(data.SIZES.values())
    features = data.COLUMNS - len(data.LABELS)
    for number in (f"{train:,}", f"{data.SIZES['val']:,}", f"{data.SIZES['test']:,}", f"(rows, {features})"):
        assert number in manifest.prompt.text


def test_noop_differs_from_the_baseline_in_comments_only() -> None:
    noop, baseline = ((FOLDER / place / "algorithm.py").read_text() for place in ("solutions/noop", "workspace"))
    assert noop != baseline
    assert ast.dump(ast.parse(noop)) == ast.dump(ast.parse(baseline))


# --- scorer


def test_scores_and_errors_equal_closed_forms() -> None:
    # Group 0: 4 rows, 1 positive. Group 1: 5 rows, 3 positive.
    scores = score([1, 0, 0, 0, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1, 1])
    assert scores["demographic_parity_difference"]["value"] == pytest.approx(3 / 5 - 1 / 4)
    assert scores["demographic_parity_difference"]["se"] == pytest.approx(math.sqrt(0.6 * 0.4 / 5 + 0.25 * 0.75 / 4))
    # True positives 3 of 4, true negatives 4 of 5.
    assert scores["balanced_accuracy"]["value"] == pytest.approx((3 / 4 + 4 / 5) / 2)
    assert scores["balanced_accuracy"]["se"] == pytest.approx(0.5 * math.sqrt(0.75 * 0.25 / 4 + 0.8 * 0.2 / 5))
    assert scores["accuracy"]["value"] == pytest.approx(7 / 9)
    assert scores["accuracy"]["se"] == pytest.approx(math.sqrt(7 / 9 * 2 / 9 / 9))
    # True positive rates 1/2 and 1, false positive rates 0 and 1/3: the first differ more.
    assert scores["equalized_odds_difference"]["value"] == pytest.approx(1 / 2)
    assert scores["equalized_odds_difference"]["se"] == pytest.approx(math.sqrt(0.5 * 0.5 / 2))


def test_parity_has_no_sign() -> None:
    label, group = [0, 1, 0, 1, 0, 1], [0, 0, 0, 1, 1, 1]
    one, two = score([1, 1, 0, 0, 0, 1], label, group), score([0, 0, 1, 1, 1, 0], label, group)
    name = "demographic_parity_difference"
    assert one[name]["value"] == two[name]["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("constant", [0, 1])
def test_constant_has_parity_and_half_the_balanced_accuracy(constant: int) -> None:
    scores = score([constant] * 4, [0, 1, 0, 1], [0, 0, 1, 1])
    assert scores["demographic_parity_difference"] == {"value": 0, "se": 0}
    assert scores["balanced_accuracy"] == {"value": 0.5, "se": 0}


def test_a_group_without_positive_predictions_counts() -> None:
    scores = score([0, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1])
    assert scores["demographic_parity_difference"]["value"] == 0.5


def test_booleans_and_integers_score_the_same() -> None:
    label, group = [0, 1, 0, 1], [0, 0, 1, 1]
    assert score([True, False, True, True], label, group) == score([1, 0, 1, 1], label, group)


@pytest.mark.parametrize("bad", [2, -1])
def test_other_values_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=f"other than 0 and 1, such as {bad}"):
        score([0, 1, bad, 1], [0, 1, 0, 1], [0, 0, 1, 1])


def test_answers_that_define_no_rate_are_refused() -> None:
    with pytest.raises(ValueError, match="no rows of group 1 with label 1"):
        score([0, 1, 1], [0, 1, 0], [0, 0, 1])


def test_resampling_agrees_with_the_standard_errors() -> None:
    rng = np.random.default_rng(0)
    label, group = rng.integers(0, 2, 3000), rng.integers(0, 2, 3000)
    prediction = rng.random(3000) < 0.2 + 0.3 * label + 0.2 * group
    scores = score(prediction, label, group)
    drawn = []
    for _ in range(400):
        rows = rng.integers(3000, size=3000)
        drawn.append(score(prediction[rows], label[rows], group[rows]))
    for name in ("demographic_parity_difference", "balanced_accuracy", "accuracy"):
        assert np.std([d[name]["value"] for d in drawn]) == pytest.approx(scores[name]["se"], rel=0.15)


# --- data


def table(rows: int) -> tuple[list[str], np.ndarray]:
    """A made-up table in the layout of the source."""
    rng = np.random.default_rng(0)
    label, group = rng.random(rows) < 0.25, rng.random(rows) < 0.67
    columns = ["age", "sex_Female", "sex_Male", "salary_<=50K", "salary_>50K"]
    return columns, np.stack([np.arange(rows), ~group, group, ~label, label], axis=1).astype(np.int64)


def archive(folder: Path, columns: list[str], values: np.ndarray) -> Path:
    """Write a table as the source has it: one CSV in a zip file."""
    lines = [",".join(columns), *(",".join(map(str, row)) for row in values.tolist())]
    path = folder / "adult.csv.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("adult.csv", "\n".join(lines) + "\n")
    return path


def test_splits_are_disjoint_complete_and_stratified() -> None:
    _, values = table(1000)
    label, group = values[:, 4], values[:, 2]
    parts = data.split(label, group, {"val": 200, "test": 300}, seed=1)
    assert {name: len(rows) for name, rows in parts.items()} == {"val": 200, "test": 300, "train": 500}
    assert sorted(np.concatenate(list(parts.values()))) == list(range(1000))
    for rows in parts.values():
        assert not (np.diff(rows) > 0).all(), "rows are shuffled"
        for stratum in range(4):
            share = float((2 * label + group == stratum).mean())
            assert abs((2 * label[rows] + group[rows] == stratum).sum() - share * len(rows)) <= 2


def test_split_is_the_same_everywhere() -> None:
    _, values = table(1000)
    parts = data.split(values[:, 4], values[:, 2], {"val": 200, "test": 300}, seed=1)
    digest = hashlib.sha256(b"".join(rows.astype("<i8").tobytes() for rows in parts.values())).hexdigest()
    assert digest[:16] == "07b23d20527efc73"
    other = data.split(values[:, 4], values[:, 2], {"val": 200, "test": 300}, seed=2)
    assert list(other["val"]) != list(parts["val"])


def test_answers_are_in_no_input(tmp_path: Path) -> None:
    columns, values = data.read(archive(tmp_path, *table(1000)))
    data.write(columns, values, {"val": 200, "test": 300}, tmp_path)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    held_out = {
        f"{role}/0/{name}"
        for role in ("val", "test")
        for name in (
            "inputs/features.npy", "inputs/group.npy", "answers/label.npy", "answers/group.npy", "problem.json"
        )
    }  # fmt: skip
    train = {f"train/{name}" for name in ("features.npy", "label.npy", "group.npy", "columns.json")}
    assert found == held_out | train | {data.SOURCE}
    assert json.loads((tmp_path / "train/columns.json").read_text()) == ["age", "sex_Female", "sex_Male"]
    assert json.loads((tmp_path / "val/0/problem.json").read_text()) == {"rows": 200}
    # The made-up column "age" is the row's number, so it shows that features, group and label stay together.
    for role, label in (("train", "label.npy"), ("val/0/inputs", "../answers/label.npy")):
        features = np.load(tmp_path / role / "features.npy")
        assert features.dtype == np.float32
        rows = features[:, 0].astype(int)
        assert (np.load(tmp_path / role / label) == values[rows, 4]).all()
        assert (np.load(tmp_path / role / "group.npy") == values[rows, 2]).all()


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        (["salary_<=50K", "sex_Male"], 3, "columns missing: salary_>50K"),
        (["salary_<=50K", "salary_>50K", "sex_Male"], 3, "expected 45222 rows x 106 columns, found 3 x 3"),
    ],
)
def test_another_table_is_refused(tmp_path: Path, columns: list[str], rows: int, message: str) -> None:
    archive(tmp_path, columns, np.zeros((rows, len(columns)), int))
    argv = [sys.executable, FOLDER / "data.py", "--sources", tmp_path, "--out", tmp_path / "out"]
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, env=os.environ | CLEAN)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_real_splits_have_the_published_bytes(tmp_path: Path, environment: Environment) -> None:
    manifest = Task.load(FOLDER).manifest
    source = tmp_path / data.SOURCE
    source.symlink_to(dataset.fetch(manifest.data.source[0], environment, print))
    assert hashlib.sha256(source.read_bytes()).hexdigest() == manifest.data.source[0].sha256
    columns, values = data.read(source)
    data.check(columns, values)
    data.write(columns, values, data.SIZES, tmp_path / "made")
    digest = hashlib.sha256()
    for path in sorted((tmp_path / "made").rglob("*.npy")):
        digest.update(path.read_bytes())
    assert digest.hexdigest()[:16] == "5691a42e46fc646f"


# --- programs

CLEAN = {"PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["baseline", *SOLUTIONS])
def test_fit_and_predict(name: str, tmp_path: Path, environment: Environment) -> None:
    columns, values = table(1000)
    data.write(columns, values, {"val": 200, "test": 300}, tmp_path)
    code = Task.load(FOLDER).baseline
    if name != "baseline":
        code = code.put({"algorithm.py": (FOLDER / "solutions" / name / "algorithm.py").read_bytes()})
    code.write(tmp_path / "work")
    artefact, out = tmp_path / "artefact", tmp_path / "out"
    artefact.mkdir()
    out.mkdir()
    train, inputs = tmp_path / "train", tmp_path / "val/0/inputs"
    for phase in Task.load(FOLDER).manifest.phase:
        argv = [part.format(train=train, inputs=inputs, artefact=artefact, out=out, seed=0) for part in phase.argv]
        command = [environment.interpreter(outside), *argv[1:]]
        subprocess.run(command, cwd=tmp_path / "work", check=True, env=os.environ | CLEAN)
    prediction = np.load(out / "prediction.npy", allow_pickle=False)
    assert prediction.shape == (200,)
    assert prediction.dtype == bool
    assert [path.name for path in artefact.iterdir()] == ["model.pkl"]
