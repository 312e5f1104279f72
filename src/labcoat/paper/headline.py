"""The headline: who leads by how much, with intervals, corrected tests, ranks, and other ways to average."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from statistics import fmean

import numpy as np

from labcoat.paper import published
from labcoat.paper.check import Check, above, interval, judged, listed
from labcoat.paper.published import MEAN, RELATIVE
from labcoat.paper.results import ROUNDS, wins
from labcoat.scoring.contrast import Contrast, contrasts
from labcoat.scoring.improvement import headroom, of_headroom
from labcoat.scoring.intervals import Estimate, bootstrap
from labcoat.scoring.paired import Cell, sign_test
from labcoat.scoring.power import needed
from labcoat.scoring.ranking import rank_arms

LEADERS, REST = ("TAS v2", "AutoR"), ("AIDE", "OEvolve", "TAS v1", "AIRA")
RANGE = {"PrivacyMeter": 0.5}
"""Ranges that are not 1; none is printed. An AUC is at most 0.5 from 0.5."""


def checks() -> list[Check]:
    """All of them, in the order of the paper."""
    return [*_leaders(), *_bottom(), *_ranking(), *_averages(), *_adaptive()]


@cache
def pairs() -> list[Contrast]:
    """All pairs of the six agents, on the task means of Table 2, with what its deviations say about single rounds."""
    table = published.improvement()
    tasks = list(published.tasks())
    found = []
    for pair in contrasts({a: {Cell(t, 0): own[t].mean for t in tasks} for a, own in table.items()}):
        one, other = table[pair.arm], table[pair.other]
        ahead = [one[task].mean - other[task].mean for task in tasks]
        variances = [one[task].deviation ** 2 + other[task].deviation ** 2 for task in tasks]
        found.append(replace(pair, needed=needed(ahead, variances, ROUNDS)))
    return found


def _pair(arm: str, other: str) -> tuple[Contrast, Estimate]:
    """The pair of that order or the other, and how far ``arm`` is ahead."""
    pair = next(pair for pair in pairs() if {pair.arm, pair.other} == {arm, other})
    if pair.arm == arm:
        return pair, pair.lead
    value, low, high = (None if end is None else -end for end in (pair.lead.value, pair.lead.high, pair.lead.low))
    return pair, Estimate(value, low, high)


def _ahead(where: str, claim: str, arm: str, other: str) -> Check:
    pair, lead = _pair(arm, other)
    means = {agent: published.improvement()[agent][MEAN].mean for agent in (arm, other)}
    flips = f"; the order is another without {' or '.join(pair.without.flips)}" if pair.without.flips else ""
    return Check(
        where,
        claim,
        listed(means),
        f"{interval(lead)}; p {pair.p:.2g}, Holm over 15 pairs {pair.holm:.2g}{flips}",
        judged(above(lead) and pair.holm < 0.05, "not supported"),
        lead,
    )


def _leaders() -> list[Check]:
    return [
        _ahead("Section 4.2", "TAS v2 is ahead of AutoR", *LEADERS),
        *(
            _ahead("Section 1", f"{leader} is well above {other}", leader, other)
            for leader in LEADERS
            for other in REST
        ),
    ]


def _bottom() -> list[Check]:
    return [
        _ahead("Section 4.2", f"{last} is below {middle}, of the middle tier", middle, last)
        for last in ("TAS v1", "AIRA")
        for middle in ("AIDE", "OEvolve")
    ]


def _ranking() -> list[Check]:
    found = rank_arms(published.means())
    apart = found.critical_difference or 0.0
    ends = list(found.mean_ranks.values())
    return [
        Check(
            "Section 4.2",
            "the agents are not all alike, by their ranks on 18 tasks",
            "a ranking",
            f"mean ranks {listed(found.mean_ranks, '.2f')}; Friedman p {found.p:.2g}",
            judged(found.p is not None and found.p < 0.05, "not supported"),
        ),
        Check(
            "Section 4.2",
            "the first and the last are told apart by their ranks",
            "a ranking",
            f"{ends[-1] - ends[0]:.2f} apart; Nemenyi's critical difference for any pair is {apart:.2f}",
            judged(ends[-1] - ends[0] >= apart, "not supported"),
        ),
    ]


def room(task: str) -> float:
    """The largest normalised improvement on a task."""
    own = published.tasks()[task]
    worst = own.baseline if task in RELATIVE else abs(own.best - RANGE.get(task, 1.0))
    return headroom(own.baseline, own.best, worst)


def _averages() -> list[Check]:
    means, tasks = published.means(), published.tasks()
    bounded = [task for task in tasks if task not in RELATIVE]
    without = {agent: fmean([own[task] for task in bounded]) for agent, own in means.items()}
    shares = {agent: {task: of_headroom(own[task], room(task)) for task in tasks} for agent, own in means.items()}
    averages = {agent: fmean(own.values()) for agent, own in shares.items()}
    ahead = bootstrap([shares["TAS v2"][task] - shares["AutoR"][task] for task in tasks], fmean)
    both = [(means["AutoR"][task], means["TAS v2"][task]) for task in tasks]
    wider = bootstrap(both, lambda sample: float(-np.diff(np.std(sample, axis=0, ddof=1))[0]))
    most = max(own["PrivacyMeter"] for own in means.values())
    return [
        Check(
            "Section 4.2",
            "TAS v2 is first without the three tasks on a relative scale",
            "first of six",
            listed({agent: without[agent] for agent in LEADERS}, ".4f"),
            judged(max(without, key=without.__getitem__) == "TAS v2", "not supported"),
        ),
        Check(
            "Section 4.2",
            "TAS v2 is first relative to what each baseline leaves to gain",
            "first of six",
            f"{listed(averages)}; TAS v2 before AutoR {interval(ahead)}",
            judged(above(ahead), "not supported"),
            ahead,
        ),
        Check(
            "Appendix G",
            "AutoR's deviation over tasks is larger than TAS v2's",
            listed({agent: published.improvement()[agent][MEAN].deviation for agent in reversed(LEADERS)}),
            interval(wider),
            judged(above(wider), "not supported"),
            wider,
        ),
        Check(
            "Appendix E",
            "improvement on the relative scale is unbounded above",
            ", ".join(RELATIVE),
            f"with the baseline for the worst value and a best value of 0 it is at most 1; the largest printed is "
            f"{max(own[task] for own in means.values() for task in RELATIVE):.3f}",
            judged(any(own[task] > 1 for own in means.values() for task in RELATIVE)),
        ),
        Check(
            "Table 5",
            "worst values of the bounded metrics",
            "0 or 1 as for accuracy",
            f"are not printed; from a baseline of {tasks['PrivacyMeter'].baseline} PrivacyMeter cannot improve by "
            f"{most:.3f} on a range of 1, but on one of 0.5",
            "cannot be re-derived",
        ),
    ]


def _adaptive() -> list[Check]:
    standings, six = published.standings(), published.text("win rate of six")
    narrowest = min(((pair.lead.high or 0.0) - (pair.lead.low or 0.0)) / 2 for pair in pairs())
    cells = ROUNDS * len(published.tasks())
    checks = []
    for other in LEADERS:
        lead = standings["Adaptive"].improvement - standings[other].improvement
        checks.append(
            Check(
                "Section 4.3",
                f"Adaptive is ahead of {other} in mean improvement",
                listed({agent: standings[agent].improvement for agent in ("Adaptive", other)}),
                f"{lead:+.3f}, no value of a task is published; the narrowest interval of 15 other pairs is "
                f"±{narrowest:.3f}",
                "cannot be re-derived",
            )
        )
    for other in LEADERS:
        (of_six,), (of_seven,) = wins(six[other], 5 * cells), wins(standings[other].win_rate, 6 * cells)
        lost = of_seven - of_six
        p = sign_test([1.0] * (cells - lost) + [-1.0] * lost).p
        checks.append(
            Check(
                "Section 4.3",
                f"Adaptive beats {other} run by run",
                f"win rates {standings['Adaptive'].win_rate} %, {standings[other].win_rate} %",
                f"{other} wins {of_seven} of {6 * cells} among seven, {of_six} of {5 * cells} among six: "
                f"{lost} of {cells} against Adaptive, which wins {cells - lost} at most; sign test p {p:.2g}",
                judged(p < 0.05, "not supported"),
            )
        )
    return checks
