"""The tables as sheets: heads and rows that every format prints alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labcoat.scoring.process import DIMENSIONS

SYMBOLS = {"self-reported": "†", "no sandbox": "‡", "simulated": "§", "fork": "¶"}
MEANING = {
    "self-reported": "the project's own code said the numbers",
    "no sandbox": "nothing kept candidate code from hidden answers",
    "simulated": "a formula was measured, no program ran",
    "fork": "shares its first steps with another run",
}


@dataclass(frozen=True)
class Label:
    """A name, with what must be known of the runs behind it."""

    name: str
    marks: tuple[str, ...] = ()

    @property
    def signed(self) -> str:
        """With a symbol for each mark."""
        return self.name + "".join(SYMBOLS[mark] for mark in self.marks)

    @property
    def in_full(self) -> str:
        """With the marks in words."""
        return f"{self.name} [{', '.join(self.marks)}]" if self.marks else self.name


@dataclass(frozen=True)
class Spread:
    """A mean with its sample deviation."""

    mean: float | None
    sd: float | None


Cell = Label | Spread | str | float | int | None


@dataclass(frozen=True)
class Sheet:
    """One table."""

    name: str
    title: str
    note: str
    head: Sequence[Label]
    rows: Sequence[Sequence[Cell]]

    @property
    def marks(self) -> list[str]:
        """Those that stand somewhere in it."""
        labels = [cell for row in [self.head, *self.rows] for cell in row if isinstance(cell, Label)]
        return [mark for mark in SYMBOLS if any(mark in label.marks for label in labels)]


def sheets(found: Mapping[str, Any]) -> list[Sheet]:
    """All tables with anything in them, of what :func:`labcoat.report.scored` gave."""
    arms = [_label(arm["arm"], arm) for arm in found["arms"]]
    several = [
        _arms(found["arms"]),
        _cells("improvement", "Normalised test improvement", found["tasks"], arms),
        _cells("test", "Raw test metric", found["tasks"], arms),
        _process(found, arms),
        _density(found),
        _partition(found, arms),
        _runs(found["runs"]),
        Sheet(
            "missing", "What is missing", "", _head("what", "why"), [[e["what"], e["why"]] for e in found["missing"]]
        ),
    ]
    return [sheet for sheet in several if sheet.rows]


def _label(name: str, of: Mapping[str, Any]) -> Label:
    return Label(name, tuple(of["marks"]))


def _head(*names: str) -> list[Label]:
    return [Label(name) for name in names]


def _spread(of: Mapping[str, Any] | None) -> Spread:
    return Spread(of["mean"], of["sd"]) if of else Spread(None, None)


def _arms(arms: Sequence[Mapping[str, Any]]) -> Sheet:
    partial = any(arm["improvement"]["n"] != arm["improvement_on_shared_tasks"]["n"] for arm in arms)
    names = ["arm", "runs", "tasks", "normalised test improvement", "win rate, tasks", "win rate, task-rounds"]
    rows: list[list[Cell]] = [
        [
            _label(arm["arm"], arm),
            arm["runs"],
            arm["improvement"]["n"],
            _spread(arm["improvement"]),
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
        "Mean over tasks; ± is the deviation between tasks, no uncertainty."
        + (" Arms differ in their tasks." * partial),
        _head(*names, *([shared] if partial else [])),
        rows,
    )


def _cells(name: str, title: str, tasks: Sequence[Mapping[str, Any]], arms: Sequence[Label]) -> Sheet:
    head = [*_head("task", *(["metric", "better"] if name == "test" else [])), *arms]
    rows: list[list[Cell]] = [
        [
            _label(task["task"], task),
            *([task["metric"]["name"], task["metric"]["direction"]] if name == "test" else []),
            *(_spread(task[name].get(arm.name)) for arm in arms),
        ]
        for task in tasks
    ]
    return Sheet(name, title, "Mean over rounds ± deviation between rounds.", head, rows)


def _process(found: Mapping[str, Any], arms: Sequence[Label]) -> Sheet:
    by_arm = {arm["arm"]: arm["process"] for arm in found["arms"]}
    rows: list[list[Cell]] = [
        [
            row["dimension"],
            row["metric"],
            *(by_arm[arm.name][row["metric"]] for arm in arms),
            row["rho"],
            row["p"],
            row["n"],
            row["within_tasks"],
            row["tasks"],
        ]
        for row in found["correlations"]
    ]
    note = (
        "Means over runs. ρ: Spearman's correlation with the normalised test improvement over n runs, p by Student's t "
        "as if runs were independent, which runs of one task are not; ρ within: the mean of those within each task."
    )
    head = [*_head("dimension", "metric"), *arms, *_head("ρ", "p", "n", "ρ within", "tasks")]
    return Sheet("process", "Process metrics", note, head, rows)


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
        "round", "seed", "steps", "budget", "test", "test_baseline", "improvement", "validation_improvement",
        "signed_gap",
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [
            run["arm"],
            run["task"],
            "; ".join(run["marks"]),
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
