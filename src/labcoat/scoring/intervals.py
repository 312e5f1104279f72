"""Intervals by a bootstrap over clusters: whole tasks are drawn, with all that was measured on them.

Runs on one task are alike, so the tasks and not the runs are what a result rests on.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Cluster = TypeVar("Cluster")


@dataclass(frozen=True)
class Estimate:
    """A statistic with its interval; None where it cannot be computed. A single cluster has no interval."""

    value: float | None
    low: float | None
    high: float | None


def bootstrap(
    clusters: Sequence[Cluster],
    statistic: Callable[[Sequence[Cluster]], float | None],
    *,
    draws: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The statistic of ``clusters`` with its percentile interval.

    Args:
        clusters: one item for each cluster.
        statistic: computed on the clusters and on ``draws`` samples of as many clusters, drawn with replacement;
            samples on which it is None or NaN are left out.
        draws: number of samples.
        level: share of the samples inside the interval.
        seed: of the draws; equal seeds draw equal samples, so that statistics can be compared.

    >>> bootstrap([1.0, 2.0, 3.0], lambda sample: sum(sample) / len(sample))
    Estimate(value=2.0, low=1.0, high=3.0)
    """
    if not clusters:
        return Estimate(None, None, None)
    rng = random.Random(seed)
    found = (statistic(rng.choices(clusters, k=len(clusters))) for _ in range(draws))
    drawn = sorted(value for value in found if value is not None and not math.isnan(value))
    value = statistic(clusters)
    if value is not None and math.isnan(value):
        value = None
    if not drawn or len(clusters) < 2:
        return Estimate(value, None, None)
    tail = (1 - level) / 2
    return Estimate(value, quantile(drawn, tail), quantile(drawn, 1 - tail))


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the ordered values lie, between neighbours in proportion.

    >>> quantile([0.0, 1.0, 2.0], 0.25)
    0.5
    """
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
