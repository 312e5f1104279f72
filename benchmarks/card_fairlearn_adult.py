"""Measure the numbers in the card of fml/fairlearn-adult: baseline, its noise, solutions, and a search over constants.

``python benchmarks/card_fairlearn_adult.py --python ENV/bin/python --data DIR`` prints Markdown. ENV has the packages
of the task's ``environment.requires``; DIR is what the task's ``data.py`` wrote. The programs run here are the task's
own, so no sandbox is used. Needs labcoat in the interpreter that runs this.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import math
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labcoat.task import Task
from labcoat.tree import Code

FOLDER = Path(__file__).parents[1] / "src/labcoat/tasks/fml/fairlearn-adult"
EDITED = "algorithm.py"
Scores = dict[str, dict[str, float]]


@dataclass
class Bench:
    """The task, its environment and its data."""

    task: Task
    scorer: Any
    python: Path
    data: Path

    def run(
        self, code: Code, seed: int = 0, splits: tuple[str, ...] = ("val", "test"), train: Path | None = None
    ) -> dict[str, Any]:
        """Fit and predict in a scratch folder; return predictions by split, without scoring them."""
        with tempfile.TemporaryDirectory() as scratch:
            work, artefact, out = (Path(scratch) / name for name in ("work", "artefact", "out"))
            code.write(work)
            artefact.mkdir()
            out.mkdir()
            places = {"train": train or self.data / "train", "artefact": artefact, "out": out, "seed": seed}
            predictions = {}
            self._phase("fit", places, work)
            for split in splits:
                self._phase("predict", places | {"inputs": self.data / split / "0" / "inputs"}, work)
                predictions[split] = np.load(out / "prediction.npy")
            return predictions

    def _phase(self, name: str, places: dict[str, Any], work: Path) -> None:
        phase = self.task.phase(name)
        assert phase is not None
        argv = [part.format(**places) for part in phase.argv]
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONDONTWRITEBYTECODE")}
        done = subprocess.run(
            [str(self.python), *argv[1:]],
            cwd=work,
            env=os.environ | threads,
            capture_output=True,
            text=True,
            timeout=phase.timeout,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])

    def answers(self, split: str) -> dict[str, Any]:
        """The hidden arrays of ``split``."""
        return {path.stem: np.load(path) for path in (self.data / split / "0" / "answers").glob("*.npy")}

    def score(self, split: str, prediction: Any) -> Scores:
        """The scorer's metrics."""
        scores: Scores = self.scorer.score({"prediction": prediction}, self.answers(split))
        return scores

    def slack(self, split: str, scores: Scores, baseline: Scores) -> float:
        """Distance to the bound of the task's one constraint; on test the bound is wider by two standard errors."""
        (constraint,) = self.task.manifest.constraint
        mine, base = scores[constraint.metric], baseline[constraint.metric]
        wider = 2 * math.hypot(mine["se"], base["se"]) if split == "test" else 0.0
        return mine["value"] - (base["value"] - constraint.tolerance - wider)

    def paired_error(self, split: str, one: Any, two: Any, draws: int = 500) -> dict[str, float]:
        """Standard error of the difference of every metric between two predictions of the same rows, by bootstrap."""
        rng, answers, seen = np.random.default_rng(0), self.answers(split), []
        for _ in range(draws):
            rows = rng.integers(len(one), size=len(one))
            drawn = {name: array[rows] for name, array in answers.items()}
            a, b = (self.scorer.score({"prediction": p[rows]}, drawn) for p in (one, two))
            seen.append({name: a[name]["value"] - b[name]["value"] for name in a})
        return {name: statistics.stdev(d[name] for d in seen) for name in seen[0]}


def resamples(data: Path, count: int) -> Iterator[Path]:
    """Training folders whose rows are drawn with replacement."""
    for seed in range(count):
        with tempfile.TemporaryDirectory() as scratch:
            folder, rng = Path(scratch), np.random.default_rng(seed)
            (folder / "columns.json").write_bytes((data / "train/columns.json").read_bytes())
            rows: Any = None
            for path in sorted((data / "train").glob("*.npy")):
                array = np.load(path)
                rows = rng.integers(len(array), size=len(array)) if rows is None else rows
                np.save(folder / path.name, array[rows])
            yield folder


