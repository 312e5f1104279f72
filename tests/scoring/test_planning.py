"""Power, the winner's curse and the noise floor: on cases whose answer is known."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labcoat.scoring.power import MOST, needed, needed_by
from labcoat.scoring.selection import below_noise, regression


def test_half_a_deviation_takes_32_tasks() -> None:
    """The textbook's number: (1.96 + 0.84)² / 0.5² = 31.4."""
    ahead = [-1.0, 0.0, 1.0]
    lead = 0.5 * statistics.stdev(ahead)
    assert needed([value + lead for value in ahead], [0.0], 1).tasks == 32


def test_rounds_that_were_found_enough_separate_four_times_in_five() -> None:
    rng, tasks, lead, within = random.Random(8), 12, 0.1, 0.04
    plan = needed([lead] * tasks, [within], 3)
    assert plan.between == 0 and plan.rounds == plan.rounds_here
    assert plan.rounds is not None
    seen = 0
    for _ in range(500):
        mean = statistics.fmean(rng.gauss(lead, within**0.5) for _ in range(tasks) for _ in range(plan.rounds))
        seen += mean / (within / tasks / plan.rounds) ** 0.5 > 1.96
    assert 0.76 <= seen / 500 <= 0.88


def test_where_tasks_differ_too_much_no_rounds_help_but_tasks_do() -> None:
    plan = needed([1.0, -1.0, 1.0, -0.8], [0.01], 3)
    assert plan.rounds is None and plan.rounds_here == 8
    assert plan.tasks is not None and plan.tasks > 100


def test_arms_without_a_difference_are_never_told_apart() -> None:
    plan = needed([0.5, -0.5], [0.1], 3)
    assert (plan.lead, plan.rounds_here, plan.rounds, plan.tasks) == (0.0, None, None, None)
    rounding = needed([0.1 + 0.2, -0.3], [0.1], 3)
    assert rounding.lead != 0 and rounding.rounds_here is rounding.tasks is None


def test_what_is_not_known_is_none() -> None:
    plan = needed_by({"a": [0.1], "b": [0.3]})
    assert plan.within is plan.between is plan.rounds is plan.rounds_here is None
    assert plan.tasks is not None
    alone = needed_by({"a": [0.1, 0.2, 0.3]})
    assert alone.between is alone.tasks is alone.rounds is None and alone.rounds_here is not None
    assert needed_by({}).lead == 0.0


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=10), st.floats(0.001, 1), st.floats(0.01, 5))
def test_more_noise_never_needs_fewer_rounds(ahead: list[float], within: float, more: float) -> None:
    quiet, loud = needed(ahead, [within], 3), needed(ahead, [within + more], 3)
    assert (quiet.rounds_here or MOST) <= (loud.rounds_here or MOST)


@pytest.mark.parametrize(("gained", "marked"), [(-0.1, True), (0.019, True), (0.02, False), (0.5, False)])
def test_gains_below_two_standard_errors_are_marked(gained: float, marked: bool) -> None:
    assert below_noise(gained, 0.01) is marked


def test_where_the_noise_is_not_known_nothing_is_marked() -> None:
    assert below_noise(0.1, None) is below_noise(0.1, float("nan")) is below_noise(float("nan"), 0.1) is None


def selected(rng: random.Random, noise: float, worth: float) -> tuple[float, float]:
    """Validation and test gain of the best of 50 codes on validation."""
    codes = [rng.gauss(0, worth) for _ in range(50)]
    gain, code = max((code + rng.gauss(0, noise), code) for code in codes)
    return gain, code + rng.gauss(0, noise)


def test_of_pure_noise_nothing_survives_and_without_noise_everything() -> None:
    rng = random.Random(9)
    curse = regression({str(task): [selected(rng, 1.0, 0.0) for _ in range(3)] for task in range(20)})
    assert curse.runs == 60
    assert curse.survives.low is not None and curse.survives.high is not None
    assert curse.survives.low < 0 < curse.survives.high < 0.3
    clean = regression({str(task): [selected(rng, 0.0, 1.0) for _ in range(3)] for task in range(20)})
    assert clean.survives.value == pytest.approx(1) and clean.slope.value == pytest.approx(1)


def test_as_much_noise_as_worth_leaves_half() -> None:
    rng = random.Random(10)
    found = regression({str(task): [selected(rng, 1.0, 1.0) for _ in range(5)] for task in range(40)})
    assert found.survives.low is not None and found.survives.high is not None
    assert found.survives.low < 0.5 < found.survives.high


def test_a_regression_without_a_gain_or_a_run_is_unknown() -> None:
    found = regression({"a": [(0.0, 0.1), (float("nan"), 1.0)], "b": []})
    assert found.runs == 1 and found.survives.value is None and found.slope.value is None
    assert found.test.value == 0.1
    assert regression({}).validation.value is None


def test_the_slope_is_that_of_the_line_through_all_runs() -> None:
    rng = random.Random(11)
    by_task = {str(task): [selected(rng, 1.0, 1.0) for _ in range(1 + task % 3)] for task in range(7)}
    v, t = zip(*(pair for gains in by_task.values() for pair in gains), strict=True)
    assert regression(by_task).slope.value == pytest.approx(statistics.linear_regression(v, t).slope)


def test_gains_that_differ_by_rounding_alone_give_no_slope() -> None:
    """A sample of the bootstrap may hold two tasks alone whose equal gains were computed in two ways."""
    found = regression({"a": [(0.3, 0.1)], "b": [(0.1 + 0.2, 0.2)], "c": [(0.9, 0.3)]}).slope
    assert found.value == pytest.approx(0.25)
    assert found.low == pytest.approx(1 / 6) and found.high == pytest.approx(1 / 3)
