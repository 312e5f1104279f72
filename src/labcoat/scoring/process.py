"""The score of one run: its test result and the twelve process metrics, under the names that the paper gives them.

Source: FML-bench 3.3, 3.4 and appendix E; where its released code differs, the mode ``released`` follows the code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from labcoat.scoring import measures
from labcoat.scoring.improvement import of_headroom
from labcoat.scoring.measures import Mode
from labcoat.scoring.opportunity import opportunity_density
from labcoat.scoring.runs import Geometry, Reading, Run
from labcoat.scoring.scale import Scale, clamped, displayed

GEOMETRY = ("Exploration Spread", "Exploration Uniqueness", "Exploration Reach", "Effective dim")
DIMENSIONS = {
    **dict.fromkeys(GEOMETRY, "Exploration"),
    "Val-test |gap|": "Generalization",
    "Valid step ratio": "Reliability",
    "AUC-over-steps": "Efficiency",
    "First-improvement step": "Efficiency",
    "Late-gain fraction": "Efficiency",
    "Best-improvement step": "Efficiency",
    "Token cost (M)": "Cost",
    "Wall-clock time (h)": "Cost",
}
"""The process metrics in the order of the paper's Table 4, each with its dimension."""
SUCCESS: dict[Mode, tuple[str, ...]] = {"paper": ("ok",), "released": ("ok", "bad_output")}
"""Statuses that the valid step ratio counts. The released code asks for exit code 0 and a result file, not for a metric
in it; ``bad_output`` is the nearest to that. A broken constraint is a crash there."""


@dataclass(frozen=True)
class Score:
    """What a run is worth, and how it got there; NaN where something is undefined."""

    test: float
    """Raw test metric of what the run delivers."""
    improvement: float
    """Normalised test improvement."""
    validation: float
    """Normalised validation improvement of the same code."""
    process: Mapping[str, float]
    """By the names in :data:`DIMENSIONS`."""
    density: float
    """Opportunity density."""
    notes: tuple[str, ...]
    """What is not as it should be."""
    of_headroom: float
    """The improvement as a share of the largest that the baseline leaves on test."""
    noise: float
    """Standard error of the baseline on test, in units of the improvement."""
    gains: tuple[float, float]
    """What ``validation`` and ``improvement`` are before they are cut at 0."""

    @property
    def signed_gap(self) -> float:
        """Signed val-test gap; positive where the search fitted the validation split."""
        return self.validation - self.improvement


def score(run: Run, geometry: Geometry | None, mode: Mode) -> Score:
    """Score a run, finished or not; without ``geometry`` the exploration metrics and the density are NaN."""
    notes = [] if run.finished else [f"not finished: {len(run.trials)} of {run.budget} steps"]
    scale = Scale.of(run.metric, run.baseline.value if run.baseline else None)
    if math.isnan(scale.baseline):
        notes.append("no baseline on validation")
    elif math.isnan(scale.span):
        notes.append("no range: the task names no best value, or its baseline is the best")
    on_test = Scale.of(run.metric, run.test_baseline.value if run.test_baseline else None)
    test, gained = _test(run, on_test, mode, notes)
    selected = scale.improvement(_validated(run, mode))
    validation, improvement = clamped(selected), clamped(gained)
    return Score(
        test=test,
        improvement=improvement,
        validation=validation,
        process={
            **(geometry.shape[mode] if geometry else dict.fromkeys(GEOMETRY, math.nan)),
            "Val-test |gap|": abs(validation - improvement),
            **_over_steps(run, scale, mode),
            "Token cost (M)": run.tokens / 1e6,
            "Wall-clock time (h)": run.seconds / 3600,
        },
        density=_density(run, scale, geometry) if geometry else math.nan,
        notes=tuple(notes),
        of_headroom=of_headroom(improvement, on_test.headroom),
        noise=on_test.error(run.noise),
        gains=(selected, gained),
    )


def _test(run: Run, scale: Scale, mode: Mode, notes: list[str]) -> tuple[float, float]:
    """Raw test metric and its improvement, not cut at 0.

    A test that failed or broke a constraint counts as the baseline. One that was never made is undefined; the released
    code takes the baseline for it, too.
    """
    baseline = run.test_baseline.value if run.test_baseline else None
    known = math.nan if baseline is None else baseline
    if run.test is None:
        notes.append("no test")
        return (known, 0.0) if mode == "released" else (math.nan, math.nan)
    if math.isnan(scale.baseline):
        notes.append("no baseline on test")
    value = run.test.valid
    if value is None:
        notes.append(f"test: {run.test.status}; counts as the baseline")
        value = known
    improvement = scale.improvement(value)
    if mode == "released" and not math.isfinite(improvement):
        return value, math.nan
    return value, improvement


def _validated(run: Run, mode: Mode) -> float | None:
    """The validation value of what was tested; as released, the best of all trials, else the baseline's."""
    steps = [run.baseline, *run.trials] if run.baseline else []
    if mode == "paper" and run.chosen is not None:
        return steps[run.chosen].value if run.chosen < len(steps) else None
    valid = [trial.valid for trial in run.trials if trial.valid is not None]
    if not valid:
        return run.baseline.value if run.baseline else None
    return (max if run.metric.direction == "higher" else min)(valid)


def _over_steps(run: Run, scale: Scale, mode: Mode) -> dict[str, float]:
    """What is read from the trajectory on validation: over the budget, or, as released, over the recorded steps."""
    values = [displayed(trial.valid, run.metric) for trial in run.trials]
    steps = run.budget if mode == "paper" else len(values)
    known = not math.isnan(scale.baseline + scale.span)
    curve = measures.curve(values, scale.baseline, scale.span, scale.direction) if known else np.empty(0)
    return {
        "Valid step ratio": _ratio(run.trials, SUCCESS[mode], steps),
        "AUC-over-steps": measures.area(curve, steps),
        "First-improvement step": measures.first_improvement(curve),
        "Late-gain fraction": measures.late_gain(curve, steps),
        "Best-improvement step": measures.best_improvement(values, scale.direction, mode),
    }


def _ratio(trials: tuple[Reading, ...], success: tuple[str, ...], steps: int) -> float:
    return sum(trial.status in success for trial in trials) / steps if steps else math.nan


def _density(run: Run, scale: Scale, geometry: Geometry) -> float:
    valid = [
        (scale.improvement(trial.valid), distance)
        for trial, distance in zip(run.trials, geometry.distances, strict=True)
        if trial.valid is not None
    ]
    if math.isnan(scale.baseline + scale.span):
        return math.nan
    return opportunity_density([gained for gained, _ in valid], [distance for _, distance in valid])


def shape(codes: ArrayLike, baseline: ArrayLike, mode: Mode) -> dict[str, float]:
    """The four exploration metrics of the codes' vectors (n, d), with the baseline's (d,)."""
    found = (
        measures.spread(codes),
        measures.uniqueness(codes),
        measures.reach(codes, baseline),
        measures.effective_dimension(codes, mode),
    )
    return dict(zip(GEOMETRY, found, strict=True))
