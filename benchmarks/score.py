"""Scoring of many runs: time and memory of `labcoat score`, from journals alone, again, and after one new run.

    python benchmarks/score.py [--runs FOLDER]

324 simulated runs of 100 steps (3 strategies, 12 landscapes, 9 seeds) are made first; FOLDER keeps them for the next
time. The smaller one of the processor's time and the clock's counts: threads make the first longer, a busy machine the
second. The command exits 1 if all tables without embeddings take 8 s or 1 GB, or those after one new run 1.5 s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from labcoat.sim import Failure, Grid, run_all, run_cell

STRATEGIES = ("aide", "autoresearch", "random")
SEEDS = 9
CLI = [sys.executable, "-c", "from labcoat.cli import main; main()", "score"]


def make(runs: Path, seeds: int, strategies: tuple[str, ...] = STRATEGIES, landscapes: tuple[str, ...] = ()) -> None:
    """Make those runs of a grid that are not there yet."""
    grid = Grid.of(strategies=strategies, landscapes=landscapes, seeds=seeds, steps=100, runs=runs)
    for cell, row in run_all(run_cell, grid.cells(), len(os.sched_getaffinity(0))):
        if isinstance(row, Failure):
            sys.exit(f"{cell}: {row.error}")


@dataclass(frozen=True)
class Taken:
    """What a command took."""

    seconds: float
    """Of the processor."""
    wall: float
    megabytes: float

    @property
    def least(self) -> float:
        """What counts."""
        return min(self.seconds, self.wall)


def measure(what: str, *args: object, home: Path) -> Taken:
    """Run ``labcoat score ARGS`` in a process of its own."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [*CLI, *map(str, args)], stdout=subprocess.DEVNULL, env={**os.environ, "LABCOAT_HOME": str(home)}
    )
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        sys.exit(f"labcoat score failed with exit code {process.returncode}")
    taken = Taken(used.ru_utime + used.ru_stime, time.perf_counter() - begin, used.ru_maxrss / 1024)
    print(f"{what:48} {taken.seconds:6.2f} s of a core {taken.wall:6.2f} s {taken.megabytes:6.0f} MB", flush=True)
    return taken


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, help="folder that keeps the runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        home, more = Path(scratch) / "home", Path(scratch) / "more"
        runs = options.runs or Path(scratch) / "runs"
        make(runs, SEEDS)
        make(more, 1, STRATEGIES[:1], ("sim/open-slope",))
        plain = ("--embedder", "none", "--out", Path(scratch) / "out")
        first = measure("all tables, from journals alone", runs, *plain, home=home)
        measure("the same again", runs, *plain, home=home)
        again = measure("after one new run", runs, more, *plain, home=home)
        measure("with codes embedded by tokens", runs, home=home)
        measure("the same again", runs, home=home)
        make(more, 2, STRATEGIES[:1], ("sim/open-slope",))
        measure("after one new run", runs, more, home=home)
    return int(first.least > 8 or first.megabytes > 1024 or again.least > 1.5)


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, {Path(sys.executable).name}")
    sys.exit(main())
