"""A strategy as it is checked, and the trials that it meets where nothing else is said."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from labcoat.bench.outcome import Outcome
from labcoat.errors import LabcoatError
from labcoat.lab import Strategy
from labcoat.testing.world import Search, World, failed, measured, violation


class Broken(AssertionError):
    """A strategy breaks a rule."""


@dataclass(frozen=True)
class Case:
    """A strategy as it is checked.

    Args:
        strategy: the strategy, at the top level of its module.
        params: its parameters.
        scale_free: whether its decisions depend on the order of the metric's values only, and not on their scale.
        steps: budget of the short runs; enough for it to do all that it can do.
    """

    strategy: Strategy
    params: Mapping[str, Any] = field(default_factory=dict)
    scale_free: bool = True
    steps: int = 12

    def search(self, world: World, *, steps: int | None = None, seed: int = 0, folder: Path | None = None) -> Search:
        """A search in ``world``.

        Raises:
            Broken: it failed.
        """
        try:
            return world.search(
                self.strategy, self.params, steps=self.steps if steps is None else steps, seed=seed, folder=folder
            )
        except LabcoatError as error:
            self.broken(str(error))

    def broken(self, text: str) -> NoReturn:
        """Say what is wrong.

        Raises:
            Broken: always.
        """
        raise Broken(f"strategy {self.strategy.name}: {text}")


def mixed(steps: int) -> Callable[[int], Outcome]:
    """Outcomes of all kinds: better and worse values with ties among them, failures in a row, broken constraints.

    The values are binary fractions, so that a change of unit is exact.
    """
    rng = random.Random(2024)

    def outcome(i: int) -> Outcome:
        value = (rng.randrange(64) + i // 4) / 64
        kind = rng.random()
        return failed() if kind < 0.35 else violation(value) if kind < 0.4 else measured(value)

    return [outcome(i) for i in range(steps)].__getitem__
