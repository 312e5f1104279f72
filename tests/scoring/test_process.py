"""The score of one run: the values that the released functions gave, where the paper differs, and every edge."""

from __future__ import annotations

import doctest
import json
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labcoat.manifest import Metric
from labcoat.scoring import arms, scale
from labcoat.scoring.measures import Mode
from labcoat.scoring.process import DIMENSIONS, Score, score, shape
from labcoat.scoring.runs import Reading, Run
from tests.scoring.made import ACCURACY, ERROR, FORGETTING, made, placed

NAN = math.nan
UNLEARNING_VAL, UNLEARNING_TEST = 2.2001e-71, 1.5725e-167


def of(run: Run, mode: Mode = "paper") -> Score:
    return score(run, None, mode)


def process(run: Run, name: str, mode: Mode = "paper") -> float:
    return of(run, mode).process[name]


def same(found: float, expected: float) -> bool:
    return found == pytest.approx(expected, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("module", [arms, scale], ids=lambda module: module.__name__)
def test_examples_hold(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted and not found.failed


def test_the_twelve_process_metrics_have_the_papers_names_and_order() -> None:
    assert list(of(made()).process) == list(DIMENSIONS)
    assert len(DIMENSIONS) == 12


# --- released: the values of the original functions -----------------------------------------------------------------

TRAJECTORIES: list[tuple[Sequence[float | None], float, float, float, float]] = [
    ([0.4, None, 0.6, 0.5, 0.6, 0.7, 0.65, None, 0.7, 0.7], 0.13, 3, 0.5, 10),
    ([0.1, 0.2], 0, NAN, NAN, 2),
    ([0.9], 0.4, 1, 0, 1),
    ([NAN, 0.6, math.inf, 0.7], 0.1, 2, 0.5, 4),
]


@pytest.mark.parametrize(("values", "area", "first", "late", "best"), TRAJECTORIES)
def test_trajectories_as_released(
    values: Sequence[float | None], area: float, first: float, late: float, best: float
) -> None:
    run = made(values)
    assert same(process(run, "AUC-over-steps", "released"), area)
    assert same(process(run, "First-improvement step", "released"), first)
    assert same(process(run, "Late-gain fraction", "released"), late)
    assert same(process(run, "Best-improvement step", "released"), best)


def test_a_trajectory_is_scored_as_it_is_displayed() -> None:
    run = made([1e-60, 0.0, 1e-20, 1.0], baseline=UNLEARNING_VAL, metric=FORGETTING)
    assert same(process(run, "AUC-over-steps", "released"), 0.504653)
    assert process(run, "Best-improvement step") == 4


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize(
    ("test", "baseline", "metric", "expected"),
    [
        (1.0, 1.328343, ERROR, 0.2471827),
        (0.05, 0.3213666, Metric(name="auc", direction="lower", best=0.0, worst=0.5), 0.5427333),
        (1e-3, UNLEARNING_TEST, FORGETTING, 0.9820148),
        (0.4, 0.5, ACCURACY, 0.0),
    ],
)
def test_normalised_test_improvement(test: float, baseline: float, metric: Metric, expected: float, mode: Mode) -> None:
    assert same(of(made(test=test, test_baseline=baseline, metric=metric), mode).improvement, expected)


# --- where paper and released code differ ---------------------------------------------------------------------------


def test_the_best_step_is_the_first_that_reached_the_best_value_or_the_last_as_released() -> None:
    run = made(TRAJECTORIES[0][0])
    assert process(run, "Best-improvement step") == 6
    assert process(run, "Best-improvement step", "released") == 10


def test_the_valid_step_ratio_is_over_the_budget_or_over_the_recorded_steps_as_released() -> None:
    run = made([0.6, "crash", "bad_output", "violation"], budget=10)
    assert process(run, "Valid step ratio") == 0.1
    assert process(run, "Valid step ratio", "released") == 0.5  # a result without a metric is a success there


def test_area_and_late_gain_are_over_the_budget_or_over_the_recorded_steps_as_released() -> None:
    run = made([0.5, 0.6, 0.6, 0.7], budget=10)
    assert same(process(run, "AUC-over-steps"), (0.1 + 0.1 + 0.2 * 7) / 10)
    assert same(process(run, "AUC-over-steps", "released"), 0.1)
    assert same(process(run, "Late-gain fraction"), 0)
    assert same(process(run, "Late-gain fraction", "released"), 0.5)


def test_exploration_is_that_of_valid_codes_or_of_all_as_released() -> None:
    run = made([0.6, "crash"])
    geometry = placed(run)
    shapes = {"paper": geometry.shape["paper"], "released": dict.fromkeys(geometry.shape["paper"], 2.0)}
    split = type(geometry)(shapes, geometry.distances)  # type: ignore[arg-type]
    assert score(run, split, "paper").process["Exploration Reach"] == 1
    assert score(run, split, "released").process["Exploration Reach"] == 2


def test_codes_that_are_all_equal_have_no_dimension_or_0_as_released() -> None:
    equal = [[0.1, 0.2]] * 3
    assert math.isnan(shape(equal, [0.0, 0.0], "paper")["Effective dim"])
    assert shape(equal, [0.0, 0.0], "released")["Effective dim"] == 0


def test_a_run_without_a_test_has_no_improvement_or_that_of_the_baseline_as_released() -> None:
    run = made(test=None)
    assert math.isnan(of(run).test) and math.isnan(of(run).improvement)
    assert (of(run, "released").test, of(run, "released").improvement) == (0.5, 0.0)
    assert "no test" in of(run).notes


def test_an_underflow_on_test_is_no_improvement_or_undefined_as_released() -> None:
    run = made(test=0.0, test_baseline=UNLEARNING_TEST, metric=FORGETTING)
    assert of(run).improvement == 0
    assert math.isnan(of(run, "released").improvement)


@pytest.mark.parametrize("mode", ["paper", "released"])
def test_where_the_worst_value_has_no_bound_the_improvement_has_none_unless_the_metric_stops_at_its_best(
    mode: Mode,
) -> None:
    """The released code's note on a range of [0, 1] holds for metrics that cannot pass their best value."""
    assert of(made(test=0.0, test_baseline=0.4, metric=ERROR), mode).improvement == 1
    assert of(made(test=-0.4, test_baseline=0.4, metric=ERROR), mode).improvement == 2


def test_the_gap_has_a_signed_form_of_which_the_process_metric_is_the_size() -> None:
    run = made([0.9], test=0.7)
    assert same(of(run).signed_gap, 0.4 - 0.2)
    assert same(process(run, "Val-test |gap|"), 0.2)
    worse = made([0.6], test=0.8)
    assert same(of(worse).signed_gap, -0.2)
    assert same(process(worse, "Val-test |gap|"), 0.2)


def test_the_gap_is_that_of_the_tested_code_or_of_the_best_value_as_released() -> None:
    run = made([0.9, 0.8], chosen=2, test=0.7)  # confirmed on further seeds, the second was better
    assert same(process(run, "Val-test |gap|"), 0.1)
    assert same(process(run, "Val-test |gap|", "released"), 0.2)


# --- edges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("status", ["crash", "violation", "timeout"])
def test_a_test_that_is_not_valid_counts_as_the_baseline_and_says_so(status: str, mode: Mode) -> None:
    found = of(made(test=status), mode)
    assert (found.test, found.improvement) == (0.5, 0.0)
    assert f"test: {status}; counts as the baseline" in found.notes


def test_a_broken_constraint_has_no_value_for_the_trajectory() -> None:
    run = made([0.6], trials=(Reading("violation", 0.9), Reading("ok", 0.6)), chosen=2)
    assert process(run, "First-improvement step") == 2
    assert process(run, "Best-improvement step") == 2


def test_a_run_without_a_valid_step_stands_on_its_baseline() -> None:
    found = of(made(["crash", "crash"], test=0.5))
    assert found.process["AUC-over-steps"] == found.process["Valid step ratio"] == found.process["Val-test |gap|"] == 0
    undefined = ["First-improvement step", "Late-gain fraction", "Best-improvement step"]
    assert all(math.isnan(found.process[name]) for name in undefined)
    assert score(made(["crash"]), placed(made(["crash"])), "paper").density == 0


def test_a_run_without_a_step_has_no_trajectory() -> None:
    run = made([], budget=5, test=None)
    assert math.isnan(process(run, "AUC-over-steps"))
    assert process(run, "Valid step ratio") == 0
    assert math.isnan(process(run, "Valid step ratio", "released"))
    assert "not finished: 0 of 5 steps" in of(run).notes


def test_without_a_range_or_a_baseline_everything_that_is_a_share_of_it_is_undefined() -> None:
    for run in (
        made(metric=Metric(name="own", direction="lower")),
        made(baseline=None, test_baseline=None),
        made(baseline=0.0, test_baseline=0.0, metric=ERROR),
    ):
        for mode in ("paper", "released"):
            found = score(run, placed(run), mode)
            assert all(math.isnan(value) for value in (found.improvement, found.validation, found.density))
            assert math.isnan(found.process["AUC-over-steps"]) and found.process["Valid step ratio"] == 1
            assert any("baseline" in note for note in found.notes)


def test_costs_are_in_millions_and_hours() -> None:
    assert process(made(), "Token cost (M)") == 2
    assert process(made(), "Wall-clock time (h)") == 0.5


def test_density_is_that_of_valid_steps_with_gains_over_the_baseline() -> None:
    run = made([0.7, "crash", 0.4, 0.9])
    assert same(score(run, placed(run, [1.0, 9.0, 4.0, 2.0]), "paper").density, (0.2 + 0.4) / (0.25 + 0.5))
    assert math.isnan(score(made([0.7]), placed(made([0.7]), [0.0]), "paper").density)


def test_a_run_is_the_same_after_it_was_kept() -> None:
    run = made(["crash", 0.7, 0.6], metric=FORGETTING, marks=("simulated",))
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run


# --- properties -----------------------------------------------------------------------------------------------------

walks = st.lists(st.one_of(st.none(), st.floats(-8, 8).map(lambda x: round(x, 3))), min_size=1, max_size=30)
shifts = st.floats(-4, 4).map(lambda x: round(x, 3))
factors = st.sampled_from([0.25, 0.5, 2.0, 8.0])  # powers of two: ties stay ties


@given(walks, st.integers(0, 30))
def test_the_area_lies_between_0_and_the_final_improvement_whatever_the_budget(
    values: list[float | None], more: int
) -> None:
    run = made(values, baseline=0.0, test=0.0, test_baseline=0.0, budget=len(values) + more)
    found = of(run)
    best = max((value for value in values if value is not None), default=0.0)
    assert 0 <= found.process["AUC-over-steps"] <= max(0.0, best) + 1e-12
    late = found.process["Late-gain fraction"]
    assert math.isnan(late) or 0 <= late <= 1


@given(walks, shifts, factors, st.sampled_from(["paper", "released"]))
def test_a_metric_on_another_affine_scale_gives_the_same_score(
    values: list[float | None], shift: float, factor: float, mode: Mode
) -> None:
    def at(value: float) -> float:
        return value * factor + shift

    metric = Metric(name="m", direction="higher", best=at(1.0), worst=at(0.0))
    moved = made(
        [None if value is None else at(value) for value in values],
        baseline=at(0.5), test=at(0.6), test_baseline=at(0.5), metric=metric,
    )  # fmt: skip
    one, other = of(made(values), mode), of(moved, mode)
    assert same(other.improvement, one.improvement)
    assert same(other.process["AUC-over-steps"], one.process["AUC-over-steps"])
    assert same(other.process["Val-test |gap|"], one.process["Val-test |gap|"])


@given(walks, st.sampled_from(["paper", "released"]))
def test_lower_is_better_is_the_mirror_of_higher(values: list[float | None], mode: Mode) -> None:
    metric = Metric(name="m", direction="lower", best=-1.0, worst=0.0)
    mirrored = made(
        [None if value is None else -value for value in values],
        baseline=-0.5, test=-0.6, test_baseline=-0.5, metric=metric,
    )  # fmt: skip
    assert of(mirrored, mode).process == pytest.approx(of(made(values), mode).process, abs=1e-6, nan_ok=True)


@given(walks, st.integers(1, 20))
def test_crashes_at_the_end_change_nothing_but_what_counts_steps(values: list[float | None], more: int) -> None:
    longer = of(made([*values, *[None] * more], budget=40 + more))
    shorter = of(made(values, budget=40 + more))
    assert longer.process == pytest.approx(shorter.process, abs=1e-6, nan_ok=True)


def test_the_noise_of_the_smallest_baseline_that_is_shown_as_a_logarithm_is_a_number() -> None:
    found = score(made(test=0.5, test_baseline=5e-324, metric=FORGETTING, noise=1e-3), None, "paper")
    assert found.noise > 0 and not math.isnan(found.noise)
    plain = score(made(test=0.5, test_baseline=0.01, metric=FORGETTING, noise=1e-3), None, "paper")
    assert plain.noise == pytest.approx(1e-3 / (0.01 * math.log(10)) / 2)
