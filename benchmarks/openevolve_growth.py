"""Whether a step of OpenEvolve takes longer the more programs there are: what the population costs, in milliseconds.

    python benchmarks/openevolve_growth.py [--steps N] [--repeats N]

Parents are drawn and children taken in, with cells, archive, migration and removal, for programs of 300 lines and
about 7,000 characters: each has a line changed, added or left out, and a fifth of them failed. Models, trials and
journal are left out. Each figure is the mean over a hundred steps, the least of the repeats. The command exits 1 if,
under the default parameters, the last hundred steps take more than twice the time of the first hundred, in which
there are only 50 programs on average.
"""

from __future__ import annotations

import argparse
import sys
import time
from math import inf
from random import Random
from statistics import fmean

from labcoat import strategies
from labcoat.lab import Code, Trial
from labcoat.strategies.openevolve import Database, OpenEvolve, Program

START = "\n".join(f"CONSTANT_{number} = {number * number}" for number in range(300))


def program(text: str, fitness: float, island: int) -> Program:
    """A program that failed if its fitness is below all numbers."""
    ok = fitness > -inf
    return Program(
        Trial("", Code(), ok, "ok" if ok else "crash", fitness if ok else None, "", ""), text, fitness, island
    )


def child(parent: Program, rng: Random, island: int) -> Program:
    """A program with other text and another fitness."""
    lines = parent.text.split("\n")
    at = rng.randrange(len(lines))
    lines[at : at + rng.randrange(3)] = [f"CONSTANT_{at} = {rng.random():.3g}"]
    fitness = -inf if rng.random() < 0.2 else max(parent.fitness, 0) + rng.gauss(0, 0.1)
    return program("\n".join(lines), fitness, island)


def curve(params: OpenEvolve, steps: int) -> tuple[list[float], int]:
    """Milliseconds of each step, and how many programs there are in the end."""
    rng, database, taken = Random(0), Database(params), list[float]()
    database.add(program(START, 0.5, 0))
    while len(taken) < steps:
        begin = time.process_time()
        draws = [database.draw(island, rng) for island in range(params.num_islands)]
        spent = time.process_time() - begin
        children = [child(draw.parent, rng, island) for island, draw in enumerate(draws)]
        begin = time.process_time()
        for one in children:
            database.add(one)
            database.count(one.island)
        spent += time.process_time() - begin
        taken += [spent / params.num_islands * 1000] * params.num_islands
    return taken[:steps], len(database.programs)


def main() -> None:
    """Time the default and both presets, and print a row of numbers for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    ratios = {}
    for spec in ("openevolve", "openevolve@original", "openevolve@released"):
        params = OpenEvolve(**strategies.named(spec)[1])
        curves = [curve(params, options.steps) for _ in range(options.repeats)]
        taken = [min(values) for values in zip(*(values for values, _ in curves), strict=True)]
        hundreds = [fmean(taken[at : at + 100]) for at in range(0, options.steps, 100)]
        ratios[spec] = hundreds[-1] / hundreds[0]
        numbers = " ".join(f"{mean:.2f}" for mean in hundreds)
        print(f"{spec:20} {numbers} ms; last/first {ratios[spec]:.2f}; {curves[0][1]} programs")
    print("bound: last/first <= 2 for the default")
    sys.exit(int(ratios["openevolve"] > 2))


if __name__ == "__main__":
    main()
