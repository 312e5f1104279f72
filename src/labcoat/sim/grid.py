"""Which runs: every strategy on every landscape with every seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from labcoat import catalog
from labcoat import strategies as package
from labcoat.errors import InputError
from labcoat.plan import Plan
from labcoat.task import Task

SUITE = "landscapes"
MODEL = "offline:mutate"


@dataclass(frozen=True)
class Cell:
    """One run of the grid, as a process of the pool is told of it."""

    strategy: str
    landscape: str
    seed: int
    steps: int
    model: str
    runs: Path

    def plan(self) -> Plan:
        """The run in full, looked up and checked."""
        return Plan.of(
            task=_task(self.landscape), strategy=self.strategy, model=self.model, steps=self.steps, seed=self.seed
        )


@lru_cache(maxsize=64)  # a process of the pool meets each landscape often
def _task(name: str) -> Task:
    return catalog.find(name)


@dataclass(frozen=True)
class Grid:
    """Names as the user gave them; :meth:`of` takes all strategies and the whole suite where none are given."""

    strategies: tuple[str, ...]
    landscapes: tuple[str, ...]
    seeds: int
    steps: int
    model: str
    runs: Path

    @classmethod
    def of(
        cls, *, strategies: Sequence[str] = (), landscapes: Sequence[str] = (), seeds: int, steps: int, runs: Path,
        model: str = MODEL,
    ) -> Grid:  # fmt: skip
        """A grid whose every row and column can be run.

        Raises:
            InputError: naming what is unknown, twice there, out of range, or no simulated task with a known optimum.
        """
        suite = [task.id for task in catalog.shipped() if SUITE in task.manifest.suites]
        grid = cls(tuple(strategies or package.names()), tuple(landscapes or suite), seeds, steps, model, runs)
        if seeds < 1:
            raise InputError(f"--seeds {seeds}: a landscape is searched at least once")
        tasks = [catalog.find(name) for name in grid.landscapes]
        for task in tasks:
            manifest = task.manifest
            if manifest.simulation is None or manifest.references.optimum_test is None or manifest.metric.best is None:
                raise InputError(
                    f"--landscape {task.id}: no simulated task with a known optimum; "
                    "it needs [simulation], metric.best and references.optimum_test"
                )
        for option, names in (("--strategy", list(grid.strategies)), ("--landscape", [task.id for task in tasks])):
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise InputError(f"{option} {twice[0]}: given twice; once is enough")
        for strategy in grid.strategies:
            Cell(strategy, grid.landscapes[0], 0, steps, model, runs).plan()
        return grid

    def cells(self) -> list[Cell]:
        """All runs, seed by seed, so that what an interruption leaves is the same for all strategies."""
        return [
            Cell(strategy, landscape, seed, self.steps, self.model, self.runs)
            for seed in range(self.seeds)
            for landscape in self.landscapes
            for strategy in self.strategies
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        lists = {"strategies": list(self.strategies), "landscapes": list(self.landscapes)}
        return asdict(self) | lists | {"runs": str(self.runs)}
