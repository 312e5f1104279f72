"""The simulated landscapes: how dense their opportunities are, and how the strategies do on them.

    python benchmarks/landscapes.py [--write] [--runs FOLDER] [--no-sim]

1. Measures the opportunity density of each landscape as the paper does, over runs of all strategies, with seeds that no
   other run uses, and the baselines over 100 seeds. The command exits 1 where a manifest says something else; with
   --write it writes what was measured into the manifests and into docs/simulated-landscapes.md.
2. Carries out `labcoat sim` with its defaults and, with --write, puts its tables into the page.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

from labcoat import catalog, strategies
from labcoat.bench.simulated import SimulatedBench
from labcoat.manifest import Measured
from labcoat.sim import Cell, Failure, Grid, Row, markdown, results, run_all, run_cell, write
from labcoat.sim.grid import MODEL, SUITE
from labcoat.task import Task

PAGE = Path(__file__).parents[1] / "docs" / "simulated-landscapes.md"
ROUNDS = range(1000, 1003)
STEPS = 100
SOURCE = "the landscape is a formula; measured by benchmarks/landscapes.py, the density over runs of"


def carried_out(cells: list[Cell]) -> list[Row]:
    """The rows of all cells; a run that fails ends the program."""
    rows = []
    for cell, result in run_all(run_cell, cells, len(os.sched_getaffinity(0))):
        if isinstance(result, Failure):
            sys.exit(f"{cell}: {result.error}")
        rows.append(result)
    return rows


def measured(values: list[float]) -> Measured:
    """Mean and deviation, as precise as a card has them."""
    return Measured(
        mean=float(f"{statistics.fmean(values):.4g}"), std=float(f"{statistics.stdev(values):.2g}"), n=len(values)
    )


def references(task: Task, rows: list[Row]) -> dict[str, Measured]:
    """The measured references of a landscape."""
    bench, metric = SimulatedBench(task), task.metric.name
    return {
        "baseline_val": measured([bench.baseline(seed).metrics[metric].mean for seed in range(100)]),
        "baseline_test": measured([bench.baseline_test(seed).metrics[metric].mean for seed in range(100)]),
        "opportunity_density": measured([row.density for row in rows]),
    }


def into_manifest(task: Task, found: dict[str, Measured]) -> None:
    """Write the references into the manifest's text, in the place of older ones."""
    path = task.folder / "task.toml"
    kept = [line for line in path.read_text().splitlines() if line.partition(" = ")[0] not in {*found, "sources"}]
    at = kept.index("[references]") + 1
    lines = [f"{name} = {{ mean = {m.mean}, std = {m.std}, n = {m.n} }}" for name, m in found.items()]
    lines.append(f'sources = ["{SOURCE} {", ".join(strategies.names())}"]')
    path.write_text("\n".join([*kept[:at], *lines, *kept[at:]]) + "\n")


def into_page(block: str, text: str) -> None:
    """Write a marked block of the page anew."""
    page = PAGE.read_text()
    begin, end = f"<!-- {block}: written by benchmarks/landscapes.py -->", f"<!-- end of {block} -->"
    new, count = re.subn(f"{begin}.*{end}", lambda _: f"{begin}\n\n{text}\n{end}", page, flags=re.DOTALL)
    assert count == 1, f"{PAGE}: no block {block}"
    PAGE.write_text(new)


def table(tasks: list[Task], densities: dict[str, Measured]) -> str:
    """The landscapes, the densest first."""
    shown = ["constants", "matter", "interacting", "ruggedness", "plateau", "failing", "noise", "gap"]
    lines = [f"| landscape | {' | '.join(shown)} | phi_opp |", "|---" * (len(shown) + 2) + "|"]
    for task in sorted(tasks, key=lambda task: -densities[task.id].mean):
        simulation, phi = task.manifest.simulation, densities[task.id]
        assert simulation is not None and simulation.landscape is not None
        knobs = [f"{getattr(simulation.landscape, name):g}" for name in shown]
        lines.append(f"| `{task.id}` | {' | '.join(knobs)} | {phi.mean:.3f} ± {phi.std:.3f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write manifests and page")
    parser.add_argument("--runs", type=Path, help="folder of the runs of `labcoat sim`; default: a temporary one")
    parser.add_argument("--no-sim", action="store_true", help="only measure the densities")
    options = parser.parse_args()
    tasks = [task for task in catalog.shipped() if SUITE in task.manifest.suites]
    different = 0
    with tempfile.TemporaryDirectory() as scratch:
        cells = [
            Cell(name, task.id, seed, STEPS, MODEL, Path(scratch))
            for seed in ROUNDS
            for task in tasks
            for name in strategies.names()
        ]
        rows = carried_out(cells)
        found = {task.id: references(task, [row for row in rows if row.landscape == task.id]) for task in tasks}
        for task in tasks:
            for name, value in found[task.id].items():
                said = getattr(task.manifest.references, name)
                if said != value:
                    different += 1
                    print(f"{task.id}: references.{name}: measured {value}, the manifest says {said}")
        landscapes = table(tasks, {name: own["opportunity_density"] for name, own in found.items()})
        print(landscapes)
        if options.write:
            for task in tasks:
                into_manifest(task, found[task.id])
            into_page("landscapes", landscapes)
        if not options.no_sim:
            runs = options.runs or Path(scratch) / "sim"
            grid = Grid.of(seeds=10, steps=STEPS, runs=runs)
            told = results(grid, carried_out(grid.cells()), {})
            write(runs / "sim", told)
            print(markdown(told))
            if options.write:
                into_page("results", markdown(told).replace("\n## ", "\n### "))
    return int(different > 0 and not options.write)


if __name__ == "__main__":
    sys.exit(main())
