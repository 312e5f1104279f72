"""Paired tests, on published examples, beside scipy, and on their edges."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from labcoat.scoring.paired import Cell, Without, differences, leads, leave_one_out, permutation_test, sign_test
from labcoat.scoring.split import split_test

# Darwin's maize, crossed minus self-fertilised in eighths of an inch (Fisher 1935, 17 and 21).
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]

leads_of_tasks = st.lists(st.integers(-9, 9).map(float), max_size=10)


def test_fishers_permutation_test_of_darwins_maize() -> None:
    assert permutation_test(MAIZE) == 1726 / 2**15
    assert sign_test(MAIZE).p == pytest.approx(stats.binomtest(13, 15).pvalue)


def test_many_differences_are_drawn_and_not_tried_out() -> None:
    rng = random.Random(2)
    shifted = [rng.gauss(0.3, 1) for _ in range(60)]
    drawn = permutation_test(shifted)
    assert drawn == permutation_test(shifted)
    assert drawn == pytest.approx(stats.ttest_1samp(shifted, 0).pvalue, abs=0.01)
    assert permutation_test([1.0] * 60) == 1 / 20_001


def test_only_what_both_have_is_compared() -> None:
    one = {Cell("a", 0): 1.0, Cell("a", 1): math.nan, Cell("a", 2): 5.0, Cell("b", 0): 2.0, Cell("c", 0): 1.0}
    other = {Cell("a", 0): 0.5, Cell("a", 1): 1.0, Cell("b", 0): math.nan, Cell("c", 0): 3.0}
    assert differences(one, other) == {"a": [0.5], "c": [-2.0]}
    assert differences(one, {}) == {}
    assert leads({"a": [1.0, 2.0], "b": [3.0]}) == {"a": 1.5, "b": 3.0}


@pytest.mark.parametrize("ahead", [[], [0.0], [0.0, 0.0, 0.0], [1.0], [-0.1]])
def test_nothing_or_a_single_task_is_no_evidence(ahead: list[float]) -> None:
    assert permutation_test(ahead) == sign_test(ahead).p == 1.0


def test_ties_are_seen_through_rounding() -> None:
    assert permutation_test([0.1, 0.2, -0.3]) == 1.0


@given(leads_of_tasks, st.randoms())
def test_neither_the_order_of_tasks_nor_that_of_arms_matters(ahead: list[float], rng: random.Random) -> None:
    shuffled = rng.sample(ahead, len(ahead))
    assert permutation_test(shuffled) == permutation_test(ahead) == permutation_test([-value for value in ahead])
    assert sign_test(shuffled) == sign_test(ahead)
    turned = sign_test([-value for value in ahead])
    assert (turned.ahead, turned.behind, turned.p) == (
        sign_test(ahead).behind,
        sign_test(ahead).ahead,
        sign_test(ahead).p,
    )


@given(leads_of_tasks.filter(bool))
def test_permutations_agree_with_scipy(ahead: list[float]) -> None:
    def total(sample: object, axis: int) -> object:
        return np.sum(sample, axis=axis)  # type: ignore[call-overload]

    expected = (
        stats.permutation_test((ahead,), total, permutation_type="samples", n_resamples=np.inf).pvalue
        if len(ahead) > 1
        else 1.0
    )
    assert permutation_test(ahead) == pytest.approx(expected)


@given(leads_of_tasks)
def test_tasks_without_a_difference_change_nothing(ahead: list[float]) -> None:
    assert permutation_test([*ahead, 0.0, 0.0]) == permutation_test(ahead)
    assert sign_test([*ahead, 0.0]).p == sign_test(ahead).p


def test_a_task_that_carries_the_order_is_named() -> None:
    found = leave_one_out({"big": 0.9, "small": -0.1, "other": -0.2})
    assert found.flips == ("big",)
    assert (found.low, found.high) == pytest.approx((-0.15, 0.4))


def test_an_order_that_becomes_a_tie_is_another() -> None:
    assert leave_one_out({"a": 0.3, "b": 0.1, "c": -0.1}).flips == ("a",)
    assert leave_one_out({"a": 0.1, "b": 0.1}).flips == ()


def test_one_task_cannot_be_left_out() -> None:
    assert leave_one_out({"a": 1.0}) == leave_one_out({}) == Without(None, None, ())


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-9, 9).map(float), min_size=2))
def test_the_lead_lies_between_those_without_a_task(ahead: dict[str, float]) -> None:
    found = leave_one_out(ahead)
    assert found.low is not None and found.high is not None
    assert found.low - 1e-9 <= sum(ahead.values()) / len(ahead) <= found.high + 1e-9


def test_a_split_is_tested_as_scipy_does() -> None:
    rng = random.Random(5)
    one, other = [rng.gauss(0, 1) for _ in range(6)], [rng.gauss(1, 1) for _ in range(6)]

    def apart(x: object, y: object, axis: int) -> object:
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)  # type: ignore[call-overload]

    expected = stats.permutation_test((one, other), apart, n_resamples=np.inf).pvalue
    assert split_test(one, other) == split_test(other, one) == pytest.approx(expected)


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=8), st.integers(1, 7))
def test_a_split_in_unlike_parts_counts_all_others(values: list[int], size: int) -> None:
    size = min(size, len(values) - 1)
    total = Fraction(sum(values))
    apart = [
        abs(Fraction(part, size) - (total - part) / (len(values) - size))
        for part in map(sum, combinations(values, size))
    ]
    expected = sum(value >= apart[0] for value in apart) / len(apart)
    assert split_test(values[:size], values[size:]) == pytest.approx(expected)


def test_a_split_of_many_is_drawn_and_one_of_nothing_says_nothing() -> None:
    rng = random.Random(6)
    one, other = [rng.gauss(0.5, 1) for _ in range(20)], [rng.gauss(0, 1) for _ in range(20)]
    assert split_test(one, other) == pytest.approx(stats.ttest_ind(one, other).pvalue, abs=0.02)
    assert split_test([], [1.0]) == split_test([1.0], []) == split_test([1.0, 1.0], [1.0]) == 1.0
