"""The paper's tables from the table of runs, as plain data; docs/json.md describes it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from labcoat.scoring import arms
from labcoat.scoring.comparison import WinRate, ranks, spearman, win_rates
from labcoat.scoring.correlation import correlation_p
from labcoat.scoring.multiple import benjamini_hochberg, holm
from labcoat.scoring.process import DIMENSIONS
from labcoat.scoring.selection import below_noise
from labcoat.scoring.table import Row, missing
from labcoat.scoring.within import within_tasks

Value = Callable[[Row], float]


def tables(table: Sequence[Row]) -> dict[str, Any]:
    """All tables; what is undefined is None."""
    return {
        "runs": [_run(row) for row in table],
        "arms": _arms(table),
        "tasks": [_task(task, own) for task, own in grouped(table, lambda row: row.task).items()],
        "partition": _partition(table),
        "correlations": _correlations(table),
        "missing": [vars(each) for each in missing(table)],
    }


def improvement(row: Row) -> float:
    """Normalised test improvement of a run."""
    return row.score.improvement


def raw(row: Row) -> float:
    """Raw test metric of a run."""
    return row.score.test


def mean(values: Iterable[float]) -> float:
    """The mean of those that are defined; NaN if none is."""
    known = [value for value in values if not math.isnan(value)]
    try:
        return statistics.fmean(known) if known else math.nan
    except OverflowError:  # their sum is no number any more
        return math.fsum(value / len(known) for value in known)


def spread(values: Iterable[float]) -> dict[str, Any]:
    """Mean, sample deviation and number of those that are defined; with an infinite one there are no such two."""
    known = [value for value in values if not math.isnan(value)]
    deviates = len(known) > 1 and all(map(math.isfinite, known))
    return {"mean": plain(mean(known)), "sd": statistics.stdev(known) if deviates else None, "n": len(known)}


def plain(value: float) -> float | None:
    """None for what is undefined."""
    return value if math.isfinite(value) else None


def by_cell(table: Sequence[Row], value: Value) -> dict[str, dict[str, float]]:
    """By arm and task: the mean over rounds, where one is defined."""
    found: dict[str, dict[str, float]] = {arm: {} for arm in grouped(table, lambda row: row.arm)}
    for (arm, task), own in grouped(table, lambda row: (row.arm, row.task)).items():
        if not math.isnan(cell := mean(map(value, own))):
            found[arm][task] = cell
    return found


def grouped(table: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """The rows with equal keys, in their order."""
    found: dict[Any, list[Row]] = {}
    for row in table:
        found.setdefault(key(row), []).append(row)
    return found


def best_first(table: Sequence[Row]) -> list[str]:
    """The arms by their mean improvement over tasks; those without one last."""
    means = {arm: plain(mean(own.values())) for arm, own in by_cell(table, improvement).items()}
    return sorted(means, key=lambda arm: (-_known(means[arm]), arm))


def _noisy(rows: Sequence[Row]) -> bool | None:
    """Whether the mean improvement of runs on one task is below its noise.

    That of a single measurement: rounds share the test data, so repeating them does not take its noise away.
    """
    return below_noise(mean(map(improvement, rows)), mean(row.score.noise for row in rows))


def _marks(table: Iterable[Row]) -> list[str]:
    return sorted({mark for row in table for mark in row.run.marks})


def _run(row: Row) -> dict[str, Any]:
    run, scored = row.run, row.score
    untouched = run.test_baseline.value if run.test_baseline else None
    return {
        "arm": row.arm,
        "task": row.task,
        "round": row.round,
        "seed": run.seed,
        "marks": list(run.marks),
        "finished": run.finished,
        "steps": len(run.trials),
        "budget": run.budget,
        "test": plain(scored.test),
        "test_baseline": None if untouched is None else plain(untouched),
        "improvement": plain(scored.improvement),
        "of_headroom": plain(scored.of_headroom),
        "below_noise": _noisy([row]),
        "validation_improvement": plain(scored.validation),
        "signed_gap": plain(scored.signed_gap),
        "process": {name: plain(value) for name, value in scored.process.items()},
        "opportunity_density": plain(scored.density),
        "notes": list(scored.notes),
        "folder": run.folder,
    }


def _arms(table: Sequence[Row]) -> list[dict[str, Any]]:
    """The arms, the best first."""
    cells = by_cell(table, improvement)
    relative = by_cell(table, lambda row: row.score.of_headroom)
    shared = set.intersection(*(set(own) for own in cells.values())) if cells else set()
    over_tasks = win_rates(signed(table, by_cell(table, raw)))
    over_rounds = win_rates(_signed_rounds(table))
    found = []
    rows = grouped(table, lambda row: row.arm)
    for arm in best_first(table):
        own = rows[arm]
        spec = arms.arm_of(own[0].run.spec)
        found.append(
            {
                "arm": arm,
                "strategy": spec["strategy"]["name"],
                "params": spec["strategy"]["params"],
                "models": spec["models"],
                "budget": spec["steps"],
                "marks": _marks(own),
                "runs": len(own),
                "improvement": spread(cells[arm].values()),
                "improvement_on_shared_tasks": spread(cells[arm][task] for task in sorted(shared)),
                "of_headroom": spread(relative[arm].values()),
                "win_rate_over_tasks": _rate(over_tasks[arm]),
                "win_rate_over_rounds": _rate(over_rounds[arm]),
                "process": {name: plain(mean(row.score.process[name] for row in own)) for name in DIMENSIONS},
            }
        )
    return found


def _known(value: float | None) -> float:
    return -math.inf if value is None else value


def _rate(found: WinRate) -> dict[str, Any]:
    return {"rate": plain(found.rate), "comparisons": found.comparisons}


def _sign(table: Sequence[Row]) -> dict[str, float]:
    """By task: 1, or -1 where lower is better, so that greater is better."""
    return {row.task: 1.0 if row.run.metric.direction == "higher" else -1.0 for row in table}


def signed(table: Sequence[Row], cells: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Raw metrics by arm and task, turned so that greater is better."""
    sign = _sign(table)
    return {arm: {task: sign[task] * value for task, value in own.items()} for arm, own in cells.items()}


