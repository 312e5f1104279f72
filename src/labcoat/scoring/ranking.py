"""Who is best over tasks whose scales cannot be compared: ranks within each task, and how far apart they must be."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from labcoat.scoring.comparison import ranks

Block = TypeVar("Block", bound=Hashable)


@dataclass(frozen=True)
class Ranking:
    """Mean ranks, 1 the best, with what they say together (Friedman) and of two arms (Nemenyi)."""

    blocks: int
    """Tasks that all arms have."""
    mean_ranks: Mapping[str, float]
    """The best first."""
    statistic: float | None
    p: float | None
    """Of Friedman's test that all arms are alike; None where no task tells any two apart."""
    critical_difference: float | None
    """Arms whose mean ranks differ by less are not told apart at this level."""
    alike: tuple[tuple[str, ...], ...]
    """The largest groups of neighbours that are not told apart."""


def rank_arms(scores: Mapping[str, Mapping[Block, float]], level: float = 0.05) -> Ranking:
    """Rank the arms on each block, give one for each task; greater scores are better, ties share their ranks.

    Friedman's statistic is corrected for ties (Conover 1999, 5.8). The critical difference is Nemenyi's (Demšar 2006):
    it holds for all pairs at once, and is on the careful side.
    """
    shared = [
        block
        for block in next(iter(scores.values()), {})
        if all(not math.isnan(own.get(block, math.nan)) for own in scores.values())
    ]
    arms, n = len(scores), len(shared)
    if arms < 2 or not n:
        return Ranking(n, {}, None, None, None, ())
    table = np.array([ranks([-own[block] for own in scores.values()]) for block in shared])
    means = dict(sorted(zip(scores, table.mean(axis=0).tolist(), strict=True), key=lambda item: item[1]))
    spread = float(((table - (arms + 1) / 2) ** 2).sum())
    between = float(((table.sum(axis=0) - n * (arms + 1) / 2) ** 2).sum())
    statistic = (arms - 1) * between / spread if spread else None
    apart = studentized_range(1 - level, arms) / math.sqrt(2) * math.sqrt(arms * (arms + 1) / (6 * n))
    return Ranking(
        blocks=n,
        mean_ranks=means,
        statistic=statistic,
        p=None if statistic is None else _chi_square_tail(statistic, arms - 1),
        critical_difference=apart,
        alike=_alike(means, apart),
    )


def _alike(means: Mapping[str, float], apart: float) -> tuple[tuple[str, ...], ...]:
    names, groups, reached = list(means), [], 0
    for start, first in enumerate(names):
        end = sum(means[name] - means[first] < apart for name in names)
        if end > max(reached, start + 1):
            groups.append(tuple(names[start:end]))
            reached = end
    return tuple(groups)


def studentized_range(share: float, arms: int) -> float:
    """The quantile of the range of ``arms`` standard normal draws.

    >>> round(studentized_range(0.95, 2), 3), round(studentized_range(0.95, 10), 3)
    (2.772, 4.474)
    """
    from scipy.special import ndtr  # scipy.stats has it too, and takes half a second to load

    lowest, step = -8.0, 0.01
    z = np.arange(lowest, -lowest, step)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        inside = arms * step * float((density * (ndtr(z) - ndtr(z - middle)) ** (arms - 1)).sum())
        low, high = (middle, high) if inside < share else (low, middle)
    return low


def _chi_square_tail(value: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, value))
