"""Ranks over tasks: Friedman beside scipy, Nemenyi beside the printed table of critical values."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from labcoat.scoring.ranking import Ranking, rank_arms, studentized_range

# Critical values of the Nemenyi test for two to ten arms (Demšar 2006, table 5a).
AT_5 = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
AT_10 = [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]


@pytest.mark.parametrize(("level", "printed"), [(0.05, AT_5), (0.10, AT_10)])
def test_critical_values_as_printed(level: float, printed: list[float]) -> None:
    found = [studentized_range(1 - level, arms) / math.sqrt(2) for arms in range(2, 11)]
    assert found == pytest.approx(printed, abs=0.0015)


def test_a_critical_difference_as_published() -> None:
    """Four classifiers on fourteen sets are 1.25 apart (Demšar 2006, 3.2.2)."""
    rng = random.Random(1)
    found = rank_arms({name: {block: rng.random() for block in range(14)} for name in "abcd"})
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)


tables = st.integers(2, 12).flatmap(
    lambda blocks: st.lists(
        st.lists(st.integers(0, 4).map(float), min_size=blocks, max_size=blocks), min_size=3, max_size=6
    )
)


@given(tables)
def test_friedman_is_scipys_also_with_ties(rows: list[list[float]]) -> None:
    found = rank_arms({str(arm): dict(enumerate(row)) for arm, row in enumerate(rows)})
    if all(len(set(block)) == 1 for block in zip(*rows, strict=True)):
        assert found.statistic is found.p is None
        return
    expected = stats.friedmanchisquare(*rows)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)


def test_groups_that_are_not_told_apart() -> None:
    blocks = range(30)
    scores = {
        "best": {b: 3.0 + b % 2 for b in blocks},
        "next": {b: 3.0 + (b + 1) % 2 for b in blocks},
        "last": {b: 0.0 for b in blocks},
    }
    found = rank_arms(scores)
    assert found.mean_ranks == {"best": 1.5, "next": 1.5, "last": 3.0}
    assert found.alike == (("best", "next"),) and found.p is not None and found.p < 0.001


def test_groups_may_overlap_but_none_lies_in_another() -> None:
    rng = random.Random(4)
    found = rank_arms({str(arm): {b: rng.gauss(-arm * 0.5, 1) for b in range(20)} for arm in range(8)})
    assert len(found.alike) > 1
    assert not any(set(one) < set(other) for one in found.alike for other in found.alike)
    for group in found.alike:
        ends = [found.mean_ranks[name] for name in group]
        assert ends == sorted(ends) and ends[-1] - ends[0] < (found.critical_difference or 0)


def test_tasks_that_an_arm_lacks_are_left_out() -> None:
    found = rank_arms({"a": {"x": 1.0, "y": 2.0, "z": 1.0}, "b": {"x": 0.0, "y": math.nan}})
    assert found.blocks == 1 and found.mean_ranks == {"a": 1.0, "b": 2.0}


def test_nothing_to_rank() -> None:
    nothing = Ranking(0, {}, None, None, None, ())
    assert rank_arms({}) == nothing == rank_arms({"a": {}, "b": {"x": 1.0}})
    alone = rank_arms({"a": {"x": 1.0}})
    assert alone.p is None and not alone.alike
    tied = rank_arms({"a": {"x": 1.0, "y": 2.0}, "b": {"x": 1.0, "y": 2.0}})
    assert tied.mean_ranks == {"a": 1.5, "b": 1.5} and tied.p is None and tied.alike == (("a", "b"),)
