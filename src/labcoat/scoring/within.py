"""Rank correlation within tasks: tasks differ in everything, so what holds over all runs may hold within none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labcoat.scoring.comparison import ranks
from labcoat.scoring.paired import drawn_p

DRAWS = 4_000
"""Draws of the permutation test."""
FEWEST = 3
"""Runs of a task below which it has no say."""


class Within(NamedTuple):
    """The mean of the correlations within tasks."""

    rho: float
    """NaN without a task that has a say."""
    tasks: int
    p: float
    """Two-sided; NaN where ``rho`` is."""


def within_tasks(pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, seed: int = 0) -> Within:
    """Spearman's correlation of each task's runs, averaged; a task in which one of the two does not vary has no say.

    The p-value is that of exchanging the runs of each task: DRAWS draws, the observed one counted among them (Phipson
    and Smyth 2010). So it asks nothing of how tasks differ, but takes those of one task for exchangeable.

    >>> within_tasks({"a": ([1, 2, 3, 4], [1, 2, 3, 4]), "b": ([1, 2, 3], [5, 5, 5])})[:2]
    (1.0, 1)
    """
    rng = np.random.default_rng(seed)
    observed, drawn = [], np.zeros(DRAWS)
    for one, other in pairs.values():
        x, y = _standardised(one), _standardised(other)
        if len(x) >= FEWEST and x.any() and y.any():
            observed.append(round(float(x @ y), 12) + 0.0)  # ranks that cancel give 0, and no -4e-18
            drawn += rng.permuted(np.tile(y, (DRAWS, 1)), axis=1) @ x
    if not observed:
        return Within(math.nan, 0, math.nan)
    least = abs(math.fsum(observed)) - 1e-9  # sums in another order differ by rounding
    return Within(fmean(observed), len(observed), drawn_p(drawn, least))


def _standardised(values: Sequence[float]) -> NDArray[np.float64]:
    """Ranks with mean 0 and length 1, so that a product of two is their correlation; 0 where nothing varies."""
    found = np.array(ranks(values))
    found -= (len(found) + 1) / 2
    length = float(np.sqrt(found @ found))
    return found / length if length else found
