"""What the paper printed: its tables as data, and each number with how far it is rounded."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files

MEAN = "MEAN"
"""The row of Table 2 below the tasks."""
THOUSANDTHS = 0.0005
"""How far a number with three decimals is from what was rounded."""
RELATIVE = ("CausalML", "gCastle", "Unlearning")
"""Tasks whose worst value has no bound; the baseline stands for it (Appendix E)."""


@dataclass(frozen=True)
class Printed:
    """A number as it stands in the paper."""

    text: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def slack(self) -> float:
        """Half a unit of its last digit."""
        exponent = Decimal(self.text).as_tuple().exponent
        assert isinstance(exponent, int), self.text
        return 0.5 * 10.0**exponent


@dataclass(frozen=True)
class Spot:
    """A cell of Table 2."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class Metric:
    """A row of Table 4."""

    values: Mapping[str, float]
    rho: float
    p: str


@dataclass(frozen=True)
class Task:
    """A row of Table 5."""

    best: float
    density: float
    dense: bool
    baseline: float


@dataclass(frozen=True)
class Standing:
    """A column of Table 3."""

    improvement: float
    win_rate: float


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((files(__package__) / name).read_text(encoding="utf-8").splitlines()))


@cache
def improvement() -> dict[str, dict[str, Spot]]:
    """Table 2 by agent and task, its last row under MEAN."""
    found: dict[str, dict[str, Spot]] = {}
    for row in _rows("table2_normalised_improvement.csv"):
        found.setdefault(row["agent"], {})[row["task"]] = Spot(float(row["mean"]), float(row["sd"]))
    return found


@cache
def means() -> dict[str, dict[str, float]]:
    """The mean improvements of Table 2 by agent and task, without its last row."""
    return {
        agent: {task: spot.mean for task, spot in own.items() if task != MEAN} for agent, own in improvement().items()
    }


@cache
def standings() -> dict[str, Standing]:
    """Table 3 by agent."""
    rows = _rows("table3_seven_agents.csv")
    return {row["agent"]: Standing(float(row["mean_improvement"]), float(row["win_rate_percent"])) for row in rows}


@cache
def metrics() -> dict[str, Metric]:
    """Table 4 by metric."""
    rows = _rows("table4_process_metrics.csv")
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        values.setdefault(row["metric"], {})[row["agent"]] = float(row["value"])
    return {row["metric"]: Metric(values[row["metric"]], float(row["spearman_rho"]), row["p"]) for row in rows}


@cache
def tasks() -> dict[str, Task]:
    """Table 5 by task."""
    return {
        row["task"]: Task(
            float(row["p_best"]), float(row["phi_opp"]), row["partition"] == "DENSE-OPP", float(row["baseline_test"])
        )
        for row in _rows("table5_tasks.csv")
    }


@cache
def text(name: str) -> dict[str, Printed]:
    """The numbers of that name in the text, by what they are of."""
    return {row["of"]: Printed(row["value"]) for row in _rows("text.csv") if row["name"] == name}
