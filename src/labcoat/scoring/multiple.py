"""Many tests at once: p-values that count how many there were."""

from __future__ import annotations

import math
from collections.abc import Sequence


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values of Holm (1979): that any true hypothesis gets one below ``level`` has at most that probability.

    NaN is a test that could not be made; it stays NaN and does not count.

    >>> holm([0.01, 0.04, 0.03, 0.005])
    [0.03, 0.06, 0.06, 0.02]
    """
    found, highest = [math.nan] * len(p), 0.0
    order = _ascending(p)
    for before, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - before) * p[index]))
        found[index] = highest
    return found


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjusted p-values of Benjamini and Hochberg (1995): of those below ``level`` that share is false, on average.

    Holds for tests that are independent or depend on each other positively. NaN as in :func:`holm`.

    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.005])
    [0.02, 0.04, 0.04, 0.02]
    """
    found, lowest = [math.nan] * len(p), 1.0
    order = _ascending(p)
    for rank, index in reversed(list(enumerate(order, 1))):
        lowest = min(lowest, p[index] * len(order) / rank)
        found[index] = lowest
    return found


def _ascending(p: Sequence[float]) -> list[int]:
    return sorted((index for index, value in enumerate(p) if not math.isnan(value)), key=lambda index: p[index])
