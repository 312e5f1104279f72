"""Is one arm ahead of another, or was it luck? Paired tests over the tasks that both have.

A table of an arm holds one value for each cell, a task and a round; greater values are better. Rounds on one task are
alike, so a task is what counts as independent: tests on single cells promise more than their data hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EXACT = 20
"""Up to so many differences all signs are tried."""
DRAWS = 20_000
"""Above that, so many draws of signs."""


class Cell(NamedTuple):
    """Where a value was measured."""

    task: str
    round: int


def differences(one: Mapping[Cell, float], other: Mapping[Cell, float]) -> dict[str, list[float]]:
    """By how much ``one`` is ahead of ``other`` in the rounds of each task; cells that one of them lacks are left out.

    NaN is a value that is missing.

    >>> differences({Cell("a", 0): 3.0, Cell("a", 1): 2.0, Cell("b", 0): 1.0}, {Cell("a", 0): 1.0, Cell("a", 1): 2.5})
    {'a': [2.0, -0.5]}
    """
    found: dict[str, list[float]] = {}
    for cell, value in one.items():
        ahead = value - other.get(cell, math.nan)
        if not math.isnan(ahead):
            found.setdefault(cell.task, []).append(ahead)
    return found


def leads(by_task: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean lead on each task."""
    return {task: fmean(ahead) for task, ahead in by_task.items()}


@dataclass(frozen=True)
class Signs:
    """How often the first of two was ahead, behind and neither, and the p-value of that."""

    ahead: int
    behind: int
    ties: int
    p: float


def sign_test(ahead: Sequence[float]) -> Signs:
    """Exact two-sided sign test; ties say nothing for either and are left out (Conover 1999, 3.4).

    >>> sign_test([0.2, 0.1, 0.4, 0.0, 0.3, 0.2])
    Signs(ahead=5, behind=0, ties=1, p=0.0625)
    """
    wins, losses = sum(value > 0 for value in ahead), sum(value < 0 for value in ahead)
    decided = wins + losses
    tail = sum(math.comb(decided, k) for k in range(min(wins, losses) + 1)) / 2**decided
    return Signs(wins, losses, len(ahead) - decided, min(1.0, 2 * tail))


def permutation_test(parts: Sequence[float], *, seed: int = 0) -> float:
    """Two-sided p-value of the sum of ``parts``, if each of them could as well have had the other sign.

    Give the leads on the tasks to exchange the arms task by task; give all differences, each divided by their number on
    its task, to exchange them cell by cell. Up to EXACT parts that are not 0 all signs are tried; above that DRAWS
    draws, see :func:`drawn_p`. 1 where nothing differs.

    >>> permutation_test([1.0, 2.0, 3.0])
    0.25
    """
    moved = np.array([abs(part) for part in parts if part])
    observed = abs(math.fsum(parts)) - 1e-12 * float(moved.sum())  # sums in another order differ by rounding
    if len(moved) <= EXACT:
        sums = np.zeros(1)
        for size in moved:
            sums = np.concatenate([sums - size, sums + size])
        return float(np.mean(np.abs(sums) >= observed))
    signs = np.random.default_rng(seed).integers(0, 2, (DRAWS, len(moved)), dtype=np.int8)
    return drawn_p((2.0 * signs - 1.0) @ moved, observed)


def drawn_p(drawn: NDArray[np.float64], observed: float) -> float:
    """Share of the draws that are at least as far from 0, the observed one among them (Phipson and Smyth 2010)."""
    return float((1 + np.sum(np.abs(drawn) >= observed)) / (1 + len(drawn)))


@dataclass(frozen=True)
class Without:
    """The mean lead when one task is left out: its range, and the tasks without which the order is not the same."""

    low: float | None
    high: float | None
    flips: tuple[str, ...]


def leave_one_out(ahead: Mapping[str, float]) -> Without:
    """Leave out each task in turn. A task flips the order if without it the mean lead has another sign, or is 0.

    >>> leave_one_out({"a": 0.5, "b": -0.1, "c": -0.2})
    Without(low=-0.15000000000000002, high=0.2, flips=('a',))
    """
    if len(ahead) < 2:
        return Without(None, None, ())
    whole = math.fsum(ahead.values())
    left = {task: math.fsum(v for t, v in ahead.items() if t != task) / (len(ahead) - 1) for task in ahead}
    flips = tuple(task for task, value in left.items() if _sign(value) != _sign(whole))
    return Without(min(left.values()), max(left.values()), flips)


def _sign(value: float) -> int:
    return (value > 1e-12) - (value < -1e-12)
