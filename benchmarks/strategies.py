"""All strategies on the real tasks with the offline model: what each decides, and what that is worth.

    python benchmarks/strategies.py [--write] [--runs FOLDER] [--seeds 3] [--steps 20] [--processes 2]

Runs that are finished are only read, so the command goes on where it was interrupted. With --write it replaces the
table in docs/strategies.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import labcoat
from labcoat import catalog, strategies

PAGE = Path(__file__).parents[1] / "docs" / "strategies.md"
TASKS = ("fml/fairlearn-adult", "fml/gcastle-notears")


class Cell(NamedTuple):
    """One run."""

    task: str
    strategy: str
    seed: int
    steps: int
    runs: str


class Result(NamedTuple):
    """What became of it: valid trials, validation and test of baseline and of what was chosen."""

    valid: int
    val: float
    test: float
    val_baseline: float
    test_baseline: float


def carry_out(cell: Cell) -> Result:
    """Carry out one run, in the main thread of this process."""
    run = labcoat.run(task=cell.task, strategy=cell.strategy, seed=cell.seed, steps=cell.steps, runs=cell.runs)
    metric, test, baseline = run.manifest.metric.name, run.test_outcome(), run.test_outcome("test/baseline")
    if test is None or baseline is None:
        raise SystemExit(f"{cell}: no test")
    val = [step.value(metric) for step in (run.best or run.steps[0], run.steps[0])]
    tested = [outcome.mean(metric) for outcome in (test, baseline)]
    numbers = [value for value in (*val, *tested) if value is not None]
    if len(numbers) != 4:
        raise SystemExit(f"{cell}: the chosen code has no valid score")
    print(f"{cell.task} {cell.strategy} seed {cell.seed}: {numbers}", file=sys.stderr)
    best, val_baseline, tested_best, test_baseline = numbers
    return Result(sum(step.outcome.ok for step in run.trials), best, tested_best, val_baseline, test_baseline)


def table(task: str, rows: dict[str, Sequence[Result]]) -> list[str]:
    """Markdown: one line for each strategy, values in the order of the seeds."""
    manifest = catalog.find(task).manifest
    first = next(iter(rows.values()))[0]
    lines = [
        f"### {task}",
        "",
        f"{manifest.headline}. Baseline: {first.val_baseline:.4f} on validation, {first.test_baseline:.4f} on the "
        f"test; differences below {manifest.references.noise_floor:g} are noise.",
        "",
        "| strategy | valid trials | best on validation | test | mean test |",
        "|---|---|---|---|---|",
    ]
    higher = manifest.metric.direction == "higher"
    for strategy, results in sorted(rows.items(), key=lambda row: mean(row[1]), reverse=higher):
        valid = ", ".join(str(r.valid) for r in results)
        val, test = (", ".join(f"{getattr(r, name):.4f}" for r in results) for name in ("val", "test"))
        lines.append(f"| `{strategy}` | {valid} | {val} | {test} | {mean(results):.4f} |")
    return [*lines, ""]


def mean(results: Sequence[Result]) -> float:
    """Mean test over the seeds."""
    return statistics.fmean(result.test for result in results)


def main() -> None:
    """Carry out all runs and print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true")
    options.add_argument("--runs", default="runs/strategies")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    given = options.parse_args()
    cells = [
        Cell(task, strategy, seed, given.steps, given.runs)
        for seed in range(given.seeds)
        for task in TASKS
        for strategy in strategies.names()
    ]
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        results = dict(zip(cells, pool.map(carry_out, cells, chunksize=1), strict=True))
    lines = []
    for task in TASKS:
        rows = {
            strategy: [result for cell, result in results.items() if (cell.task, cell.strategy) == (task, strategy)]
            for strategy in strategies.names()
        }
        lines += table(task, rows)
    text = "\n".join(lines)
    print(text)
    if given.write:
        marks = r"(<!-- table -->\n).*(\n<!-- end of table -->)"
        PAGE.write_text(re.sub(marks, lambda m: f"{m[1]}\n{text}{m[2]}", PAGE.read_text(), flags=re.DOTALL))


if __name__ == "__main__":
    main()
