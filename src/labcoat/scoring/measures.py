"""Process metrics of FML-bench as pure functions of arrays: how far and how widely a search went, and how soon it paid.

Source: FML-bench, section 3.3 and appendix E, and its released code where the two differ. ``paper`` is the default
everywhere; ``released`` reproduces the code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Mode = Literal["paper", "released"]
Floats = NDArray[np.float64]

CLUSTER_DISTANCE = 0.015
"""Cosine distance below which two groups of codes are one (FML-bench, appendix E)."""
GAIN = 1e-15
"""Improvements up to this are rounding."""


def spread(codes: ArrayLike) -> float:
    """Exploration Spread: mean distance of the codes' vectors (n, d) to their centroid; NaN for none."""
    vectors = _rows(codes)
    if not len(vectors):
        return math.nan
    return float(np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).mean())


def reach(codes: ArrayLike, baseline: ArrayLike) -> float:
    """Exploration Reach: the largest distance of a code's vector, of (n, d), to the baseline's, (d,); NaN for none."""
    vectors = _rows(codes)
    if not len(vectors):
        return math.nan
    return float(np.linalg.norm(vectors - np.asarray(baseline, float), axis=1).max())


def effective_dimension(codes: ArrayLike, mode: Mode = "paper", about: ArrayLike | None = None) -> float:
    """Effective dim: the participation ratio of the eigenvalues of the codes' covariance, (sum λ)² / sum λ².

    It is taken about the codes' mean, or about another vector (d,), as AdaptiveSearch does about the baseline's.
    Undefined for fewer than two codes and for codes that are all equal: NaN in the paper's mode; the released code
    says 0.
    """
    vectors = _rows(codes)
    undefined = 0.0 if mode == "released" else math.nan
    if len(vectors) < 2 or (vectors == vectors[0]).all():  # the mean of equal numbers is rounded, their spread is not 0
        return undefined
    ratio = participation(vectors - (vectors.mean(axis=0) if about is None else np.asarray(about, float)))
    return undefined if ratio is None else ratio


def participation(rows: ArrayLike) -> float | None:
    """(sum λ)² / sum λ² over the eigenvalues λ of the rows' scalar products; None where all rows are zero.

    The sums are the trace of the matrix of scalar products and its squared Frobenius norm: no λ is needed. The
    released code leaves out those up to 1e-10 of the largest, which no figure shows.
    """
    vectors = _rows(rows)
    largest = np.abs(vectors).max(initial=0.0)
    if not largest:
        return None
    vectors = vectors / largest  # squares of small numbers would vanish
    products = vectors @ vectors.T
    return float(np.trace(products) ** 2 / (products**2).sum())


def cosine(a: ArrayLike, b: ArrayLike) -> float:
    """Cosine of the angle between two vectors (d,); 0 where one of them is zero."""
    one, other = np.asarray(a, float), np.asarray(b, float)
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0


def uniqueness(codes: ArrayLike) -> float:
    """Exploration Uniqueness: clusters among the codes' vectors (n, d), divided by n; NaN for none.

    Average linkage on cosine distances; groups nearer than CLUSTER_DISTANCE are one. Zero vectors, of codes without
    text, are one cluster of their own.
    """
    vectors = _rows(codes)
    if not len(vectors):
        return math.nan
    lengths = np.linalg.norm(vectors, axis=1)
    directed = vectors[lengths > 1e-8]
    clusters = len(directed) if len(directed) < 2 else _clusters(directed)
    return (clusters + (len(directed) < len(vectors))) / len(vectors)


def _clusters(vectors: Floats) -> int:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import pdist  # or linkage would wonder whether vectors are distances

    heights = linkage(pdist(vectors, "cosine"), "average")[:, 2]
    return 1 + int((heights >= CLUSTER_DISTANCE).sum())


def curve(
    values: Sequence[float | None], baseline: float, scale: float, direction: Literal["higher", "lower"]
) -> Floats:
    """Best-so-far normalised improvement after each step, (n,): 0 until something beats the baseline, never falling.

    Args:
        values: the metric of each step as displayed, None (or not finite) where the step has no valid one.
        baseline: the baseline's metric.
        scale: |p_best - p_worst| of the task.
        direction: which values are better.
    """
    sign = 1.0 if direction == "higher" else -1.0
    gains = [
        sign * (value - baseline) / scale if value is not None and math.isfinite(value) else 0.0 for value in values
    ]
    return np.maximum.accumulate(np.maximum(np.array(gains, float), 0.0)) if gains else np.empty(0)


def area(curve: ArrayLike, budget: int | None = None) -> float:
    """AUC-over-steps: mean of the curve over ``budget`` steps (the released code: over those that were recorded).

    A run that ended before its budget stands still for the rest. NaN without a step.
    """
    reached = np.asarray(curve, float)
    if not len(reached):
        return math.nan
    steps = budget or len(reached)
    rest = steps - len(reached)
    return float(reached[:steps].sum() + (rest * reached[-1] if rest > 0 else 0.0)) / steps


def first_improvement(curve: ArrayLike) -> float:
    """First-improvement step, counted from 1; NaN if nothing ever beat the baseline."""
    above = np.flatnonzero(np.asarray(curve, float) > GAIN)
    return float(above[0] + 1) if len(above) else math.nan


def late_gain(curve: ArrayLike, budget: int | None = None) -> float:
    """Late-gain fraction: the share of the final improvement that came in the second half; NaN without improvement."""
    reached = np.asarray(curve, float)
    if not len(reached) or not 1e-12 < reached[-1] < math.inf:
        return math.nan
    half = (budget or len(reached)) // 2
    before = reached[min(half, len(reached)) - 1] if half else reached[-1]
    return float((reached[-1] - before) / reached[-1])


def best_improvement(
    values: Sequence[float | None], direction: Literal["higher", "lower"], mode: Mode = "paper"
) -> float:
    """Best-improvement step, from 1: the first that reached the best value (released: the last one); NaN for none."""
    valid = [(number, v) for number, v in enumerate(values, 1) if v is not None and math.isfinite(v)]
    if not valid:
        return math.nan
    best = (max if direction == "higher" else min)(value for _, value in valid)
    reached = [number for number, value in valid if value == best]
    return float(reached[-1 if mode == "released" else 0])


def _rows(vectors: ArrayLike) -> Floats:
    array = np.asarray(vectors, float)
    return array if array.ndim == 2 else array.reshape(len(array), -1)
