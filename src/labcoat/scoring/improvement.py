"""How much better a measurement is than the baseline, on scales that tasks share."""

from __future__ import annotations

from typing import Literal


def gain(value: float, baseline: float, direction: Literal["higher", "lower"]) -> float:
    """By how much ``value`` is better than ``baseline``, in the metric's own unit; negative if it is worse."""
    return value - baseline if direction == "higher" else baseline - value


def normalised(gained: float, best: float, worst: float) -> float:
    """Normalised improvement: the gain over the range of the metric, at least 0 (FML-bench 3.3).

    Where the worst value has no bound, give the baseline for it (FML-bench appendix E).

    >>> normalised(gain(0.7, 0.5, "higher"), best=1.0, worst=0.0)
    0.19999999999999996
    >>> normalised(gain(80, 72, "lower"), best=0, worst=72)
    0.0
    """
    return max(0.0, gained / abs(best - worst)) if best != worst else 0.0


def position(value: float, baseline: float, optimum: float) -> float:
    """Where ``value`` lies between the baseline (0) and the optimum (1); negative if it is worse than the baseline.

    0 where the baseline is at the optimum and there is no way to go.

    >>> position(0.1, baseline=0.5, optimum=0.1), position(0.6, baseline=0.5, optimum=1.0)
    (1.0, 0.19999999999999996)
    """
    return (value - baseline) / (optimum - baseline) if optimum != baseline else 0.0


def headroom(baseline: float, best: float, worst: float) -> float:
    """The largest normalised improvement that the baseline leaves; 1 where the baseline stands for the worst value.

    An improvement divided by it is relative to the headroom: the share of the way to the best value, as
    :func:`position`, and like it independent of the range of the metric.

    >>> headroom(0.75, best=1.0, worst=0.0), headroom(71, best=0, worst=71)
    (0.25, 1.0)
    """
    return normalised(abs(best - baseline), best, worst)


def of_headroom(improvement: float, room: float) -> float:
    """An improvement as a share of its headroom; 0 where there is none.

    >>> of_headroom(0.125, headroom(0.75, best=1.0, worst=0.0))
    0.5
    """
    return improvement / room if room else 0.0
