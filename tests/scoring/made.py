"""Runs as scoring knows them, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labcoat.manifest import Metric
from labcoat.scoring.runs import Geometry, Reading, Run

ACCURACY = Metric(name="accuracy", direction="higher", best=1.0, worst=0.0)
ERROR = Metric(name="error", direction="lower", best=0.0)
"""Its worst value has no bound."""
FORGETTING = Metric(name="p", direction="higher", best=1.0, display="-log10")
"""Displayed as -log10 p, which is better the lower it is; no bound."""


def reading(value: float | str | None) -> Reading:
    """A valid measurement, or one that ended otherwise: with that status, or as a crash."""
    if value is None or isinstance(value, str):
        return Reading(value or "crash", None)
    return Reading("ok", value)


def made(
    values: Sequence[float | str | None] = (0.6,),
    *,
    baseline: float | None = 0.5,
    test: float | str | None = 0.6,
    test_baseline: float | None = 0.5,
    metric: Metric = ACCURACY,
    budget: int | None = None,
    task: str = "fml/task",
    strategy: str = "greedy",
    seed: int = 0,
    chosen: int | None = None,
    **fields: Any,
) -> Run:
    """A finished run that tested the first of its best trials; ``test=None`` for one that was stopped before."""
    trials = tuple(reading(value) for value in values)
    valid = [(value.valid, -number) for number, value in enumerate(trials, 1) if value.valid is not None]
    best = -(max if metric.direction == "higher" else min)(valid)[1] if valid else 0
    told: dict[str, Any] = {
        "folder": f"runs/{task}/{strategy}/{seed}",
        "content": f"{task} {strategy} {seed}",
        "spec": {
            "task": {"id": task, "hash": f"hash of {task}"},
            "strategy": {"name": strategy, "params": {}, "source": "s"},
            "models": {"*": "m"},
            "steps": len(values) if budget is None else budget,
            "seed": seed,
        },
        "metric": metric,
        "marks": (),
        "finished": test is not None,
        "baseline": None if baseline is None else Reading("ok", baseline),
        "trials": trials,
        "chosen": (best if chosen is None else chosen) if test is not None else None,
        "test": None if test is None else reading(test),
        "test_baseline": None if test_baseline is None else Reading("ok", test_baseline),
        "noise": None,
        "tokens": 2_000_000,
        "seconds": 1800.0,
    } | fields
    return Run(**told)


def placed(run: Run, distances: Sequence[float] | None = None) -> Geometry:
    """A geometry of the right size."""
    names = ("Exploration Spread", "Exploration Uniqueness", "Exploration Reach", "Effective dim")
    shape = dict.fromkeys(names, 1.0)
    return Geometry({"paper": shape, "released": shape}, tuple(distances or [1.0] * len(run.trials)))