def change_constant(source: str, rng: random.Random) -> str:
    """Change one number in ``source``: those in (0, 1) on the log-odds scale, others by a log-uniform factor."""
    numbers = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
    node = rng.choice(numbers)
    old = node.value
    assert isinstance(old, int | float)
    new: float
    if 0 < old < 1:
        new = 1 / (1 + math.exp(-(math.log(old / (1 - old)) + rng.gauss(0, 1))))
    else:
        new = old * 10 ** rng.uniform(-1, 1)
    text = str(max(1, round(new))) if isinstance(old, int) else f"{new:.4g}"
    lines = source.splitlines(keepends=True)
    line = lines[node.lineno - 1]
    lines[node.lineno - 1] = line[: node.col_offset] + text + line[node.end_col_offset :]
    return "".join(lines)


def changed_line(old: str, new: str) -> str:
    """The line of ``new`` that is not in ``old``."""
    return next((b for a, b in zip(old.splitlines(), new.splitlines(), strict=True) if a != b), "no change").strip()


def search(bench: Bench, baseline: Scores, steps: int, greedy: bool) -> None:
    """Change one constant at a time, of the baseline or (greedy) of the best so far, and print what it gives on val."""
    rng, metric = random.Random(0), bench.task.metric
    best, best_value = bench.task.baseline.text(EDITED), baseline[metric.name]["value"]
    counts = {"better": 0, "better by more than the noise floor": 0, "violation": 0, "failed": 0}
    for step in range(steps):
        source = change_constant(best, rng)
        try:
            prediction = bench.run(bench.task.baseline.put({EDITED: source}), splits=("val",))["val"]
        except RuntimeError as error:
            counts["failed"] += 1
            print(f"- {step}: {changed_line(best, source)}: {error}")
            continue
        scores = bench.score("val", prediction)
        value, slack = scores[metric.name]["value"], bench.slack("val", scores, baseline)
        print(f"- {step}: {changed_line(best, source)}: {value:.4f}, slack {slack:+.4f}")
        if slack < 0:
            counts["violation"] += 1
        elif metric.better(value, best_value):
            counts["better"] += 1
            counts["better by more than the noise floor"] += (
                abs(value - best_value) > bench.task.manifest.references.noise_floor
            )
            best, best_value = (source, value) if greedy else (best, best_value)
    print(f"\n{steps} steps: {counts}; best {best_value:.4f}\n")


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |")


def head(*cells: str) -> None:
    """Print the head of a Markdown table."""
    row(*cells)
    row(*("---" for _ in cells))


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--resamples", type=int, default=20)
    parser.add_argument("--search", type=int, default=0, help="steps of a search over the baseline's constants")
    options = parser.parse_args()
    spec = importlib.util.spec_from_file_location("scorer", FOLDER / "scorer.py")
    assert spec is not None and spec.loader is not None
    scorer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    task = Task.load(FOLDER)
    bench = Bench(task, scorer, options.python.absolute(), options.data.absolute())
    name, (constraint,) = task.metric.name, task.manifest.constraint

    start = time.perf_counter()
    bench.run(task.baseline, splits=("val",))
    print(f"One trial, fit and predict: {time.perf_counter() - start:.1f} s\n")

    seeded = [bench.run(task.baseline, seed) for seed in range(options.seeds)]
    resampled = [bench.run(task.baseline, train=folder) for folder in resamples(options.data, options.resamples)]
    base = {split: bench.score(split, seeded[0][split]) for split in ("val", "test")}
    head("baseline", "split", "metric", "mean", "std", "n", "standard error")
    for what, runs in (("fit seeds", seeded), ("resampled train", resampled)):
        for split, scores in base.items():
            scored = [bench.score(split, run[split]) for run in runs]
            for metric, one in scores.items():
                values = [s[metric]["value"] for s in scored]
                mean, std = f"{statistics.fmean(values):.5f}", f"{statistics.stdev(values):.5f}"
                row(what, split, metric, mean, std, len(values), f"{one['se']:.5f}")

    print()
    shown = (name, constraint.metric)
    head("solution", "split", *shown, "slack", "status", "paired SE of the differences")
    for folder in sorted(FOLDER.glob("solutions/*/")):
        run = bench.run(task.baseline.put({EDITED: (folder / EDITED).read_bytes()}))
        for split, prediction in run.items():
            scores = bench.score(split, prediction)
            slack = bench.slack(split, scores, base[split])
            pairs = bench.paired_error(split, prediction, seeded[0][split])
            cells = [f"{scores[metric]['value']:.4f} ± {scores[metric]['se']:.4f}" for metric in shown]
            status = "ok" if slack >= 0 else "violation"
            row(folder.name, split, *cells, f"{slack:+.4f}", status, ", ".join(f"{pairs[m]:.4f}" for m in shown))
    if options.search:
        for greedy in (False, True):
            print(f"\nOne constant of the {'best so far' if greedy else 'baseline'} changed at a time:\n")
            search(bench, base["val"], options.search, greedy)


if __name__ == "__main__":
    main()
