"""The table of runs: a row for each, with its arm, its round and its score. Every further table is a fold over it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from labcoat.scoring import arms
from labcoat.scoring.measures import Mode
from labcoat.scoring.process import Score, score
from labcoat.scoring.runs import Geometry, Run


@dataclass(frozen=True)
class Row:
    """One run in the table."""

    arm: str
    task: str
    round: int
    """From 1; runs of one task with equal numbers are compared with each other."""
    run: Run
    score: Score


@dataclass(frozen=True)
class Missing:
    """What a reader must know that the tables do not hold, or hold with a grain of salt."""

    what: str
    why: str


def distinct(runs: Iterable[Run]) -> tuple[list[Run], list[Missing]]:
    """The runs in the order of their folders, a copy of one left out."""
    kept: dict[str, Run] = {}
    copies = []
    for run in sorted(runs, key=lambda run: run.folder):
        first = kept.setdefault(run.content, run)
        if first is not run:
            copies.append(Missing(run.folder, f"left out: a copy of {first.folder}"))
    return list(kept.values()), copies


def rows(runs: Sequence[Run], geometry: Mapping[str, Geometry], mode: Mode) -> list[Row]:
    """Score distinct runs; ``geometry`` is by folder. In the order of tasks, arms and rounds, whatever theirs is."""
    named = arms.names(run.spec for run in runs)
    tasks = _task_names(runs)
    by_task: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.folder):
        by_task[tasks[run.spec["task"]["hash"]]].append(run)
    found = [
        Row(named[arms.key_of(run.spec)], task, number, run, score(run, geometry.get(run.folder), mode))
        for task, own in by_task.items()
        for run, number in rounds(own)
    ]
    return sorted(found, key=lambda row: (row.task, row.arm, row.round))


def rounds(runs: Sequence[Run]) -> list[tuple[Run, int]]:
    """Runs of one task with their rounds: equal seeds are one round; where no seed is in all arms, equal ranks are."""
    by_arm: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.seed, run.folder)):
        by_arm[arms.key_of(run.spec)].append(run)
    if not set.intersection(*({run.seed for run in own} for own in by_arm.values())):
        return [(run, number) for own in by_arm.values() for number, run in enumerate(own, 1)]
    labelled = []
    for own in by_arm.values():
        met: Counter[int] = Counter()
        for run in own:
            labelled.append((run, (run.seed, met[run.seed])))
            met[run.seed] += 1
    numbers = {label: number for number, label in enumerate(sorted({label for _, label in labelled}), 1)}
    return [(run, numbers[label]) for run, label in labelled]


def _task_names(runs: Iterable[Run]) -> dict[str, str]:
    """By the hash of the task: its id, with the hash where the id stands for several."""
    by_id: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        by_id[run.task].add(run.spec["task"]["hash"])
    return {sha: name if len(hashes) == 1 else f"{name}#{sha[:8]}" for name, hashes in by_id.items() for sha in hashes}


def missing(table: Sequence[Row]) -> list[Missing]:
    """Cells without a run, rounds that an arm lacks, and what is not as it should be with a run."""
    cells: dict[tuple[str, str], set[int]] = defaultdict(set)
    wanted: dict[str, set[int]] = defaultdict(set)
    for row in table:
        cells[row.arm, row.task].add(row.round)
        wanted[row.task].add(row.round)
    found = []
    for arm in sorted({row.arm for row in table}):
        for task, numbers in wanted.items():
            lacking = sorted(numbers - cells[arm, task])
            if lacking == sorted(numbers):
                found.append(Missing(f"{arm} on {task}", "no run"))
            elif lacking:
                found.append(Missing(f"{arm} on {task}", f"no run in round {', '.join(map(str, lacking))}"))
    return found + [Missing(row.run.folder, "; ".join(row.score.notes)) for row in table if row.score.notes]
