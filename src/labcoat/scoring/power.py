"""How many rounds, or tasks, would tell two arms apart that are as far apart as they were seen to be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance

from labcoat.scoring.paired import leads

MOST = 1_000_000
"""What takes more than this is called impossible: a lead of that size may be rounding."""


@dataclass(frozen=True)
class Needed:
    """What would separate two arms. A number is None where none up to MOST is enough, or a variance is not known."""

    lead: float
    """Mean over tasks of the first arm's lead."""
    between: float | None
    """Variance of the lead between tasks, beyond what the rounds explain."""
    within: float | None
    """Variance of a single round's lead on one task."""
    rounds_here: int | None
    """Rounds on each of these tasks, for a conclusion about these tasks alone."""
    rounds: int | None
    """Rounds on each of as many tasks, for a conclusion about tasks of their kind."""
    tasks: int | None
    """Tasks of their kind, with as many rounds as there were."""


def needed(
    ahead: Sequence[float], variances: Sequence[float], rounds: float, *, level: float = 0.05, power: float = 0.8
) -> Needed:
    """Plan from the mean lead on each task, the variances of one round's lead, and the number of rounds on a task.

    Tasks are a sample of their kind and rounds a sample on each: the variance of the mean lead over T tasks with R
    rounds is (between + within / R) / T. Separated means significant at ``level`` (two-sided, normal) with probability
    ``power``. No rounds help against a variance between tasks that is too large: that takes more tasks.

    Args:
        ahead: mean lead on each task.
        variances: of one round's lead, of the tasks where it is known.
        rounds: on each task, on average.
        level: of the test.
        power: probability to see the difference.
    """
    count, lead = len(ahead), fmean(ahead) if ahead else 0.0
    observed = variance(ahead) if count > 1 else None
    within = fmean(variances) if variances else None
    between = None if observed is None or within is None else max(0.0, observed - within / rounds)
    reach = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(power)
    allowed = (lead / reach) ** 2 * count  # what one task may contribute to the variance
    return Needed(
        lead,
        between,
        within,
        rounds_here=_least(within, allowed),
        rounds=None if between is None else _least(within, allowed - between),
        tasks=_least(None if observed is None else observed * count, allowed, least=2),
    )


def needed_by(by_task: Mapping[str, Sequence[float]]) -> Needed:
    """Plan from the leads of single rounds on each task; see :func:`labcoat.scoring.paired.differences`."""
    known = [ahead for ahead in by_task.values() if ahead]
    variances = [variance(ahead) for ahead in known if len(ahead) > 1]
    rounds = sum(map(len, known)) / len(known) if known else 1.0
    return needed(list(leads(by_task).values()), variances, rounds)


def _least(spread: float | None, allowed: float, least: int = 1) -> int | None:
    if spread is None or allowed <= 0 or spread / allowed > MOST:
        return None
    return max(least, math.ceil(spread / allowed - 1e-9))
