"""Speed of the core: whole processes, median [min-max], and as a ratio to a bare interpreter in the same run.

    python benchmarks/bench_core.py [--runs N]

The bounds are those that the project promises; the command exits 1 if a median is above one.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from labcoat import strategies

SIMULATE = """
import labcoat, sys
labcoat.run(task="sim/valley", strategy=sys.argv[2], steps=100, runs=sys.argv[1])
"""
REPLAY = """
import sys, time, labcoat
run = labcoat.open_run(sys.argv[1])
begin = time.perf_counter()
labcoat.replay(run)
print(time.perf_counter() - begin)
"""
MODULES = """
import sys, labcoat
import labcoat.api, labcoat.cli
heavy = {"torch", "scipy", "sklearn", "pandas", "openai", "anthropic", "numpy"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else 0)
"""


def python(*args: str) -> list[str]:
    """A command of this interpreter."""
    return [sys.executable, *args]


def seconds(command: list[str]) -> float:
    """Wall clock of one process."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> int:
    """Measure everything in turn and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    count = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(python("-c", SIMULATE, f"{folder}/replayed", "autoresearch"), check=True)

        def replayed() -> float:
            return float(subprocess.check_output(python("-c", REPLAY, f"{folder}/replayed")))

        def simulated(strategy: str) -> float:
            return seconds(python("-c", SIMULATE, f"{folder}/{next(fresh)}", strategy))

        others = [name for name in strategies.names() if name != "autoresearch"]
        fresh = iter(range(10_000))
        cli = "from labcoat.cli import main; main()"
        rows: list[tuple[str, Callable[[], float], float | None]] = [
            ("bare interpreter", lambda: seconds(python("-c", "pass")), None),
            ("import labcoat", lambda: seconds(python("-c", "import labcoat")), 0.2),
            ("labcoat --help", lambda: seconds(python("-c", cli, "--help")), 0.4),
            ("100 simulated steps", lambda: simulated("autoresearch"), 0.4),
            *((f"the same with {name}", partial(simulated, name), 0.6) for name in others),
            ("replay of 100 steps, in process", replayed, 0.3),
        ]
        taken: list[list[float]] = [[] for _ in rows]
        for number in range(count + 1):  # the first round warms caches and is not counted
            for (_, measure, _), into in zip(rows, taken, strict=True):
                value = measure()
                if number:
                    into.append(value)
    subprocess.run(python("-c", MODULES), check=True)
    bare = statistics.median(taken[0])
    failed = False
    print(f"{'what':34} {'median ms':>9} {'min':>6} {'max':>6} {'x bare':>7} {'bound':>6}")
    for (name, _, bound), values in zip(rows, taken, strict=True):
        median = statistics.median(values)
        failed |= bound is not None and median > bound
        shown = "" if bound is None else f"{bound * 1000:.0f}"
        low, high = min(values) * 1000, max(values) * 1000
        print(f"{name:34} {median * 1000:9.0f} {low:6.0f} {high:6.0f} {median / bare:7.1f} {shown:>6}")
    print("import labcoat, its API and its command line load no torch, scipy, numpy or SDK")
    return int(failed)


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, {Path(sys.executable).name}")
    sys.exit(main())
