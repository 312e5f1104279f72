"""One run of the grid: carried out, and folded into one row of the results."""

from __future__ import annotations

import math
from dataclasses import dataclass

from labcoat.bench.simulated import SimulatedBench
from labcoat.embedding.tokens import HashedTokens
from labcoat.errors import InputError
from labcoat.history import History
from labcoat.running import execute
from labcoat.scoring.improvement import position
from labcoat.scoring.opportunity import opportunity_density
from labcoat.scoring.scale import Scale, clamped
from labcoat.sim.grid import Cell


@dataclass(frozen=True)
class Row:
    """One run: what was searched by what, and what came out."""

    strategy: str
    landscape: str
    seed: int
    steps: int
    """Trials made."""
    valid: int
    """Trials with a valid measurement."""
    improving: int
    """Trials that are better than the baseline."""
    phi_opp: float | None
    """Opportunity density of the landscape, as its manifest has it."""
    density: float
    """Opportunity density of this run."""
    baseline: float
    best: float
    """Best value on validation; the baseline's where nothing beat it."""
    test_baseline: float
    test: float
    improvement: float
    """Normalised test improvement."""
    position: float
    """Where the test value lies between the baseline (0) and the optimum (1)."""


def run_cell(cell: Cell) -> Row:
    """Carry a run out, or go on with it, or read it where it is finished.

    Raises:
        LabcoatError: why the run did not come to its end.
    """
    plan = cell.plan()
    folder = execute(plan, cell.runs, lambda: SimulatedBench(plan.task), [])
    return row(cell.strategy, History(folder))


def row(strategy: str, history: History) -> Row:
    """The row of a finished run; ``strategy`` is its name in the tables."""
    metric, references = history.metric, history.manifest.references
    optimum = references.optimum_test
    values = [step.value(metric.name) for step in history.steps]
    baseline, *trials = values
    best = history.best.value(metric.name) if history.best else None
    test, test_baseline = (
        outcome.mean(metric.name) if outcome else None
        for outcome in (history.test_outcome(), history.test_outcome("test/baseline"))
    )
    if (
        baseline is None
        or best is None
        or test is None
        or test_baseline is None
        or metric.best is None
        or optimum is None
    ):
        raise InputError(f"{history.folder}: the run has no measurement on test")
    scale, on_test = Scale.of(metric, baseline), Scale.of(metric, test_baseline)
    gains = [scale.improvement(value) for value in trials if value is not None]
    return Row(
        strategy=strategy,
        landscape=history.manifest.id,
        seed=history.spec["seed"],
        steps=len(trials),
        valid=len(gains),
        improving=sum(found > 0 for found in gains),
        phi_opp=references.opportunity_density.mean if references.opportunity_density else None,
        density=opportunity_density(gains, distances(history)),
        baseline=baseline,
        best=best,
        test_baseline=test_baseline,
        test=test,
        improvement=clamped(on_test.improvement(test)),
        position=position(test, test_baseline, optimum),
    )


def distances(history: History) -> list[float]:
    """Of the code of each valid trial to the baseline's, in the offline embedding."""
    texts = [history.text(step) for step in history.trials if step.outcome.ok]
    baseline, *vectors = HashedTokens().embed([history.text(history.steps[0]), *texts])
    return [math.dist(vector, baseline) for vector in vectors]
