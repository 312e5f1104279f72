"""The tables as sheets: heads and rows that every format prints alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labcoat.scoring.intervals import Estimate
from labcoat.scoring.process import DIMENSIONS

SYMBOLS = {"self-reported": "†", "no sandbox": "‡", "simulated": "§", "fork": "¶", "below noise": "≈"}
MEANING = {
    "self-reported": "the project's own code said the numbers",
    "no sandbox": "nothing kept candidate code from hidden answers",
    "simulated": "a formula was measured, no program ran",
    "fork": "shares its first steps with another run",
    "below noise": "a gain of less than two standard errors of the untouched code",
}


def symbols(marks: Iterable[str]) -> str:
    """One for each mark."""
    return "".join(SYMBOLS[mark] for mark in marks)


@dataclass(frozen=True)
class Label:
    """A name, with what must be known of the runs behind it."""

    name: str
    marks: tuple[str, ...] = ()

    @property
    def signed(self) -> str:
        """With a symbol for each mark."""
        return self.name + symbols(self.marks)

    @property
    def in_full(self) -> str:
        """With the marks in words."""
        return f"{self.name} [{', '.join(self.marks)}]" if self.marks else self.name


@dataclass(frozen=True)
class Spread:
    """A mean with its sample deviation."""

    mean: float | None
    sd: float | None
    marks: tuple[str, ...] | None = None
    """What must be known of the mean; None where nothing could be marked."""


class Chance(float):
    """A p-value: people read two digits of it."""


Cell = Label | Spread | Estimate | str | float | int | None


@dataclass(frozen=True)
class Sheet:
    """One table."""

    name: str
    title: str
    note: str
    head: Sequence[Label]
    rows: Sequence[Sequence[Cell]]
    keys: int = 1
    """How many columns name the row."""

    @property
    def marks(self) -> list[str]:
        """Those that stand somewhere in it."""
        cells = [cell for row in [self.head, *self.rows] for cell in row if isinstance(cell, Label | Spread)]
        return [mark for mark in SYMBOLS if any(mark in (cell.marks or ()) for cell in cells)]


def sheets(found: Mapping[str, Any]) -> list[Sheet]:
    """All tables with anything in them, of what :func:`labcoat.report.scored` gave."""
    arms = [_label(arm["arm"], arm) for arm in found["arms"]]
    several = [
        _arms(found["arms"]),
        _pairs(found["pairs"], arms),
        _ranks(found["ranks"], arms),
        _cells("improvement", "Normalised test improvement", found["tasks"], arms),
        _cells("test", "Raw test metric", found["tasks"], arms),
        _survival(found["validation_to_test"], arms),
        _process(found, arms),
        _correlations(found),
        _density(found),
        _partition(found, arms),
        _runs(found["runs"]),
        Sheet(
            "missing", "What is missing", "", _head("what", "why"), [[e["what"], e["why"]] for e in found["missing"]]
        ),
    ]
    return [sheet for sheet in several if sheet.rows]


def _chance(p: float | None) -> Chance | None:
    return None if p is None else Chance(p)


def _label(name: str, of: Mapping[str, Any]) -> Label:
    return Label(name, tuple(of["marks"]))


def _head(*names: str) -> list[Label]:
    return [Label(name) for name in names]


def _spread(of: Mapping[str, Any] | None) -> Spread:
    return Spread(of["mean"], of["sd"]) if of else Spread(None, None)


def _arms(arms: Sequence[Mapping[str, Any]]) -> Sheet:
    partial = any(arm["improvement"]["n"] != arm["improvement_on_shared_tasks"]["n"] for arm in arms)
    names = [
        "arm", "runs", "tasks", "normalised test improvement", "of headroom", "win rate, tasks",
        "win rate, task-rounds",
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            _label(arm["arm"], arm),
            arm["runs"],
            arm["improvement"]["n"],
            _spread(arm["improvement"]),
            _spread(arm["of_headroom"]),
            arm["win_rate_over_tasks"]["rate"],
            arm["win_rate_over_rounds"]["rate"],
            *([_spread(arm["improvement_on_shared_tasks"])] if partial else []),
        ]
        for arm in arms
    ]
    shared = f"on the {arms[0]['improvement_on_shared_tasks']['n']} tasks of all arms" if partial else ""
    return Sheet(
        "arms",
        "Arms",
        "Mean over tasks; ± is the deviation between tasks, no uncertainty. Of headroom: improvements as shares of the "
        "largest that the baseline of the task leaves." + (" Arms differ in their tasks." * partial),
        _head(*names, *([shared] if partial else [])),
        rows,
    )


def _cells(name: str, title: str, tasks: Sequence[Mapping[str, Any]], arms: Sequence[Label]) -> Sheet:
    head = [*_head("task", *(["metric", "better"] if name == "test" else [])), *arms]
    rows: list[list[Cell]] = [
        [
            _label(task["task"], task),
            *([task["metric"]["name"], task["metric"]["direction"]] if name == "test" else []),
            *(_cell(task, name, arm.name) for arm in arms),
        ]
        for task in tasks
    ]
    return Sheet(name, title, "Mean over rounds ± deviation between rounds.", head, rows)


def _cell(task: Mapping[str, Any], name: str, arm: str) -> Spread:
    known = _spread(task[name].get(arm))
    return replace(known, marks=("below noise",) if task["below_noise"].get(arm) else ())


def _pairs(pairs: Sequence[Mapping[str, Any]], arms: Sequence[Label]) -> Sheet:
    by_name = {arm.name: arm for arm in arms}
    rows: list[list[Cell]] = [
        [
            by_name[pair["arm"]],
            by_name[pair["other"]],
            Estimate(**pair["lead"]),
            *(pair[name] for name in ("ahead", "behind", "ties")),
            *(_chance(pair[name]) for name in ("p", "holm", "benjamini_hochberg")),
            ", ".join(pair["flips"]),
            *(pair[name] for name in ("rounds_here", "rounds", "tasks")),
        ]
        for pair in pairs
    ]
    head = _head(
        "arm", "other", "lead", "won", "lost", "tied", "p", "Holm", "BH", "flips without",
        "rounds here", "rounds", "tasks",
    )  # fmt: skip
    note = (
        "Lead: mean over the tasks of both of the difference in normalised test improvement, with a 95 % interval from "
        "a bootstrap over tasks; won, lost, tied: tasks. p: permutation test over tasks; Holm, BH: for all the pairs. "
        "Flips without: tasks that the order rests on. Rounds here, rounds, tasks: what would tell the two apart on "
        "these tasks, on as many of their kind, and with as many rounds; - where none would, or too little is known."
    )
    return Sheet("pairs", "Arms compared", note, head, rows, keys=2)


def _ranks(found: Mapping[str, Any] | None, arms: Sequence[Label]) -> Sheet:
    found = found or {"tasks": 0, "mean_ranks": {}, "p": None, "critical_difference": None, "alike": []}
    by_name = {arm.name: arm for arm in arms}
    rows: list[list[Cell]] = [
        [by_name[arm], rank, ", ".join(_alike(arm, found["alike"]))] for arm, rank in found["mean_ranks"].items()
    ]
    note = f"By the raw test metric, 1 is the best; tasks that all arms have: {found['tasks']}. " + (
        "No task tells any two arms apart."
        if found["p"] is None
        else f"That all are alike has p = {found['p']:.2g} (Friedman). "
        f"Not told apart: mean ranks that differ by less than {found['critical_difference']:.3g} (Nemenyi, 5 %)."
    )
    return Sheet("ranks", "Ranks", note, _head("arm", "mean rank", "not told apart from"), rows)


def _alike(arm: str, groups: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(other for group in groups if arm in group for other in group if other != arm))


def _survival(found: Sequence[Mapping[str, Any]], arms: Sequence[Label]) -> Sheet:
    by_name = {arm.name: arm for arm in arms}
    parts = ("validation", "test", "survives", "slope")
    rows: list[list[Cell]] = [
        [by_name[own["arm"]], own["runs"], *(Estimate(**own[part]) for part in parts)] for own in found if own["runs"]
    ]
    note = (
        "Gains of the selected codes in units of the normalised improvement, losses included; means over tasks with "
        "95 % intervals from a bootstrap over tasks. Survives: the gain on test as a share of that on validation, for "
        "which the code was selected. Slope: of the line of test gains over validation gains."
    )
    return Sheet("validation_to_test", "From validation to test", note, _head("arm", "runs", *parts), rows)


def _process(found: Mapping[str, Any], arms: Sequence[Label]) -> Sheet:
    by_arm = {arm["arm"]: arm["process"] for arm in found["arms"]}
    rows: list[list[Cell]] = [
        [row["dimension"], row["metric"], *(by_arm[arm.name][row["metric"]] for arm in arms)]
        for row in found["correlations"]
    ]
    return Sheet("process", "Process metrics", "Means over runs.", [*_head("dimension", "metric"), *arms], rows, keys=2)


def _correlations(found: Mapping[str, Any]) -> Sheet:
    rows: list[list[Cell]] = [
        [
            *(row["metric"], row["rho"], _chance(row["p"]), row["n"], row["within_tasks"], row["tasks"]),
            *(_chance(row[name]) for name in ("p_within", "holm", "benjamini_hochberg")),
        ]
        for row in found["correlations"]
    ]
    note = (
        "ρ: Spearman's correlation with the normalised test improvement over n runs, p by Student's t as if runs were "
        "independent, which runs of one task are not. ρ within: the mean of those within each task, its p by "
        "exchanging the runs of each task, and that p adjusted for as many metrics as have one (Holm, BH)."
    )
    head = _head("metric", "ρ", "p", "n", "ρ within", "tasks", "p within", "Holm", "BH")
    return Sheet("correlations", "Process metrics and improvement", note, head, rows)


def _density(found: Mapping[str, Any]) -> Sheet:
    partition = found["partition"] or {"dense": [], "sparse": []}
    half = {task: name for name in ("dense", "sparse") for task in partition[name]}
    rows: list[list[Cell]] = [
        [_label(task["task"], task), task["opportunity_density"], half.get(task["task"], "-")]
        for task in found["tasks"]
        if task["opportunity_density"] is not None
    ]
    note = "Mean over all runs of a task; dense is above the median."
    return Sheet("density", "Opportunity density", note, _head("task", "density", "half"), rows)


def _partition(found: Mapping[str, Any], arms: Sequence[Label]) -> Sheet:
    partition = found["partition"] or {"median": 0.0, "arms": []}
    by_name = {arm.name: arm for arm in arms}
    rows: list[list[Cell]] = [
        [by_name[row["arm"]], row["dense"], row["dense_rank"], row["sparse"], row["sparse_rank"]]
        for row in partition["arms"]
    ]
    note = f"Mean normalised test improvement above the median density of {partition['median']:.4g}, and not above it."
    return Sheet(
        "partition", "Dense and sparse tasks", note,
        _head("arm", "dense", "dense rank", "sparse", "sparse rank"), rows,
    )  # fmt: skip


def _runs(runs: Sequence[Mapping[str, Any]]) -> Sheet:
    plain = (
        "round", "seed", "steps", "budget", "test", "test_baseline", "improvement", "of_headroom",
        "validation_improvement", "signed_gap",
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [
            run["arm"],
            run["task"],
            "; ".join([*run["marks"], *(["below noise"] if run["below_noise"] else [])]),
            *(run[name] for name in plain),
            *run["process"].values(),
            run["opportunity_density"],
            "; ".join(run["notes"]),
            run["folder"],
        ]
        for run in runs
    ]
    head = _head("arm", "task", "marks", *plain, *DIMENSIONS, "opportunity_density", "notes", "folder")
    return Sheet("runs", "Runs", "", head, rows)
