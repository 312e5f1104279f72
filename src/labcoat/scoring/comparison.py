"""Who beats whom: paired comparisons over the same cells (a task and a round, a landscape and a seed)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Cell = TypeVar("Cell", bound=Hashable)
Name = TypeVar("Name", bound=Hashable)


def win_shares(scores: Mapping[Name, Mapping[Cell, float]]) -> dict[Name, dict[Cell, float]]:
    """For each name and cell the share of the others that it beats strictly; a tie is no win for either.

    Greater scores are better. The mean over cells is the pairwise win rate (FML-bench appendix E); only cells that
    every name has are compared.

    >>> win_shares({"a": {1: 3.0, 2: 1.0}, "b": {1: 2.0, 2: 1.0}, "c": {1: 1.0, 2: 0.0}})["a"]
    {1: 1.0, 2: 0.5}
    """
    shared = [cell for cell in next(iter(scores.values()), {}) if all(cell in own for own in scores.values())]
    others = max(1, len(scores) - 1)
    return {
        name: {cell: sum(own[cell] > other[cell] for other in scores.values()) / others for cell in shared}
        for name, own in scores.items()
    }


@dataclass(frozen=True)
class WinRate:
    """How often a name beats another strictly, over all comparisons that can be made."""

    rate: float
    """NaN where nothing can be compared."""
    comparisons: int


def win_rates(scores: Mapping[Name, Mapping[Cell, float]]) -> dict[Name, WinRate]:
    """Pairwise win rates (FML-bench appendix E), each pair of names over the cells that both have.

    Where every name has every cell, this is the mean of :func:`win_shares`.

    >>> win_rates({"a": {1: 3.0, 2: 1.0}, "b": {1: 2.0, 2: 1.0}, "c": {1: 1.0}})["a"]
    WinRate(rate=0.6666666666666666, comparisons=3)
    """
    found = {}
    for name, own in scores.items():
        met = [
            own[cell] > score
            for other, theirs in scores.items()
            for cell, score in theirs.items()
            if other != name and cell in own
        ]
        found[name] = WinRate(sum(met) / len(met) if met else math.nan, len(met))
    return found


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1, the smallest first; equal values share the mean of their ranks.

    >>> ranks([0.3, 0.1, 0.3])
    [2.5, 1.0, 2.5]
    """
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value) + 1) / 2 for value in values]


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Rank correlation; None where one of the two does not vary.

    >>> spearman([1, 2, 3, 4], [10, 30, 20, 40])
    0.8
    """
    x, y = ranks(a), ranks(b)
    middle = (len(x) + 1) / 2
    across = sum((i - middle) * (j - middle) for i, j in zip(x, y, strict=True))
    spread = sum((i - middle) ** 2 for i in x) * sum((j - middle) ** 2 for j in y)
    return across / spread**0.5 if spread else None
