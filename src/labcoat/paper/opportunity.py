"""Table 5 and Appendix G: the partition at the median density, the means of Figure 4, and the crossover."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from labcoat.paper import published
from labcoat.paper.check import Check, above, below, interval, judged, listed, near
from labcoat.paper.published import THOUSANDTHS
from labcoat.scoring.comparison import ranks, spearman
from labcoat.scoring.correlation import correlation_p
from labcoat.scoring.intervals import bootstrap
from labcoat.scoring.multiple import holm
from labcoat.scoring.paired import permutation_test
from labcoat.scoring.split import split_test

GREEDY = "AutoR"
HALVES = ("dense", "sparse")


def checks() -> list[Check]:
    """All of them, in the order of the paper."""
    return [*figures(), *_crossover()]


def figures() -> list[Check]:
    """The partition and the means of Figure 4."""
    return [*_partition(), *_figure4()]


def halves() -> tuple[list[str], list[str]]:
    """The dense and the sparse tasks, as labelled."""
    tasks = published.tasks()
    dense, sparse = ([name for name, task in tasks.items() if task.dense is half] for half in (True, False))
    return dense, sparse


def _partition() -> list[Check]:
    tasks, printed = published.tasks(), published.text("median density")[""]
    middle = median(task.density for task in tasks.values())
    right = sum((task.density > middle) == task.dense for task in tasks.values())
    return [
        Check(
            "Appendix G",
            "median opportunity density",
            printed.text,
            f"{middle:.4f}, between {max(t.density for t in tasks.values() if not t.dense)} and "
            f"{min(t.density for t in tasks.values() if t.dense)}; {printed.text} is the most that rounding allows",
            judged(near(middle, printed.value, THOUSANDTHS + printed.slack)),
        ),
        Check(
            "Table 5",
            "tasks labelled by the median",
            f"{len(tasks)} labels",
            f"{right} as labelled",
            judged(right == len(tasks)),
        ),
        Check(
            "Appendix G",
            "opportunity density of each task",
            "18 values",
            "needs every step of the runs; it is measured on the runs whose results it is to explain",
            "cannot be re-derived",
        ),
    ]


def _figure4() -> list[Check]:
    means = published.means()
    found, places, checks = {}, {}, []
    for name, half in zip(HALVES, halves(), strict=True):
        printed = published.text(name)
        own = {agent: fmean([values[task] for task in half]) for agent, values in means.items()}
        rest = {agent: number for agent, number in printed.items() if agent in own}
        checks.append(
            Check(
                "Appendix G",
                f"means on the {name} half",
                ", ".join(f"{agent} {number.text}" for agent, number in rest.items()),
                listed({agent: own[agent] for agent in rest}, ".4f"),
                judged(all(near(own[a], number.value, 2 * THOUSANDTHS) for a, number in rest.items())),
            )
        )
        found[name] = {**own, "Adaptive": printed["Adaptive"].value}
        order = ranks([-value for value in found[name].values()])
        places[name] = dict(zip(found[name], order, strict=True))
    moved = {agent: abs(places["dense"][agent] - places["sparse"][agent]) for agent in means}
    both = [agent for agent in found["dense"] if max(places["dense"][agent], places["sparse"][agent]) <= 2]
    taken = "by Adaptive's published means"
    return [
        *checks,
        Check(
            "Appendix G",
            "means of Adaptive on both halves",
            listed({name: found[name]["Adaptive"] for name in found}),
            "no value of a task is published",
            "cannot be re-derived",
        ),
        Check(
            "Section 4.3",
            "AutoR is first of seven on the dense half and sixth on the sparse",
            "1, 6",
            f"{places['dense'][GREEDY]:.0f}, {places['sparse'][GREEDY]:.0f} {taken}; "
            f"it is sixth by {found['sparse'][GREEDY] - found['sparse']['TAS v1']:.4f} before TAS v1",
            judged((places["dense"][GREEDY], places["sparse"][GREEDY]) == (1, 6)),
        ),
        Check(
            "Appendix G",
            "AutoR's is the largest change of rank",
            "5 places",
            listed(moved, ".0f"),
            judged(moved[GREEDY] == 5 and all(moved[GREEDY] > n for agent, n in moved.items() if agent != GREEDY)),
        ),
        Check(
            "Appendix G",
            "the only agent in the top two of both halves",
            "Adaptive",
            f"{', '.join(both)} {taken}",
            judged(both == ["Adaptive"]),
        ),
    ]


def _crossover() -> list[Check]:
    """AutoR against each of the others on each half, counted as ten tests; then without a choice of an opponent."""
    means = published.means()
    pairs = [
        (name, half, other) for name, half in zip(HALVES, halves(), strict=True) for other in means if other != GREEDY
    ]
    leads = [[means[GREEDY][task] - means[other][task] for task in half] for _, half, other in pairs]
    p = [permutation_test(ahead) for ahead in leads]
    checks = []
    for (name, half, other), ahead, own, strict in zip(pairs, leads, p, holm(p), strict=True):
        found, dense = bootstrap(ahead, fmean), name == "dense"
        checks.append(
            Check(
                "Section 4.3",
                f"AutoR is {'ahead of' if dense else 'behind'} {other} on the {name} half",
                listed({agent: fmean([means[agent][task] for task in half]) for agent in (GREEDY, other)}),
                f"{interval(found)}; p {own:.2g}, Holm over {len(p)} {strict:.2g}",
                judged((above if dense else below)(found) and strict < 0.05, "not supported"),
                found,
            )
        )
    return [*checks, *_interaction()]


def _interaction() -> list[Check]:
    """Does AutoR do relatively better where opportunities are dense?"""
    tasks, means = published.tasks(), published.means()
    others = [agent for agent in means if agent != GREEDY]
    rows = [
        Row(
            own.density,
            own.dense,
            ahead=means[GREEDY][task] - fmean([means[agent][task] for agent in others]),
            place=7 - ranks([means[agent][task] for agent in (GREEDY, *others)])[0],
        )
        for task, own in tasks.items()
    ]
    dense, sparse = ([row for row in rows if row.dense is half] for half in (True, False))
    trend = spearman([row.density for row in rows], [row.ahead for row in rows]) or 0.0
    claims = {
        "AutoR's lead over the mean of the others is larger on the dense half": (
            "by {}",
            bootstrap(rows, lambda sample: _difference(sample, lambda row: row.ahead)),
            split_test([row.ahead for row in dense], [row.ahead for row in sparse]),
        ),
        "AutoR's rank is better on the dense half, whatever the scale of the tasks": (
            "by {}",
            bootstrap(rows, lambda sample: _difference(sample, lambda row: -row.place)),
            split_test([row.place for row in dense], [row.place for row in sparse]),
        ),
        "AutoR's lead over the mean of the others rises with density, without a partition": (
            "rank correlation {}",
            bootstrap(rows, lambda sample: spearman([row.density for row in sample], [row.ahead for row in sample])),
            correlation_p(trend, len(rows)),
        ),
    }
    return [
        Check(
            "Section 4.3",
            claim,
            "a crossover",
            f"{says.format(interval(found, '+.2f'))}; p {p:.2g}",
            judged(above(found) and p < 0.05, "not supported"),
            found,
        )
        for claim, (says, found, p) in claims.items()
    ]


@dataclass(frozen=True)
class Row:
    """A task with how far AutoR is ahead of the mean of the others, and its place among the six."""

    density: float
    dense: bool
    ahead: float
    place: float


def _difference(rows: Sequence[Row], of: Callable[[Row], float]) -> float | None:
    """Mean on the dense half minus mean on the sparse."""
    dense, sparse = ([of(row) for row in rows if row.dense is half] for half in (True, False))
    return fmean(dense) - fmean(sparse) if dense and sparse else None