def _signed_rounds(table: Sequence[Row]) -> dict[str, dict[tuple[str, int], float]]:
    sign = _sign(table)
    return {
        arm: {(row.task, row.round): sign[row.task] * raw(row) for row in own if not math.isnan(raw(row))}
        for arm, own in grouped(table, lambda row: row.arm).items()
    }


def _task(task: str, table: Sequence[Row]) -> dict[str, Any]:
    metric = table[0].run.metric
    own = grouped(table, lambda row: row.arm)
    return {
        "task": task,
        "metric": {"name": metric.name, "direction": metric.direction},
        "marks": _marks(table),
        "test": {arm: spread(map(raw, rows)) for arm, rows in own.items()},
        "improvement": {arm: spread(map(improvement, rows)) for arm, rows in own.items()},
        "below_noise": {arm: _noisy(rows) for arm, rows in own.items()},
        "opportunity_density": plain(mean(row.score.density for row in table)),
    }


def _partition(table: Sequence[Row]) -> dict[str, Any] | None:
    """The tasks above the median density and the others, and the arms on each half; None below two densities."""
    by_task = grouped(table, lambda row: row.task)
    density = {task: mean(row.score.density for row in own) for task, own in by_task.items()}
    known = {task: value for task, value in density.items() if math.isfinite(value)}
    if len(known) < 2:
        return None
    median = statistics.median(known.values())
    halves = {
        "dense": [task for task, value in known.items() if value > median],
        "sparse": [task for task, value in known.items() if value <= median],
    }
    cells = by_cell(table, improvement)
    found: dict[str, dict[str, Any]] = {arm: {"arm": arm} for arm in cells}
    for half, tasks in halves.items():
        means = {arm: mean(own[task] for task in tasks if task in own) for arm, own in cells.items()}
        placed = [arm for arm, value in means.items() if not math.isnan(value)]
        rank = dict(zip(placed, ranks([-means[arm] for arm in placed]), strict=True))
        for arm in cells:
            found[arm] |= {half: plain(means[arm]), f"{half}_rank": rank.get(arm)}
    arms_ = sorted(found.values(), key=lambda row: (-_known(row["dense"]), row["arm"]))
    return {"median": median, **halves, "arms": arms_}


def _correlations(table: Sequence[Row]) -> list[dict[str, Any]]:
    """One for each process metric, with the p-values within tasks adjusted for as many tests."""
    found = [_correlation(table, name) for name in DIMENSIONS]
    p = [math.nan if row["p_within"] is None else row["p_within"] for row in found]
    for row, holm_, bh in zip(found, holm(p), benjamini_hochberg(p), strict=True):
        row |= {"holm": plain(holm_), "benjamini_hochberg": plain(bh)}
    return found


def _correlation(table: Sequence[Row], name: str) -> dict[str, Any]:
    """Of a process metric with the normalised test improvement: over all runs, and within tasks."""

    def pairs(own: Iterable[Row]) -> tuple[list[float], list[float]]:
        both = [(row.score.process[name], improvement(row)) for row in own]
        known = [(a, b) for a, b in both if not math.isnan(a + b)]
        return [a for a, _ in known], [b for _, b in known]

    metric, gained = pairs(table)
    rho = spearman(metric, gained)
    within = within_tasks({task: pairs(own) for task, own in grouped(table, lambda row: row.task).items()})
    return {
        "metric": name,
        "dimension": DIMENSIONS[name],
        "n": len(metric),
        "rho": rho,
        "p": None if rho is None else plain(correlation_p(rho, len(metric))),
        "within_tasks": plain(within.rho),
        "tasks": within.tasks,
        "p_within": plain(within.p),
    }
