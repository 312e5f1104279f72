"""Corrections for many tests, on a published example, beside scipy, and as they must behave."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from labcoat.scoring.multiple import benjamini_hochberg, holm

# Benjamini and Hochberg 1995, section 4.1: fifteen hypotheses on a treatment of myocardial infarction.
INFARCTION = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
]  # fmt: skip

p_values = st.lists(st.floats(0, 1), max_size=20)


def test_the_example_of_benjamini_and_hochberg() -> None:
    assert sum(p < 0.05 for p in benjamini_hochberg(INFARCTION)) == 4
    assert sum(p < 0.05 for p in holm(INFARCTION)) == 3
    assert holm(INFARCTION)[:4] == pytest.approx([0.0015, 0.0056, 0.0247, 0.114])


@given(p_values.filter(bool))
def test_the_mild_one_is_scipys(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p).tolist())


@given(p_values)
def test_corrections_raise_and_keep_the_order(p: list[float]) -> None:
    strict, mild = holm(p), benjamini_hochberg(p)
    for own, raised, by_less in zip(p, strict, mild, strict=True):
        assert own - 1e-12 <= by_less <= raised + 1e-12 <= 1 + 2e-12
    for found in (strict, mild):
        assert all(found[i] <= found[j] + 1e-12 for i in range(len(p)) for j in range(len(p)) if p[i] < p[j])


@given(p_values, st.integers(0, 20), st.floats(0, 1))
def test_a_smaller_p_value_raises_no_other(p: list[float], at: int, share: float) -> None:
    if not p:
        return
    at %= len(p)
    smaller = [*p[:at], p[at] * share, *p[at + 1 :]]
    for correct in (holm, benjamini_hochberg):
        assert correct(smaller)[at] <= correct(p)[at] + 1e-12


def test_a_test_that_could_not_be_made_does_not_count() -> None:
    for correct in (holm, benjamini_hochberg):
        found = correct([0.01, math.nan, 0.03])
        assert math.isnan(found[1]) and [found[0], found[2]] == correct([0.01, 0.03])
        assert correct([]) == [] and correct([0.2]) == [0.2]
