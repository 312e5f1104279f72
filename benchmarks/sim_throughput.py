"""Simulated runs with their journals: trials a second in the pool, and the memory of a process that runs many.

    python benchmarks/sim_throughput.py [--seeds N] [--runs N] [--steps N]

The runs wait for nothing but the processor, so their time on idle cores is that of the processor, which a busy machine
does not change much; it is also given as a ratio to a bare interpreter's start, as machines differ. The command exits 1
if 96,000 trials would take more than 5 minutes on two idle cores, or if memory grows by more than 5 % from the 100th
run on.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from labcoat import strategies
from labcoat.sim import Cell, Failure, Grid, run_all, run_cell
from labcoat.sim.grid import MODEL

FULL = 96_000
WARM = 300


def spent() -> float:
    """Seconds of processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bare(times: int = 20) -> float:
    """Processor time that an interpreter takes to start and end."""
    before = spent()
    for _ in range(times):
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    return (spent() - before) / times


def throughput(runs: Path, seeds: int) -> float:
    """Seconds for all trials on two idle cores, from a grid of all strategies on all landscapes."""
    cores = len(os.sched_getaffinity(0))
    grid = Grid.of(seeds=seeds, steps=100, runs=runs)
    trials, begin, before = 0, time.perf_counter(), spent()
    for cell, row in run_all(run_cell, grid.cells(), cores):
        if isinstance(row, Failure):
            sys.exit(f"{cell}: {row.error}")
        trials += row.steps
    seconds, busy = time.perf_counter() - begin, (spent() - before) / trials
    print(f"{trials} trials of {len(grid.strategies)} strategies in {cores} processes: {trials / seconds:.0f} a second")
    print(f"one takes {busy * 1000:.2f} ms of a core, {busy / bare():.3f} of a bare interpreter's start")
    print(f"{FULL} trials on two idle cores: {FULL * busy / 2:.0f} s")
    return FULL * busy / 2


def resident() -> float:
    """Memory of this process that is in RAM, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory(runs: Path, count: int, steps: int) -> float:
    """How much a process grows from its 100th run to its last, as a ratio."""
    names = strategies.names()
    landscapes = Grid.of(seeds=1, steps=steps, runs=runs).landscapes
    after = []
    for number in range(count):
        strategy, landscape = names[number % len(names)], landscapes[number % len(landscapes)]
        run_cell(Cell(strategy, landscape, number, steps, MODEL, runs))
        after.append(resident())
    warm, last = after[min(WARM, count) - 1], after[-1]
    print(f"memory after {min(WARM, count)} runs {warm:.0f} MB, after {count} runs {last:.0f} MB: {last / warm:.3f}")
    return last / warm


def main() -> int:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2, help="seeds of the grid whose speed is measured")
    parser.add_argument("--runs", type=int, default=1000, help="runs of the process whose memory is measured")
    parser.add_argument("--steps", type=int, default=20, help="steps of each of them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        seconds = throughput(Path(scratch) / "pool", options.seeds)
        growth = memory(Path(scratch) / "one", options.runs, options.steps)
    return int(seconds > 300 or growth > 1.05)


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, {Path(sys.executable).name}")
    sys.exit(main())
