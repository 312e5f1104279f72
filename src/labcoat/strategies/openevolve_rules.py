"""The rules of OpenEvolve: who lives where on the islands, who migrates, and who has children."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nlargest, nsmallest
from itertools import islice
from math import inf
from operator import attrgetter
from random import Random
from typing import NamedTuple

from labcoat.lab import Brief, Params, Trial

NEAR = 2
"""How far the cell of an inspiration may be from the parent's, on each axis."""
FLOOR = 0.001
"""Weight of the worst in the draw by fitness."""
FITNESS = attrgetter("fitness")

Cell = tuple[int, ...]


class Sizes(Params):
    """The parameters that the rules read; the strategy gives each its default, its bounds and its meaning."""

    num_islands: int
    feature_bins: int
    archive_size: int
    archive_failures: bool
    population_size: int
    exploration_ratio: float
    exploitation_ratio: float
    elite_selection_ratio: float
    num_inspirations: int
    num_top_programs: int
    migration_interval: int
    migration_rate: float
    diversity_reference_size: int


@dataclass(frozen=True, eq=False)
class Program:
    """A tried code on an island."""

    trial: Trial
    text: str = field(repr=False)
    fitness: float
    """Higher is better."""
    island: int
    settled: bool = False
    """Never sent to another island: the baseline, and what came from another island."""

    @cached_property
    def shape(self) -> tuple[int, int, frozenset[str]]:
        """What its distance to others is measured by: length, line feeds, the characters that occur."""
        return len(self.text), self.text.count("\n"), frozenset(self.text)


class Draw(NamedTuple):
    """A parent, how it was drawn, and what inspires its child."""

    parent: Program
    mode: str
    inspirations: list[Program]


def distance(a: Program, b: Program) -> float:
    """How different two programs look."""
    (length, lines, letters), (length_b, lines_b, letters_b) = a.shape, b.shape
    return abs(length - length_b) * 0.1 + abs(lines - lines_b) * 10 + len(letters ^ letters_b) * 0.5


