"""Correlations within tasks, and how often luck gives one."""

from __future__ import annotations

import math
import random
from itertools import permutations, product
from statistics import fmean

import pytest

from labcoat.scoring.comparison import spearman
from labcoat.scoring.within import DRAWS, within_tasks

A = ([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0])
B = ([5.0, 1.0, 3.0], [2.0, 1.0, 9.0])


def test_the_mean_is_over_tasks_and_not_over_runs() -> None:
    found = within_tasks({"a": A, "b": B})
    assert found.rho == pytest.approx(fmean([spearman(*A) or 0, spearman(*B) or 0])) and found.tasks == 2


def test_the_p_value_is_that_of_all_exchanges_within_tasks() -> None:
    rho = [spearman(*task) or 0 for task in (A, B)]
    both = product(permutations(A[1]), permutations(B[1]))
    as_far = [abs((spearman(A[0], a) or 0) + (spearman(B[0], b) or 0)) >= sum(rho) - 1e-9 for a, b in both]
    exact = fmean(as_far)
    assert 0.1 < exact < 0.9
    assert within_tasks({"a": A, "b": B}).p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / DRAWS))


def test_tasks_without_a_say_change_nothing() -> None:
    few, flat = ([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0, 3.0], [7.0, 7.0, 7.0])
    assert within_tasks({"few": few, "a": A, "flat": flat}) == within_tasks({"a": A})
    nothing = within_tasks({"few": few, "flat": flat, "empty": ([], [])})
    assert math.isnan(nothing.rho) and math.isnan(nothing.p) and nothing.tasks == 0


def test_levels_of_tasks_do_not_matter() -> None:
    """Over all runs the two go together, as one task has more of both; within tasks they do not."""
    moved = {"a": A, "b": ([x + 100 for x in A[0]], [-y + 1000 for y in A[1]])}
    assert within_tasks(moved).rho == pytest.approx(0, abs=1e-12)


def test_luck_gives_a_small_p_as_often_as_it_says() -> None:
    rng = random.Random(1)

    def drawn() -> tuple[list[float], list[float]]:
        return [rng.random() for _ in range(6)], [rng.random() for _ in range(6)]

    p = [within_tasks({str(task): drawn() for task in range(3)}).p for _ in range(300)]
    assert 0.02 < fmean(value <= 0.05 for value in p) < 0.09
    assert 0.4 < fmean(value <= 0.5 for value in p) < 0.6


def test_ranks_that_cancel_correlate_by_nothing_at_all() -> None:
    assert within_tasks({"a": ([1, 2, 3, 4], [2, 4, 1, 3])}).rho == 0.0
