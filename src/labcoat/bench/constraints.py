"""Constraints: how far a measurement is from its bounds. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from labcoat.bench.outcome import Measure
from labcoat.manifest import Constraint, Manifest

Metrics = Mapping[str, Measure]


def slack(constraint: Constraint, measured: Measure, baseline: Measure | None, widened: bool) -> float:
    """Distance to the bound, positive or zero where the constraint holds.

    Args:
        constraint: side, reference and tolerance.
        measured: the metric of the candidate.
        baseline: the same metric of the baseline on the same split; needed if the reference is the baseline.
        widened: on the hidden test, move the bound by two standard errors of the difference to the baseline;
            an unknown error counts as zero.
    """
    if constraint.reference == "baseline":
        if baseline is None:
            raise ValueError(f"constraint on {constraint.metric}: no measurement of the baseline")
        reference = baseline.mean
    else:
        reference, baseline = constraint.reference, None
    allowed = constraint.tolerance
    if widened:
        allowed += 2 * math.hypot(measured.error or 0.0, (baseline.error or 0.0) if baseline else 0.0)
    gap = measured.mean - reference if constraint.side == "at_least" else reference - measured.mean
    return gap + allowed


def judge(
    manifest: Manifest, metrics: Metrics, baseline: Metrics | None, widened: bool
) -> tuple[Literal["ok", "violation"], dict[str, float], str]:
    """Status, slack by constraint, and a sentence per enforced constraint that is violated.

    A declared constraint is shown where its metric was measured and never decides.
    """
    found: dict[str, float] = {}
    broken: list[str] = []
    for constraint in manifest.constraint:
        measured = metrics.get(constraint.metric)
        if measured is None and constraint.kind == "declared":
            continue
        if measured is None:
            raise ValueError(f"constraint on {constraint.metric}: the scorer measured no such metric")
        against = baseline.get(constraint.metric) if baseline else None
        distance = found[manifest.name_of(constraint)] = slack(constraint, measured, against, widened)
        if distance < 0 and constraint.kind == "enforced":
            side = constraint.side.replace("_", " ")
            bound = measured.mean - distance if constraint.side == "at_least" else measured.mean + distance
            why = [f"the baseline's {against.mean:.6g}"] if against and constraint.reference == "baseline" else []
            why += [f"tolerance {constraint.tolerance:.6g}"] if constraint.tolerance else []
            why += ["widened by two standard errors"] if widened else []
            broken.append(
                f"{constraint.metric} = {measured.mean:.6g} must be {side} {bound:.6g}{reasons(why)}; "
                f"it misses that by {-distance:.6g}"
            )
    return ("violation" if broken else "ok"), found, "; ".join(broken)


def reasons(why: list[str]) -> str:
    """Where a bound comes from, in brackets; nothing if it is simply the reference."""
    return f" ({', '.join(why)})" if why else ""
