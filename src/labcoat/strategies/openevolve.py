"""OpenEvolve: populations on islands, each a grid of cells by length and diversity with the best program of each cell.

Source: algorithmicsuperintelligence/openevolve 0.3.2, after AlphaEvolve (arXiv 2506.13131); its port in FML-bench,
section 4 and appendix B.
    1. the baseline is the first program of the first island;
    2. a generation: draw a parent for each island, then make and try a child of each. With probability
       `exploration_ratio` the parent is any program of the island; with `exploitation_ratio` one from the archive of
       the best, of this island if there is one; else one of the island by its fitness. An island that is still empty
       borrows from the first, or from the archive;
    3. a child gets its cell on its island if the cell is empty or its program is worse, which then is removed;
       otherwise it lives on without a cell. It enters the archive while there is room, or in the place of a worse one;
    4. every `migration_interval` generations the best of each island are copied to the two neighbours in the ring,
       unless the same code is there already. Back to 2.
A child is proposed in sight of other programs: the best of the island, and inspirations, which are the island's best,
its elite, and programs from cells near that of the parent.

Ours differs from the original and from the released port, for these reasons:
    - the grid decides who lives, as in the original. The port writes it and never reads it, so that who was displaced
      stays a parent;
    - the baseline never migrates and is on one island only, and what came from elsewhere is not sent on. The port puts
      the baseline on every island and sends copies of copies, until most of the archive is the untouched baseline;
    - a failed trial has a fitness below all numbers. In the original it has 0, and beats every negative score;
    - the draw by fitness weighs how far a program is above the worst of the island, so that neither the unit nor the
      sign of the metric matters. The original weighs the bare number, all alike if it is negative;
    - failed programs are kept out of the archive, as in the port (`archive_failures` gives the original's rule);
    - a rejected edit costs a trial and gives no program, as in the original; the port takes the unchanged parent for
      a new one;
    - all containers are ordered; the original's are sets, with another order in each process;
    - diversity is a distance to a few fixed references, as in the original: the port compares all programs pair by
      pair after each step. Where the original would draw references at random, ours are the oldest;
    - who proposes sees what other programs change and how they did, and for each of the latest children of the island
      its idea and its metric; the port shows neither code nor ideas. A parent that failed is shown with its error; the
      port has a rule of its own for these, which takes one step in a hundred;
    - our numbers are the port's, which suit 100 trials: the original's first migration comes after 250. But the
      population is bounded, by a tenth of the original's bound, so that no step takes longer than the hundredth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from heapq import nlargest, nsmallest
from itertools import islice
from math import inf
from operator import attrgetter
from random import Random
from typing import NamedTuple

from pydantic import Field

from labcoat.lab import Brief, Lab, Params, Part, Prompt, Strategy, Template, Trial, diff

EVOLVE = Template(__file__, "evolve")
MEND = Template(__file__, "mend")
REPAIR = Template(__file__, "repair")

NEAR = 2
"""How far the cell of an inspiration may be from the parent's, on each axis."""
FLOOR = 0.001
"""Weight of the worst in the draw by fitness."""
FITNESS = attrgetter("fitness")

Cell = tuple[int, ...]


class OpenEvolve(Params):
    """Parameters of OpenEvolve."""

    num_islands: int = Field(3, ge=1)
    """Populations side by side. Original: 5; released port: 3."""
    feature_bins: int = Field(5, ge=1)
    """Cells along each axis; more if the archive is larger than such a grid. Original: 10; released port: 5."""
    archive_size: int = Field(30, ge=1)
    """Programs in the archive. Original: 100; released port: 30."""
    archive_failures: bool = False
    """Whether a failed program enters the archive while there is room. Original: yes; released port: no."""
    population_size: int = Field(100, ge=1)
    """Programs on all islands; above it the worst are removed. Original: 1000; released port: no bound."""
    exploration_ratio: float = Field(0.2, ge=0, le=1)
    """Probability of a parent drawn from all of the island. Original: 0.2; released port: 0.2."""
    exploitation_ratio: float = Field(0.7, ge=0, le=1)
    """Probability of a parent drawn from the archive. Original: 0.7; released port: 0.7."""
    elite_selection_ratio: float = Field(0.1, ge=0, le=1)
    """Share of the inspirations that are the best of the island, at least one. Original: 0.1; released port: 0.1."""
    num_inspirations: int = Field(3, ge=0)
    """Inspirations that a child is proposed with. Original: 2; released port: 3."""
    num_top_programs: int = Field(3, ge=0)
    """Best programs of the island that it is proposed with. Original: 3; released port: 3."""
    num_recent: int = Field(8, ge=0)
    """Latest children of the island that it is proposed with. Original: 0; released port: 8."""
    migration_interval: int = Field(10, ge=1)
    """Generations between two migrations. Original: 50; released port: 10."""
    migration_rate: float = Field(0.1, ge=0, le=1)
    """Share of an island that migrates, at least one program. Original: 0.1; released port: 0.1."""
    diversity_reference_size: int = Field(10, ge=1)
    """Programs that diversity is a distance to. Original: 20; released port: 10."""


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

    def __init__(self, params: OpenEvolve) -> None:
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
        valid = [program.fitness for program in members if program.fitness > -inf]
        low, high = min(valid, default=-inf), max(valid, default=-inf)
        if low == high:
            return [1.0 if program.fitness == high else FLOOR for program in members]
        return [max((program.fitness - low) / (high - low), FLOOR) for program in members]

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


