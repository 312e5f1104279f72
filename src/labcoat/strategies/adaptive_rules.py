"""The rules of AdaptiveSearch: what a branch is, when the search has stalled, and what guides a branch."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from labcoat.lab import Metric, Trial
from labcoat.scoring import measures


@dataclass(eq=False)
class Idea:
    """An idea of a branch and its trials, one for each step; the last decides whether it is kept."""

    text: str
    branch: int
    trials: list[Trial] = field(default_factory=list)
    kept: bool = False


@dataclass(eq=False)
class Branch:
    """One line of greedy search. Number 0 is the greedy phase."""

    number: int
    origin: Trial
    log: list[Idea]
    """All ideas of the search, shared by all branches."""

    @property
    def ideas(self) -> list[Idea]:
        """Its own ideas."""
        return [idea for idea in self.log if idea.branch == self.number]

    @property
    def incumbents(self) -> list[Trial]:
        """Its origin and what was kept since, each better than the one before."""
        return [self.origin, *(idea.trials[-1] for idea in self.ideas if idea.kept)]

    @property
    def trials(self) -> list[Trial]:
        """All its trials."""
        return [trial for idea in self.ideas for trial in idea.trials]

    @property
    def kept(self) -> list[bool]:
        """Whether each of its trials was kept."""
        return [idea.kept and trial is idea.trials[-1] for idea in self.ideas for trial in idea.trials]

    def failing(self, attempts: int) -> Idea | None:
        """The last idea if it failed and has attempts left."""
        last = self.ideas[-1] if self.ideas else None
        return last if last and not last.trials[-1].ok and len(last.trials) < attempts else None


@dataclass(frozen=True)
class Rule:
    """When a branch is guided: it kept at most ``kept`` of its last ``window`` steps, and its codes have met the bound.

    For rule A that is a reach of at most ``bound``, for rule B an effective dimension of at least ``bound``.
    """

    window: int
    kept: int
    bound: float

    def few(self, kept: Sequence[bool]) -> bool:
        """Whether few of the last steps were kept."""
        return sum(kept[-self.window :]) <= self.kept


@dataclass(frozen=True)
class Guidance:
    """What the rules found before a step of a branch: the hint (empty, A, B or AB), and why."""

    hint: str
    reach: float
    dimension: float


def curve(trials: Sequence[Trial], baseline: Trial, metric: Metric) -> measures.Floats:
    """Improvement of the best so far over the baseline after each trial, (n,), as a share of the metric's range."""
    logarithmic = metric.display == "-log10"

    def shown(value: float) -> float:
        sign = 1.0 if metric.direction == "higher" else -1.0  # of what is shown, more is better
        return sign * (math.log10(max(value, sys.float_info.min)) if logarithmic else value)

    assert baseline.value is not None, "a search begins with a baseline that was measured"
    start = shown(baseline.value)
    values = [None if trial.value is None else shown(trial.value) for trial in trials]
    gained = measures.curve(values, start, 1.0, "higher")
    if metric.best is None:
        scale = float(gained.max(initial=0.0))
    else:
        scale = abs(shown(metric.best) - (start if metric.worst is None else shown(metric.worst)))
    return gained / (scale or 1.0)


def stalled(curve: measures.Floats, window: int, epsilon: float) -> bool:
    """Whether the curve rose too little over the last ``window`` steps."""
    return len(curve) > window and bool((curve[-1] - curve[-1 - window]) / window <= epsilon)


def origins(greedy: Branch, left: int, needed: Sequence[int]) -> list[Trial]:
    """Where branches begin when ``left`` steps are left: at the best codes that were kept, then at the baseline.

    ``needed`` has the steps that must be left for one branch, for two, and so on.
    """
    number = sum(left >= steps for steps in needed)
    best_first = greedy.incumbents[::-1]
    return [*best_first[:number], *[greedy.origin] * (number - len(best_first))]


def guidance(
    kept: Sequence[bool], codes: ArrayLike, baseline: ArrayLike, far: float, a: Rule, b: Rule, centred: bool
) -> Guidance | None:
    """What the rules say to a branch: whether its trials were kept, (n,), and the vectors of their codes, (n, d).

    ``far`` is the distance from the baseline's vector, (d,), that counts as 1; the dimension is taken about that
    vector, or the mean if it is to be ``centred``. None while there are too few trials.
    """
    if len(kept) < min(a.window, b.window):
        return None
    distance = measures.reach(codes, baseline)
    reach = distance / (far or distance or 1.0)
    dimension = measures.effective_dimension(codes, "released", None if centred else baseline) or 1.0
    shallow = a.few(kept) and reach <= a.bound
    scattered = b.few(kept) and dimension >= b.bound
    return Guidance("A" * shallow + "B" * scattered, reach, dimension)
