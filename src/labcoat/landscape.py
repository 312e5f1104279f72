"""Landscapes: simulated tasks by one formula with knobs, whose optimum is known and whose difficulty is chosen.

A code is a point: the positive constants ``C1``, ``C2``, ... that it assigns. Those that matter act in groups:

    u      = ln(x / optimum of x) / ln 4                 a constant's distance to its optimum, in largest edits
    q      = exp(-(u / reach)^2) (1 - ruggedness sin^2(pi u))
    g      = the smallest q of the group                 a group is as good as its worst constant
    t      = 1 - plateau floor((1 - g) / plateau)        terraces; t = g where plateau is 0
    height = the mean t of all groups                    1 at the optimum, and nowhere more

Whatever is random (optima, codes that fail, noise) is drawn by hashing what it depends on: the same trial gives the
same number, in whatever order trials are made.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

LARGEST = math.log(4)
"""The largest edit: ``offline:mutate`` moves a number by a factor of at most 4."""
START = 1000.0
"""What every constant is before the first edit; each optimum is one to two largest edits away."""
FORMULA = Path(__file__)
"""This file: part of what defines a task."""


class Knobs(BaseModel):
    """``[simulation.landscape]`` of a manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    instance: int = Field(0, ge=0)
    """Which optima and which failing codes are drawn."""
    constants: int = Field(12, ge=1)
    """How many constants the code has."""
    matter: int = Field(12, ge=1)
    """How many of them matter; the others do nothing. With ``reach``, the opportunity density: how often an edit can
    gain anything."""
    reach: float = Field(1.5, gt=0)
    """How far from its optimum a constant is felt, in largest edits: how much an edit can gain."""
    interacting: int = Field(1, ge=1)
    """Constants in a group."""
    ruggedness: float = Field(0.0, ge=0, lt=1)
    """Depth of the ripples on every slope, as a share of its height; they are a largest edit apart."""
    plateau: float = Field(0.0, ge=0, lt=1)
    """Depth of a plateau: what a group must gain before any of it shows."""
    failing: float = Field(0.0, ge=0, lt=1)
    """Share of codes that crash; the one that all searches begin with never does."""
    noise: float = Field(0.0, ge=0)
    """Standard deviation of the validation score; the test score has no noise."""
    gap: float = Field(0.0, ge=0)
    """How far the optimum of the test lies from that of validation in every constant that matters, in largest edits."""

    @model_validator(mode="after")
    def _whole(self) -> Knobs:
        if self.matter > self.constants:
            raise ValueError(f"matter: {self.matter} of {self.constants} constants cannot matter")
        if self.matter % self.interacting:
            raise ValueError(
                f"interacting: {self.matter} constants are no whole number of groups of {self.interacting}"
            )
        return self


class Landscape:
    """The formula with its knobs set."""

    def __init__(self, knobs: Knobs) -> None:
        """Draw the optima."""
        self.knobs = knobs
        self.names = [f"C{number}" for number in range(1, knobs.constants + 1)]
        drawn = sorted(self.names, key=lambda name: self._draw("matters", name))[: knobs.matter]
        self.groups = [drawn[at : at + knobs.interacting] for at in range(0, knobs.matter, knobs.interacting)]
        away = {name: self._sign("side", name) * (1 + self._draw("away", name)) for name in drawn}
        self.optimum = {
            "val": {name: START * 4**far for name, far in away.items()},
            "test": {name: START * 4 ** (far + knobs.gap * self._sign("shift", name)) for name, far in away.items()},
        }
        """The best value of each constant that matters, by split."""

    def __call__(self, constants: Mapping[str, object], split: str, seed: int) -> dict[str, float]:
        """The score of a code, as a trial measures it.

        Raises:
            ValueError: a constant is missing or not a positive number, or the code is one of those that crash.
        """
        point = {name: _positive(constants, name) for name in self.names}
        code = ",".join(f"{value!r}" for value in point.values())
        moved = any(value != START for value in point.values())
        if moved and self._draw("fails", code) < self.knobs.failing:
            raise ValueError("loss is nan: training diverged with these constants")
        height = self.height(point, split)
        if split == "val" and self.knobs.noise:
            height += self.knobs.noise * self._normal("noise", f"{seed},{code}")
        return {"score": min(1.0, max(0.0, height))}

    def height(self, point: Mapping[str, float], split: str) -> float:
        """The height of a point, without noise."""
        optimum = self.optimum[split]
        groups = [min(self._quality(point[name] / optimum[name]) for name in group) for group in self.groups]
        plateau = self.knobs.plateau
        seen = [1 - plateau * math.floor((1 - good) / plateau) for good in groups] if plateau else groups
        return math.fsum(seen) / len(seen)

    def _quality(self, ratio: float) -> float:
        away = math.log(ratio) / LARGEST
        slope = math.exp(-((away / self.knobs.reach) ** 2))
        return slope * (1 - self.knobs.ruggedness * math.sin(math.pi * away) ** 2)

    def _sign(self, *of: str) -> int:
        return 1 if self._draw(*of) < 0.5 else -1

    def _normal(self, *of: str) -> float:
        """A draw from the standard normal distribution (Box and Muller)."""
        return math.sqrt(-2 * math.log(self._draw("a", *of))) * math.cos(2 * math.pi * self._draw("b", *of))

    def _draw(self, *of: str) -> float:
        """A number between 0 and 1, both excluded, that depends on the instance and on ``of`` alone."""
        digest = hashlib.sha256("/".join([str(self.knobs.instance), *of]).encode()).digest()
        return (int.from_bytes(digest[:6], "big") + 0.5) / 2**48


def _positive(constants: Mapping[str, object], name: str) -> float:
    value = constants.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ValueError(f"{name} must be a positive number, found {value!r}")
    return float(value)