def result(trial: Trial) -> str:
    """How a trial ended, in a line."""
    last = trial.error.removeprefix(f"{trial.status}: ").rpartition("\n")[2]
    return trial.line if trial.ok else f"{trial.status}: {last}"


def recent(brief: Brief, trial: Trial, parent: Trial) -> str:
    """What those who come next are told of a child."""
    verdict = "better than its parent" if brief.better(trial, parent) else "no better" if trial.ok else "failed"
    return f"- [{verdict}] {result(trial)}\n  {' '.join(trial.facts['idea'].split())}"


def idea_prompt(brief: Brief, draw: Draw, top: Sequence[Program], latest: Iterable[str]) -> Prompt:
    """What the model sees before it proposes a child."""
    parent = draw.parent.trial
    others = dict.fromkeys(
        program.trial
        for program in sorted([*draw.inspirations, *top], key=FITNESS)
        if program.trial.code != parent.code
    )
    seen = tuple(f"- {result(trial)}\n{diff(parent.code, trial.code)}" for trial in others)
    rows = tuple(latest)
    programs = "Other programs, as changes of the files below, the best last:"
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("history", "Latest children on this island, of one program or another:", items=rows) if rows else None,
            Part("programs", programs, items=seen) if seen else None,
            Part("metric", f"Baseline: {result(brief.baseline)}\nThese files: {result(parent)}"),
            *brief.files(parent.code),
            Part("error", parent.error),
            Part("instruction", EVOLVE() if parent.ok else MEND(idea=parent.facts["idea"])),
        ]
    )


async def evolve(lab: Lab, island: int, draw: Draw, top: Sequence[Program], latest: Iterable[str]) -> Trial:
    """A child for an island."""
    parent = draw.parent.trial
    idea = (await lab.ask("idea", idea_prompt(lab.brief, draw, top, latest))).text
    instruction = idea if parent.ok else REPAIR(idea=parent.facts["idea"], repair=idea)
    edit = await lab.edit(parent, instruction, parent.error)
    action = "evolve" if parent.ok else "repair"
    return await lab.trial(edit, action=action, idea=idea, island=island, mode=draw.mode)


async def search(lab: Lab, params: OpenEvolve) -> None:
    """Populations on islands, kept diverse by a grid, bred from any, the best and the fitter, mixed by migration."""
    brief, database = lab.brief, Database(params)
    database.add(program_of(brief, brief.baseline, 0))
    latest = [deque[str](maxlen=params.num_recent) for _ in range(params.num_islands)]
    while lab.left:
        draws = [database.draw(island, lab.rng) for island in range(min(params.num_islands, lab.left))]
        jobs = [
            partial(evolve, island=island, draw=draw, top=database.top(draw.parent.island), latest=latest[island])
            for island, draw in enumerate(draws)
        ]
        for island, trial in enumerate(await lab.parallel(jobs)):
            latest[island].append(recent(brief, trial, draws[island].parent.trial))
            if trial.status != "edit_failed":
                database.add(program_of(brief, trial, island))
                database.count(island)


STRATEGY = Strategy(
    "openevolve",
    search,
    OpenEvolve,
    purposes=("idea",),
    presets={
        "original": {
            "num_islands": 5,
            "feature_bins": 10,
            "archive_size": 100,
            "archive_failures": True,
            "population_size": 1000,
            "num_inspirations": 2,
            "num_recent": 0,
            "migration_interval": 50,
            "diversity_reference_size": 20,
        },
        "released": {"population_size": 1_000_000},
    },
)
