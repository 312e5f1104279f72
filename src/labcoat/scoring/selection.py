"""How much of a gain is real: what lies below the noise, and what is left of a selected gain on the test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from labcoat.scoring.intervals import Estimate, bootstrap

Gains = Sequence[tuple[float, float]]
"""Of each selected code its gain on validation and on test, in the same unit."""


def below_noise(gained: float, error: float | None) -> bool | None:
    """Whether a gain is no evidence: less than two standard errors of the baseline; None where one is not known.

    >>> below_noise(0.01, 0.006), below_noise(0.02, 0.006), below_noise(0.02, None)
    (True, False, None)
    """
    if error is None or math.isnan(error) or math.isnan(gained):
        return None
    return gained < 2 * error


@dataclass(frozen=True)
class Regression:
    """From validation to test: the winner's curse. Means are over tasks, intervals from a bootstrap over tasks."""

    runs: int
    validation: Estimate
    """Mean gain on validation."""
    test: Estimate
    """Mean gain on test."""
    survives: Estimate
    """The second as a share of the first; None where nothing was gained on validation."""
    slope: Estimate
    """Of the line of test gains over validation gains; None where these do not vary."""


def regression(by_task: Mapping[str, Gains]) -> Regression:
    """What is left on the test of the gains for which codes were selected.

    A selected code is the best of many measurements, so its validation gain is too high on average, the more so the
    noisier they are. Gains with a NaN are left out.
    """
    known = [[pair for pair in gains if not any(map(math.isnan, pair))] for gains in by_task.values()]
    pairs = [pair for gains in known for pair in gains]
    middle = tuple(map(fmean, zip(*pairs, strict=True))) if pairs else (0.0, 0.0)
    tasks = [_Task.of(gains, *middle) for gains in known if gains]
    return Regression(
        runs=len(pairs),
        validation=bootstrap(tasks, lambda sample: fmean([task.validation for task in sample])),
        test=bootstrap(tasks, lambda sample: fmean([task.test for task in sample])),
        survives=bootstrap(tasks, _share),
        slope=bootstrap(tasks, _slope),
    )


class _Task(NamedTuple):
    """What thousands of samples need of a task: its mean gains, and the sums of which a slope is made."""

    validation: float
    test: float
    least: float
    most: float
    sums: tuple[float, ...]
    """Of 1, x, y, x x and x y, with gains x on validation and y on test less those of all tasks, against rounding."""

    @classmethod
    def of(cls, gains: Gains, middle_x: float, middle_y: float) -> _Task:
        x, y = [pair[0] - middle_x for pair in gains], [pair[1] - middle_y for pair in gains]
        products = [math.fsum(a * b for a, b in zip(x, other, strict=True)) for other in (x, y)]
        sums = (len(gains), math.fsum(x), math.fsum(y), *products)
        return cls(fmean(pair[0] for pair in gains), fmean(pair[1] for pair in gains), min(x), max(x), sums)


def _share(tasks: Sequence[_Task]) -> float | None:
    selected = math.fsum([task.validation for task in tasks])
    return math.fsum([task.test for task in tasks]) / selected if selected > 0 else None


def _slope(tasks: Sequence[_Task]) -> float | None:
    if min([task.least for task in tasks]) == max([task.most for task in tasks]):
        return None
    n, x, y, xx, xy = map(sum, zip(*[task.sums for task in tasks], strict=True))
    varies = xx - x * x / n
    return float((xy - x * y / n) / varies) if varies > 1e-12 * xx else None  # else it is rounding that varies
