"""The scale of a task: its metric as displayed, and gains over the baseline as shares of the metric's range.

Source: FML-bench 3.3 and appendix E.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from labcoat.manifest import Metric
from labcoat.scoring.improvement import gain

MOST = 1e100
"""An improvement beyond this is infinite: sums of its squares would be, and it is no sensible number anyway."""


def displayed(value: float | None, metric: Metric) -> float | None:
    """The value as it is displayed and scored; -log10(0) is infinite, and below 0 there is none.

    >>> displayed(1e-3, Metric(name="p", direction="higher", display="-log10"))
    3.0
    """
    if value is None or metric.display == "plain":
        return value
    if value <= 0:
        return math.inf if value == 0 else None
    return -math.log10(value)


@dataclass(frozen=True)
class Scale:
    """From the baseline of one split, in units of the range: everything is NaN where one of the two is not known."""

    metric: Metric
    direction: Literal["higher", "lower"]
    """As displayed: a logarithm with a minus turns it round."""
    baseline: float
    span: float
    """|p_best - p_worst|, where a worst value without a bound is the baseline."""

    @classmethod
    def of(cls, metric: Metric, baseline: float | None) -> Scale:
        """The scale of a split on which the untouched code measures ``baseline``."""
        turned: dict[str, Literal["higher", "lower"]] = {"higher": "lower", "lower": "higher"}
        direction = metric.direction if metric.display == "plain" else turned[metric.direction]
        base, best, worst = (_finite(displayed(value, metric)) for value in (baseline, metric.best, metric.worst))
        span = abs(best - (base if math.isnan(worst) else worst))
        return cls(metric, direction, base, span if span else math.nan)

    def improvement(self, value: float | None) -> float:
        """By how much a measured value is better than the baseline; negative if it is worse, NaN without a value."""
        shown = displayed(value, self.metric)
        found = math.nan if shown is None else gain(shown, self.baseline, self.direction) / self.span
        return math.copysign(math.inf, found) if abs(found) > MOST else found

    @property
    def headroom(self) -> float:
        """The largest improvement that the baseline leaves."""
        best = _finite(displayed(self.metric.best, self.metric))
        return abs(best - self.baseline) / self.span

    def error(self, error: float | None) -> float:
        """A standard error of the baseline's metric as one of improvements; of a logarithm by its slope there."""
        if error is None:
            return math.nan
        unit = 1.0 if self.metric.display == "plain" else 10**-self.baseline * math.log(10)
        return error / unit / self.span


def clamped(improvement: float) -> float:
    """Normalised improvement: not below 0; NaN stays NaN."""
    return improvement if math.isnan(improvement) else max(0.0, improvement)


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else math.nan
