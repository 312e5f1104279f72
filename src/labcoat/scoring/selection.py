"""How much of a gain is real: what lies below the noise, and what is left of a selected gain on the test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

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
    tasks = [gains for gains in known if gains]
    return Regression(
        runs=sum(map(len, tasks)),
        validation=bootstrap(tasks, lambda sample: _mean(sample, 0)),
        test=bootstrap(tasks, lambda sample: _mean(sample, 1)),
        survives=bootstrap(tasks, _share),
        slope=bootstrap(tasks, _slope),
    )


def _mean(tasks: Sequence[Gains], of: int) -> float:
    return fmean(fmean(pair[of] for pair in gains) for gains in tasks)


def _share(tasks: Sequence[Gains]) -> float | None:
    selected = _mean(tasks, 0)
    return _mean(tasks, 1) / selected if selected > 0 else None


def _slope(tasks: Sequence[Gains]) -> float | None:
    pairs = [pair for gains in tasks for pair in gains]
    x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return linear_regression(x, y).slope if min(x) < max(x) else None
