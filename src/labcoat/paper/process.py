"""Table 4 and sections 4.2, 5.1 and 5.2: who is where on the process metrics, and what goes with improvement."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from labcoat.paper import published
from labcoat.paper.check import Check, interval, judged, listed
from labcoat.paper.published import THOUSANDTHS, Metric, Printed
from labcoat.scoring.comparison import ranks, spearman
from labcoat.scoring.correlation import correlation_interval, correlation_p, pairs_needed
from labcoat.scoring.multiple import benjamini_hochberg, holm

RUNS, IMPROVED = 324, 305
"""All runs, and those that ever improved on the baseline."""
PLACES: list[tuple[str, str, Mapping[str, int]]] = [
    ("Section 4.2", "Exploration Reach", {"TAS v2": 1, "TAS v1": 2, "AutoR": 3, "OEvolve": 6}),
    ("Section 4.2", "Effective dim", {"AutoR": 5, "TAS v2": 6}),
    ("Section 4.2", "Exploration Uniqueness", {"OEvolve": 1}),
    ("Section 5.1", "Exploration Spread", {"TAS v1": 2}),
    ("Section 4.2", "First-improvement step", {"TAS v2": 1, "AIRA": 2, "AIDE": 5, "AutoR": 6}),
    ("Section 5.1", "AUC-over-steps", {"AutoR": 1, "AIDE": 2, "TAS v2": 3, "TAS v1": 5, "AIRA": 6}),
    ("Section 4.2", "Late-gain fraction", {"AIRA": 1, "TAS v2": 2}),
    ("Section 4.2", "Valid step ratio", {"AIDE": 1, "TAS v2": 6}),
    ("Section 4.2", "Token cost (M)", {"TAS v1": 1, "OEvolve": 6}),
]
"""What the text says of the order of agents, 1 the largest value."""


def checks() -> list[Check]:
    """All of them, in the order of the paper."""
    places = [_place(*said) for said in PLACES]
    p_values = [_p_value(name, metric) for name, metric in published.metrics().items()]
    return [*places, _alignment(), *p_values, *_predictors(), _independence()]


def _place(where: str, name: str, said: Mapping[str, int]) -> Check:
    values = published.metrics()[name].values
    order = dict(zip(values, ranks([-value for value in values.values()]), strict=True))
    return Check(
        where,
        f"places on {name}, 1 the largest",
        listed(said, "d"),
        listed(sorted(values.items(), key=lambda item: -item[1]), "g"),
        judged(all(order[agent] == place for agent, place in said.items())),
    )


def _alignment() -> Check:
    """How far each metric orders the six agents as the improvement does."""
    improvement = {agent: fmean(own.values()) for agent, own in published.means().items()}
    found = {
        name: abs(spearman([metric.values[agent] for agent in improvement], list(improvement.values())) or 0.0)
        for name, metric in published.metrics().items()
    }
    best = sorted(found.items(), key=lambda item: -item[1])
    return Check(
        "Section 5.1",
        "of all metrics AUC-over-steps orders the agents most as improvement does",
        "the closest match",
        f"{listed(best[:3], '.2f')}; of six agents a rank correlation below 0.89 is not significant",
        judged(best[0][0] == "AUC-over-steps" and best[0][1] > best[1][1]),
    )


def fits(rho: float, p: str, pairs: int) -> bool:
    """Whether a printed p-value is that of a correlation with three decimals."""
    if p.startswith("<"):
        return correlation_p(abs(rho) - THOUSANDTHS, pairs) < float(p[1:])
    printed = Printed(p)
    least, most = (correlation_p(abs(rho) + by, pairs) for by in (THOUSANDTHS, -THOUSANDTHS))
    return least <= printed.value + printed.slack and most >= printed.value - printed.slack


def _p_value(name: str, metric: Metric) -> Check:
    exact = published.text("p").get(name)
    printed = exact.text if exact else metric.p
    said = IMPROVED if name == "First-improvement step" else RUNS
    pairs = next((n for n in (said, RUNS, IMPROVED) if fits(metric.rho, printed, n)), None)
    other = "" if pairs == said else f"; not of {said}, for which it is {correlation_p(metric.rho, said):.3g}"
    return Check(
        "Table 4" if exact is None else "Section 5.2",
        f"p-value of {name}, n = {said}",
        f"ρ {metric.rho:+.3f}, p {printed}",
        f"{correlation_p(metric.rho, pairs):.3g} for n = {pairs}{other}" if pairs else f"of neither n{other}",
        judged(pairs == said),
    )


def _predictors() -> list[Check]:
    """The twelve correlations, counted as twelve tests."""
    metrics = published.metrics()
    pairs = {name: IMPROVED if name in ("First-improvement step", "Late-gain fraction") else RUNS for name in metrics}
    p = [correlation_p(metric.rho, pairs[name]) for name, metric in metrics.items()]
    checks = []
    for (name, metric), own, strict, mild in zip(metrics.items(), p, holm(p), benjamini_hochberg(p), strict=True):
        if own >= 0.05:
            continue
        found = correlation_interval(metric.rho, pairs[name])
        worth = (pairs_needed(metric.rho) or pairs[name]) / pairs[name]
        checks.append(
            Check(
                "Section 5.2",
                f"{name} is associated with improvement",
                f"ρ {metric.rho:+.3f}, p {metric.p}",
                f"{interval(found)}; Holm over 12 {strict:.2g}, Benjamini-Hochberg {mild:.2g}; "
                f"insignificant if a run is worth less than {worth:.2g} of an independent one",
                judged(strict < 0.05, "not supported"),
                found,
            )
        )
    rest = [name for name, own in zip(metrics, p, strict=True) if own >= 0.05]
    bound = max(
        max(abs(end or 0.0) for end in (found.low, found.high))
        for found in (correlation_interval(metrics[name].rho, pairs[name]) for name in rest)
    )
    return [
        *checks,
        Check(
            "Section 5.2",
            "the other metrics are not significant",
            "8",
            f"{len(rest)}; that they do not matter is more than this says: correlations up to {bound:.2f} are allowed",
            judged(len(rest) == 8),
        ),
    ]


def likeness() -> float:
    """Intraclass correlation of improvement: how much of its variance lies between tasks (one-way, Fisher 1925)."""
    table = published.improvement()
    tasks, each = list(published.tasks()), 3 * len(table)
    middles = {task: fmean([own[task].mean for own in table.values()]) for task in tasks}
    grand = fmean(middles.values())
    between = each * sum((middle - grand) ** 2 for middle in middles.values()) / (len(tasks) - 1)
    inside = sum(
        3 * (own[task].mean - middles[task]) ** 2 + 2 * own[task].deviation ** 2
        for own in table.values()
        for task in tasks
    ) / (len(tasks) * (each - 1))
    return (between - inside) / (between + (each - 1) * inside)


def _independence() -> Check:
    alike = likeness()
    reach = RUNS / (pairs_needed(published.metrics()["Exploration Reach"].rho) or 1)
    return Check(
        "Section 5.2",
        "324 runs count as 324 independent observations",
        "n = 324",
        f"runs of a task are alike: {alike:.2f} of the variance of improvement lies between tasks. Where a share c of "
        f"a metric's variance does, a run is worth 1/(1 + 17 × {alike:.2f} c) of an independent one; "
        f"c = {(reach - 1) / 17 / alike:.2g} makes Exploration Reach insignificant",
        judged(alike <= 0, "not supported"),
    )
