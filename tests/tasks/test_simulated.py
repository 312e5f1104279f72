"""The simulated tasks: pure functions with known optima."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from labcoat import catalog
from labcoat.bench.simulated import SimulatedBench, constants
from labcoat.errors import InputError
from labcoat.landscape import Knobs, Landscape
from labcoat.task import Task
from labcoat.tree import Code

OPTIMUM: dict[str, tuple[Mapping[str, object], Mapping[str, object]]] = {
    "sim/valley": (
        {"LEARNING_RATE": 0.02, "WEIGHT_DECAY": 0.004, "HIDDEN_UNITS": 96, "DROPOUT": 0.2, "EPOCHS": 20},
        {"LEARNING_RATE": 0.021, "WEIGHT_DECAY": 0.0037, "HIDDEN_UNITS": 101, "DROPOUT": 0.19, "EPOCHS": 22},
    ),
    "sim/ridge": (
        {"LEARNING_RATE": 0.032, "BATCH_SIZE": 16, "WIDTH": 512, "DEPTH": 8, "NORMALISE": True, "SCHEDULE": "cosine"},
        {"LEARNING_RATE": 0.0352, "BATCH_SIZE": 16, "WIDTH": 512, "DEPTH": 8, "NORMALISE": True, "SCHEDULE": "cosine"},
    ),
}
TASKS = list(OPTIMUM)
LANDSCAPES = [task.id for task in catalog.shipped() if "landscapes" in task.manifest.suites]


def knobs(task: str) -> Knobs:
    simulation = catalog.find(task).manifest.simulation
    assert simulation is not None and simulation.landscape is not None
    return simulation.landscape


def code(values: Mapping[str, object]) -> Code:
    return Code.of({"train.py": "".join(f"{name} = {value!r}\n" for name, value in values.items())})


def bench(task: str) -> SimulatedBench:
    return SimulatedBench(catalog.find(task))


@pytest.mark.parametrize("task", TASKS)
def test_the_optimum_of_the_manifest_is_reached_within_the_noise(task: str) -> None:
    found, manifest = bench(task), catalog.find(task).manifest
    val, test = (code(values) for values in OPTIMUM[task])
    with found.trial(val, 0) as (outcome, _):
        assert outcome.ok
        assert outcome.metrics[manifest.metric.name].mean == pytest.approx(manifest.references.optimum_val, abs=0.04)
    measured = found.test(None, test, 0).metrics[manifest.metric.name].mean
    assert measured == pytest.approx(manifest.references.optimum_test, abs=0.04)


@pytest.mark.parametrize("task", [*TASKS, *LANDSCAPES])
@pytest.mark.parametrize("seed", range(3))
def test_the_baseline_is_that_of_the_manifest(task: str, seed: int) -> None:
    references = catalog.find(task).manifest.references
    for outcome, card in (
        (bench(task).baseline(seed), references.baseline_val),
        (bench(task).baseline_test(seed), references.baseline_test),
    ):
        assert card is not None and outcome.ok
        value = outcome.metrics[catalog.find(task).metric.name].mean
        assert value == pytest.approx(card.mean, abs=max(5e-4 * card.mean, 4 * card.std))


@pytest.mark.parametrize("task", [*TASKS, *LANDSCAPES])
def test_the_same_trial_gives_the_same_number(task: str) -> None:
    assert bench(task).baseline(5) == bench(task).baseline(5)


def test_noise_depends_on_the_seed_only_on_the_ridge() -> None:
    assert bench("sim/valley").baseline(0).metrics == bench("sim/valley").baseline(1).metrics
    assert bench("sim/ridge").baseline(0).metrics != bench("sim/ridge").baseline(1).metrics


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"LEARNING_RATE": 9.0}, "training diverged"),
        ({"WIDTH": "wide"}, "WIDTH must be a positive number, found 'wide'"),
        ({"DEPTH": True}, "DEPTH must be a positive number"),
        ({"SCHEDULE": "sudden"}, "SCHEDULE must be one of"),
        ({"NORMALISE": 1}, "NORMALISE must be True or False"),
    ],
)
def test_what_cannot_run_crashes_with_its_reason(change: dict[str, object], message: str) -> None:
    with bench("sim/ridge").trial(code(dict(OPTIMUM["sim/ridge"][0]) | change), 0) as (outcome, _):
        assert outcome.status == "crash"
        assert message in outcome.error


def test_candidate_code_is_read_and_never_executed() -> None:
    text = "LEARNING_RATE = 0.1\nimport os\nos.abort()\nEPOCHS: int = 3\nWEIGHT_DECAY = 1 / 0\n"
    assert constants(Code.of({"train.py": text}), ["train.py"]) == {"LEARNING_RATE": 0.1, "EPOCHS": 3}


@pytest.mark.parametrize("text", ["SCHEDULE = 3", f"WIDTH = 1{'0' * 400}", "WIDTH = -1", "A = {[1]: 2}\nWIDTH = 0"])
def test_odd_constants_are_a_crash_of_the_candidate_and_never_ours(text: str) -> None:
    plain = code(OPTIMUM["sim/ridge"][0]).text("train.py")
    with bench("sim/ridge").trial(Code.of({"train.py": plain + text}), 0) as (outcome, _):
        assert outcome.status == "crash"


@pytest.mark.parametrize("task", LANDSCAPES)
def test_the_optimum_of_a_landscape_is_that_of_the_manifest(task: str) -> None:
    found, references = Landscape(knobs(task)), catalog.find(task).manifest.references
    for split, optimum in (("val", references.optimum_val), ("test", references.optimum_test)):
        assert found.height(dict.fromkeys(found.names, 1000.0) | found.optimum[split], split) == pytest.approx(optimum)


@pytest.mark.parametrize("task", LANDSCAPES)
def test_the_code_of_a_landscape_has_the_constants_of_its_formula(task: str) -> None:
    assert list(constants(catalog.find(task).baseline, ["train.py"])) == Landscape(knobs(task)).names


def test_the_twelve_turn_every_knob_and_span_dense_to_sparse() -> None:
    assert len(LANDSCAPES) == 12
    for name in set(Knobs.model_fields) - {"reach"}:
        assert len({getattr(knobs(task), name) for task in LANDSCAPES}) > 1, name
    densities = [catalog.find(task).manifest.references.opportunity_density for task in LANDSCAPES]
    assert all(density is not None for density in densities)
    found = sorted(density.mean for density in densities if density)
    assert found[0] < 0.05 and found[-1] > 0.3 and len(set(found)) > 10


def test_a_simulated_task_has_a_module_or_a_landscape(tmp_path: Path) -> None:
    folder = shutil.copytree(catalog.find("sim/desert").folder, tmp_path / "both")
    manifest = folder / "task.toml"
    manifest.write_text(manifest.read_text().replace("[metric]", '[simulation]\nmodule = "x.py"\n\n[metric]'))
    with pytest.raises(InputError, match="give a module of your own, or a landscape"):
        Task.load(folder)


def test_another_formula_is_another_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = catalog.find("sim/desert").hash, catalog.find("sim/ridge").hash
    changed = tmp_path / "landscape.py"
    changed.write_text("another formula")
    monkeypatch.setattr("labcoat.task.FORMULA", changed)
    assert catalog.find("sim/desert").hash != before[0]
    assert catalog.find("sim/ridge").hash == before[1]
