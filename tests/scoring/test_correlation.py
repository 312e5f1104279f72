"""What a rank correlation says, beside scipy."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from labcoat.scoring.comparison import spearman
from labcoat.scoring.correlation import correlation_interval, correlation_p, pairs_needed


def test_the_p_value_is_scipys() -> None:
    rng = random.Random(0)
    x = [rng.random() for _ in range(25)]
    y = [value + rng.gauss(0, 0.5) for value in x]
    rho = spearman(x, y)
    assert rho is not None
    assert correlation_p(rho, 25) == pytest.approx(stats.spearmanr(x, y).pvalue)


def test_an_interval_of_ranks_holds_the_truth_about_as_often_as_it_says() -> None:
    rng, held, truth = random.Random(3), 0, 6 / math.pi * math.asin(0.5 / 2)  # of normal pairs that correlate by 0.5
    for _ in range(300):
        x = [rng.gauss(0, 1) for _ in range(40)]
        found = correlation_interval(spearman(x, [0.5 * v + rng.gauss(0, 0.75**0.5) for v in x]) or 0.0, 40)
        assert found.low is not None and found.high is not None
        held += found.low <= truth <= found.high
    assert 276 <= held <= 297


@given(st.floats(-0.99, 0.99).filter(lambda rho: abs(rho) > 0.02))
def test_the_pairs_that_are_needed_are_the_fewest(rho: float) -> None:
    pairs = pairs_needed(rho)
    assert pairs is not None
    assert correlation_p(rho, pairs) < 0.05
    assert pairs == 3 or correlation_p(rho, pairs - 1) >= 0.05


def test_edges_of_a_correlation() -> None:
    assert math.isnan(correlation_p(0.5, 2)) and math.isnan(correlation_p(math.nan, 10))
    assert correlation_p(1.0, 10) == 0.0 and correlation_p(-1.0, 3) == 0.0
    assert pairs_needed(0.0) is None and pairs_needed(math.nan) is None
    assert correlation_interval(0.4, 3).low is None and correlation_interval(1.0, 30).high is None
