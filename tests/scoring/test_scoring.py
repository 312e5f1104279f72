"""Scoring: the paper's formulas on its own numbers, and what an interval means."""

from __future__ import annotations

import doctest
import math
import random
from types import ModuleType

import pytest

from labcoat.scoring import (
    comparison,
    correlation,
    improvement,
    intervals,
    multiple,
    opportunity,
    paired,
    ranking,
    selection,
    split,
)
from labcoat.scoring.comparison import spearman, win_shares
from labcoat.scoring.improvement import gain, headroom, normalised, of_headroom, position
from labcoat.scoring.intervals import Estimate, bootstrap
from labcoat.scoring.opportunity import opportunity_density


@pytest.mark.parametrize(
    "module",
    [comparison, correlation, improvement, intervals, multiple, opportunity, paired, ranking, selection, split],
    ids=lambda module: module.__name__,
)
def test_examples_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


@pytest.mark.parametrize(
    ("value", "baseline", "direction", "best", "worst", "expected"),
    [
        (1.0, 1.328343, "lower", 0.0, 1.328343, 0.2471827),  # no bound: the baseline is the worst
        (0.05, 0.3213666, "lower", 0.0, 0.5, 0.5427333),
        (0.5, 0.6, "higher", 1.0, 0.0, 0.0),
    ],
)
def test_normalised_improvement(
    value: float, baseline: float, direction: str, best: float, worst: float, expected: float
) -> None:
    gained = gain(value, baseline, "lower" if direction == "lower" else "higher")
    assert normalised(gained, best, worst) == pytest.approx(expected, abs=1e-6)


def test_nowhere_to_go_is_no_improvement() -> None:
    assert normalised(0.3, best=1.0, worst=1.0) == 0.0
    assert position(0.7, baseline=1.0, optimum=1.0) == 0.0


@pytest.mark.parametrize(("baseline", "best", "worst"), [(0.75, 1.0, 0.0), (71.0, 0.0, 71.0), (0.321, 0.0, 0.5)])
def test_relative_to_the_headroom_an_improvement_is_a_position(baseline: float, best: float, worst: float) -> None:
    value = 0.7 * baseline + 0.3 * best
    improvement = normalised(gain(value, baseline, "higher" if best > baseline else "lower"), best, worst)
    share = of_headroom(improvement, headroom(baseline, best, worst))
    assert share == pytest.approx(0.3) == position(value, baseline, best)


def test_a_baseline_at_the_best_leaves_nothing() -> None:
    assert of_headroom(0.0, headroom(1.0, best=1.0, worst=0.0)) == 0.0


def test_density_is_that_of_improving_steps_by_their_share_of_the_farthest() -> None:
    assert opportunity_density([0.2, 0.4, -1.0], [1.0, 2.0, 4.0]) == pytest.approx(0.6 / (0.25 + 0.5))
    assert opportunity_density([], []) == 0.0


def test_density_does_not_see_how_often_a_step_improves() -> None:
    rare = opportunity_density([0.2] + [-0.1] * 99, [1.0] * 100)
    always = opportunity_density([0.2] * 100, [1.0] * 100)
    assert rare == pytest.approx(always)


def test_win_shares_of_all_average_to_at_most_a_half() -> None:
    rng = random.Random(3)
    scores = {name: {cell: rng.choice([0.0, 0.5, 1.0]) for cell in range(50)} for name in "abcd"}
    shares = win_shares(scores)
    rates = {name: sum(own.values()) / len(own) for name, own in shares.items()}
    assert 0 < sum(rates.values()) / 4 < 0.5  # ties are wins of nobody


def test_only_shared_cells_are_compared() -> None:
    assert win_shares({"a": {1: 1.0, 2: 0.0}, "b": {1: 0.0}}) == {"a": {1: 1.0}, "b": {1: 0.0}}


def test_rank_correlation_of_what_does_not_vary_is_unknown() -> None:
    assert spearman([1, 1, 1], [1, 2, 3]) is None
    assert spearman([1, 2, 3], [3, 2, 1]) == -1


def mean(sample: object) -> float:
    values = list(sample)  # type: ignore[call-overload]
    return float(sum(values) / len(values))


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = random.Random(1)
    held = 0
    for trial in range(100):
        found = bootstrap([rng.gauss(0.5, 1) for _ in range(30)], mean, draws=200, seed=trial)
        assert found.low is not None and found.high is not None
        held += found.low <= 0.5 <= found.high
    assert 86 <= held <= 100


def test_samples_that_have_no_value_are_left_out() -> None:
    found = bootstrap([1.0, math.nan], lambda sample: math.fsum(sample) / len(sample))
    assert found == Estimate(None, 1.0, 1.0)
    assert bootstrap([math.nan], lambda sample: sample[0]) == Estimate(None, None, None)


def test_equal_seeds_draw_equal_samples() -> None:
    clusters = [n**1.5 for n in range(20)]
    assert bootstrap(clusters, mean) == bootstrap(clusters, mean)
    assert bootstrap(clusters, mean) != bootstrap(clusters, mean, seed=1)


def test_without_clusters_there_is_no_estimate() -> None:
    assert bootstrap([], mean) == Estimate(None, None, None)


def test_a_statistic_that_some_samples_do_not_have_is_estimated_on_the_others() -> None:
    pairs = [(1, 1), (2, 3), (3, 2)]
    found = bootstrap(pairs, lambda sample: spearman([a for a, _ in sample], [b for _, b in sample]))
    assert found.value == 0.5
    assert found.low == -1 and found.high == 1