class Database:
    """The population and its rules. Dictionaries without values are ordered sets."""

    num_axes = 2

    def __init__(self, params: Sizes) -> None:
        """Without a program."""
        self.params = params
        self.programs: dict[Program, None] = {}
        self.islands: list[dict[Program, None]] = [{} for _ in range(params.num_islands)]
        self.grids: list[dict[Cell, Program]] = [{} for _ in range(params.num_islands)]
        self.archive: dict[Program, None] = {}
        self.best: Program | None = None
        self.island_best: list[Program | None] = [None] * params.num_islands
        self.children = [0] * params.num_islands
        self.last_migration = 0
        self.bins = max(params.feature_bins, int(params.archive_size ** (1 / self.num_axes) + 0.99))
        self.ranges: dict[int, tuple[float, float]] = {}  # of the values so far, by axis
        self.cells: dict[Program, Cell] = {}  # under the present ranges
        self.references: list[Program] = []
        self.diversities: dict[str, float] = {}  # by text: computed once, though the references may change

    # --- cells

    def cell(self, program: Program) -> Cell:
        """Its cell as the ranges are now; it widens them where it lies outside."""
        if program in self.cells:
            return self.cells[program]
        features = self.features(program)
        cell = tuple(0 if value is None else self.bin(axis, value) for axis, value in enumerate(features))
        if None not in features:
            self.cells[program] = cell
        return cell

    def bin(self, axis: int, value: float) -> int:
        """Where a value lies on an axis."""
        low, high = self.ranges.get(axis, (inf, -inf))
        if not low <= value <= high:
            low, high = self.ranges[axis] = min(low, value), max(high, value)
            self.cells.clear()
        share = 0.5 if low == high else (value - low) / (high - low)
        return min(self.bins - 1, int(share * self.bins))

    def features(self, program: Program) -> Sequence[float | None]:
        """Its value on each axis, length and diversity; None while there is nothing to compare it with."""
        return float(len(program.text)), self.diversity(program)

    def diversity(self, program: Program) -> float | None:
        """Mean distance to the references."""
        if len(self.programs) < 2:
            return None
        if program.text not in self.diversities:
            size = self.params.diversity_reference_size
            if len(self.references) < size:
                self.references = list(islice(self.programs, size))
            distances = [distance(program, other) for other in self.references if other.text != program.text]
            self.diversities[program.text] = sum(distances) / len(distances) if distances else 0.0
        return self.diversities[program.text]

    # --- who lives

    def add(self, new: Program) -> Program | None:
        """Take in a program; return the one whose cell it took."""
        self.programs[new] = None
        island, grid, cell = self.islands[new.island], self.grids[new.island], self.cell(new)
        owner = grid.get(cell)
        displaced = owner if owner is not None and new.fitness > owner.fitness else None
        if owner is displaced:
            grid[cell] = new
        if displaced is not None:
            del island[displaced]
            if displaced in self.archive:
                del self.archive[displaced]
                self.archive[new] = None
        island[new] = None
        self.keep(new)
        self.cull(new)
        leader = self.island_best[new.island]
        if leader is None or new.fitness > leader.fitness:
            self.island_best[new.island] = new
        if self.best is None or new.fitness > self.best.fitness:
            self.best = new
        if displaced is not None:
            self.remove(displaced)
        return displaced

    def keep(self, new: Program) -> None:
        """Put a program into the archive while there is room, or in the place of the worst if it is better."""
        if not (new.trial.ok or self.params.archive_failures):
            return
        if len(self.archive) >= self.params.archive_size:
            worst = min(self.archive, key=FITNESS)
            if new.fitness <= worst.fitness:
                return
            del self.archive[worst]
        self.archive[new] = None

    def cull(self, new: Program) -> None:
        """Keep the population within its size: first those without a cell go, the worst first; never the best."""
        surplus = len(self.programs) - self.params.population_size
        if surplus <= 0:
            return
        owners = {owner for grid in self.grids for owner in grid.values()}
        others = (program for program in self.programs if program not in (self.best, new))
        for program in nsmallest(surplus, others, key=lambda program: (program in owners, program.fitness)):
            self.remove(program)
        leaders = zip(self.island_best, self.islands, strict=True)
        lost = [leader is not None and leader not in island for leader, island in leaders]
        for number, island in enumerate(self.islands if any(lost) else []):
            if lost[number] or self.island_best[number] is None:
                self.island_best[number] = max(island, key=FITNESS, default=None)

    def remove(self, program: Program) -> None:
        """Forget a program everywhere."""
        for members in (self.programs, self.islands[program.island], self.archive, self.cells):
            members.pop(program, None)
        grid = self.grids[program.island]
        for cell in [cell for cell, owner in grid.items() if owner is program]:
            del grid[cell]

    def count(self, island: int) -> list[Program]:
        """Count a child of an island, and let programs migrate if it is time; return the copies."""
        self.children[island] += 1
        if max(self.children) - self.last_migration < self.params.migration_interval:
            return []
        self.last_migration = max(self.children)
        return self.migrate()

    def migrate(self) -> list[Program]:
        """Copy the best of each island to its neighbours in the ring, where their code is not there already."""
        copies: list[Program] = []
        ring = len(self.islands)
        for number, island in enumerate(self.islands if ring > 1 else []):
            for program in nlargest(max(1, int(len(island) * self.params.migration_rate)), island, key=FITNESS):
                for target in ((number + 1) % ring, (number - 1) % ring):
                    if not program.settled and all(other.text != program.text for other in self.islands[target]):
                        copies.append(replace(program, island=target, settled=True))
                        self.add(copies[-1])
        return copies

    # --- who has children

    def top(self, island: int) -> list[Program]:
        """The best valid programs of an island."""
        members = [program for program in self.islands[island] if program.trial.ok]
        return nlargest(self.params.num_top_programs, members, key=FITNESS)

    def draw(self, target: int, rng: Random) -> Draw:
        """The parent of the next child of an island."""
        own = list(self.islands[target])
        chance, explore = rng.random(), self.params.exploration_ratio
        if chance < explore:
            mode, parent = "explore", rng.choice(own or list(self.islands[0] or self.programs))
        elif chance < explore + self.params.exploitation_ratio:
            home = target if own else 0
            elite = [program for program in self.archive if program.island == home]
            mode, parent = "exploit", rng.choice(elite or list(self.archive))
        elif len(own) > 1:
            weights = self.weights(own)
            total = sum(weights)
            mode, parent = "weighted", rng.choices(own, weights=[weight / total for weight in weights])[0]
        else:
            mode, parent = "weighted", own[0] if own else rng.choice(list(self.programs))
        inspirations = self.inspirations(parent, target if own else parent.island, rng)
        return Draw(parent, mode if own else f"empty-{mode}", inspirations)

    def weights(self, members: Sequence[Program]) -> list[float]:
        """How far each is on the way from the worst valid one to the best."""
        halves = [program.fitness / 2 for program in members]  # half, as a whole range may be infinite
        valid = [half for half in halves if half > -inf]
        low, high = min(valid, default=-inf), max(valid, default=-inf)
        if low == high:
            return [1.0 if half == high else FLOOR for half in halves]
        return [max((half - low) / (high - low), FLOOR) for half in halves]

    def inspirations(self, parent: Program, island: int, rng: Random) -> list[Program]:
        """The island's best, its elite, programs of cells near the parent's, and any others while these are too few."""
        members, number, leader = self.islands[island], self.params.num_inspirations, self.island_best[island]
        if leader is None:  # nobody lives there
            return []
        elite = nlargest(max(1, int(number * self.params.elite_selection_ratio)), members, key=FITNESS)
        found = [program for program in dict.fromkeys([leader, *elite]) if program is not parent]
        if len(found) < number < len(members):
            found += self.near(parent, members, found, number - len(found), rng)
            rest = [program for program in members if program is not parent and program not in found]
            found += rng.sample(rest, min(number - len(found), len(rest))) if rest and len(found) < number else []
        return found[:number]

    def near(
        self, parent: Program, members: Iterable[Program], found: Sequence[Program], wanted: int, rng: Random
    ) -> list[Program]:
        """Programs from cells near the parent's, by cells as the ranges are now; in each the last program."""
        centre = self.cell(parent)
        by_cell = {self.cell(program): program for program in members}
        near: list[Program] = []
        for _ in range(3 * wanted):
            cell = tuple(min(self.bins - 1, max(0, at + rng.randint(-NEAR, NEAR))) for at in centre)
            program = by_cell.get(cell)
            if program is not None and program not in (parent, *found, *near):
                near.append(program)
                if len(near) == wanted:
                    break
        return near


def program_of(brief: Brief, trial: Trial, island: int) -> Program:
    """A trial as a program of an island."""
    text = "".join(part.text for part in brief.files(trial.code))
    sign = 1 if brief.metric.direction == "higher" else -1
    fitness = -inf if trial.value is None else sign * trial.value
    return Program(trial, text, fitness, island, settled=trial is brief.baseline)
