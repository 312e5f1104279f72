"""Tables 2 and 3: means, deviations, ranks and win rates."""

from __future__ import annotations

import math
from statistics import fmean, stdev

from labcoat.paper import published
from labcoat.paper.check import Check, judged, listed, near
from labcoat.paper.published import MEAN, THOUSANDTHS, Printed
from labcoat.scoring.comparison import ranks, win_shares

ROUNDS = 3
DEVIATION = THOUSANDTHS * (1 + math.sqrt(18 / 17))
"""How far a printed deviation over 18 tasks may be from that of their printed means."""


def checks() -> list[Check]:
    """All of them, in the order of the paper."""
    return [*_means(), *_ranks(), *_table3(), *_win_rates()]


def _means() -> list[Check]:
    table, means = published.improvement(), published.means()
    printed = {agent: own[MEAN].mean for agent, own in table.items()}
    found = {agent: fmean(own.values()) for agent, own in means.items()}
    spread = {agent: own[MEAN].deviation for agent, own in table.items()}
    deviation = {agent: stdev(own.values()) for agent, own in means.items()}
    spots = [spot for own in table.values() for task, spot in own.items() if task != MEAN]
    possible = [s.deviation - THOUSANDTHS <= math.sqrt(ROUNDS) * (s.mean + THOUSANDTHS) for s in spots]
    single = [s for s in spots if s.mean and s.deviation + THOUSANDTHS >= math.sqrt(ROUNDS) * (s.mean - THOUSANDTHS)]
    return [
        Check(
            "Table 2",
            "MEAN row: means over 18 tasks",
            listed(printed),
            listed(found, ".4f"),
            judged(all(near(found[a], printed[a], 2 * THOUSANDTHS) for a in printed)),
        ),
        Check(
            "Table 2",
            "MEAN row: ±",
            listed(spread),
            f"{listed(deviation, '.4f')}: the sample deviation of 18 task means, how unlike the tasks are and not how "
            "uncertain the mean is",
            judged(all(near(deviation[a], spread[a], DEVIATION) for a in spread)),
        ),
        Check(
            "Table 2",
            "means ± deviations of three values that are never negative",
            f"{len(spots)} cells",
            f"{sum(possible)} are possible (at most √3 of the mean); in {len(single)} a single round may have made all "
            "of the improvement",
            judged(all(possible)),
        ),
    ]


def _ranks() -> list[Check]:
    means = published.means()
    order = sorted(means, key=lambda agent: -fmean(means[agent].values()))
    by_task = [
        dict(zip(means, ranks([-own[task] for own in means.values()]), strict=True)) for task in published.tasks()
    ]
    extreme = {agent: sum(own[agent] in (min(own.values()), max(own.values())) for own in by_task) for agent in means}
    spread = {agent: stdev(own.values()) for agent, own in means.items()}
    polarised, largest = published.text("extreme ranks")["AutoR"], published.text("largest deviation")["AutoR"]
    return [
        Check(
            "Sections 4.2, 5.1",
            "order by mean improvement",
            "TAS v2, AutoR, AIDE, OEvolve, TAS v1, AIRA",
            f"{', '.join(order)}; the first two and the last two are each less than 0.001 apart",
            judged(order == ["TAS v2", "AutoR", "AIDE", "OEvolve", "TAS v1", "AIRA"]),
        ),
        Check(
            "Appendix G",
            "AutoR's deviation over tasks is the largest of six",
            largest.text,
            listed(sorted(spread.items(), key=lambda item: -item[1])),
            judged(max(spread, key=spread.__getitem__) == "AutoR" and near(spread["AutoR"], largest.value, DEVIATION)),
        ),
        Check(
            "Appendix G",
            "tasks on which AutoR is first or last of six; the most of all",
            polarised.text,
            f"{listed(extreme, 'd')} (a shared first or last place counts)",
            judged(extreme["AutoR"] == polarised.value and max(extreme, key=extreme.__getitem__) == "AutoR"),
        ),
    ]


def _table3() -> list[Check]:
    table, standings = published.improvement(), published.standings()
    six = {agent: standings[agent].improvement for agent in table}
    dense, sparse = published.text("dense")["Adaptive"], published.text("sparse")["Adaptive"]
    both = (dense.value + sparse.value) / 2
    return [
        Check(
            "Table 3",
            "mean improvement of the six agents of Table 2",
            listed(six),
            listed({agent: own[MEAN].mean for agent, own in table.items()}),
            judged(all(near(own[MEAN].mean, six[agent], 0) for agent, own in table.items())),
        ),
        Check(
            "Table 3",
            "mean improvement of Adaptive",
            f"{standings['Adaptive'].improvement:.3f}",
            f"no value of a task is published; {both:.3f} from its two means in Appendix G, nine tasks each",
            "cannot be re-derived",
        ),
    ]


def wins(rate: Printed | float, comparisons: int) -> list[int]:
    """How many wins of so many comparisons give a percentage that is printed with one decimal."""
    percent = rate.value if isinstance(rate, Printed) else rate
    nearest = round(percent * comparisons / 100)
    return [k for k in range(nearest - 1, nearest + 2) if near(100 * k / comparisons, percent, 0.05)]


def _win_rates() -> list[Check]:
    means, six = published.means(), published.text("win rate of six")
    seven = {agent: standing.win_rate for agent, standing in published.standings().items()}
    count = len(published.tasks())
    own = {agent: 100 * fmean(shares.values()) for agent, shares in win_shares(means).items()}

    def fitting(pairs: int) -> int:
        return sum(bool(wins(rate, 5 * pairs)) for rate in six.values()) + sum(
            bool(wins(rate, 6 * pairs)) for rate in seven.values()
        )

    return [
        Check(
            "Section 4.2",
            "win rates of six agents",
            ", ".join(f"{agent} {rate.text} %" for agent, rate in six.items()),
            f"needs the raw test values of each round; from the means of Table 2: {listed(own, '.1f')}, another order",
            "cannot be re-derived",
        ),
        Check(
            "Appendix E",
            "win rates are shares over N tasks",
            "9 percentages",
            f"{fitting(count)} of 9 are multiples of 1/{5 * count} (six agents) or 1/{6 * count} (seven)",
            judged(fitting(count) == 9),
        ),
        Check(
            "Section 4.2, Table 3",
            "win rates, if N are pairs of a task and a round",
            "9 percentages",
            f"{fitting(count * ROUNDS)} of 9 are multiples of 1/{5 * count * ROUNDS} or 1/{6 * count * ROUNDS}",
            judged(fitting(count * ROUNDS) == 9),
        ),
    ]
