"""What a rank correlation says, given how many independent pairs it rests on."""

from __future__ import annotations

import math
from statistics import NormalDist

from labcoat.scoring.intervals import Estimate


def correlation_p(rho: float, pairs: int) -> float:
    """Two-sided p-value by the t approximation, with ``pairs - 2`` degrees of freedom; NaN for fewer than three pairs.

    >>> round(correlation_p(0.115, 324), 4)
    0.0386
    """
    from scipy.special import stdtr

    if pairs < 3 or math.isnan(rho):
        return math.nan
    if abs(rho) >= 1:
        return 0.0
    return float(2 * stdtr(pairs - 2, -abs(rho) * math.sqrt((pairs - 2) / (1 - rho**2))))


def correlation_interval(rho: float, pairs: int, level: float = 0.95) -> Estimate:
    """Interval by Fisher's transform, with the variance 1.06 / (pairs - 3) of ranks (Fieller, Hartley, Pearson 1957).

    >>> found = correlation_interval(0.115, 324)
    >>> [round(end, 3) for end in (found.low, found.high)]
    [0.003, 0.224]
    """
    if pairs < 4 or abs(rho) >= 1:
        return Estimate(rho, None, None)
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(1.06 / (pairs - 3))
    return Estimate(rho, math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))


def pairs_needed(rho: float, level: float = 0.05) -> int | None:
    """The fewest independent pairs with which ``rho`` is significant; None where no number is enough.

    Runs on one task are alike, so they are worth fewer: pairs divided by the design effect, 1 + (runs of a task - 1) x
    their intraclass correlation (Kish 1965).

    >>> pairs_needed(0.5)
    16
    """
    if rho == 0 or math.isnan(rho):
        return None
    low, high = 2, 3
    while correlation_p(rho, high) >= level:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if correlation_p(rho, middle) >= level else (low, middle)
    return high
