"""Scores of fml/fairlearn-adult, from arrays alone, with analytic standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Rate = tuple[float, float]
"""A share and its variance."""


def rate(prediction: Bools, rows: Bools, what: str) -> Rate:
    """Share of positive predictions among ``rows``, with its binomial variance."""
    n = int(rows.sum())
    if n == 0:
        raise ValueError(f"answers hold no rows {what}; the rate of positives is not defined there")
    share = float(prediction[rows].sum()) / n
    return share, share * (1 - share) / n


def spread(rates: Iterable[Rate]) -> Rate:
    """Largest minus smallest share, with the variance of that difference of independent shares."""
    ordered = sorted(rates)
    (low, low_variance), (high, high_variance) = ordered[0], ordered[-1]
    return high - low, low_variance + high_variance


def score(
    outputs: dict[str, NDArray[np.generic]], answers: dict[str, NDArray[np.generic]]
) -> dict[str, dict[str, float | None]]:
    """Score predictions against the hidden answers.

    Args:
        outputs: ``prediction``, 0/1 or booleans, shape (rows,).
        answers: ``label`` 0/1 and ``group``, shape (rows,).

    Returns:
        ``{"value": v, "se": standard error}`` for each metric.

    Raises:
        ValueError: if a prediction is neither 0 nor 1.
    """
    raw = outputs["prediction"]
    if not np.isin(raw, (0, 1)).all():
        raise ValueError(f"prediction holds values other than 0 and 1, such as {raw[~np.isin(raw, (0, 1))][0]}")
    prediction, label, group = raw == 1, answers["label"] == 1, answers["group"]
    groups = {str(g): group == g for g in np.unique(group)}

    selected = spread(rate(prediction, rows, f"of group {g}") for g, rows in groups.items())
    true_positive = rate(prediction, label, "with label 1")
    false_positive = rate(prediction, ~label, "with label 0")
    right, variance = rate(prediction == label, np.ones_like(label), "at all")
    odds = max(
        spread(rate(prediction, rows & truth, f"of group {g} with label {name}") for g, rows in groups.items())
        for name, truth in ((1, label), (0, ~label))
    )
    # (TPR + TNR) / 2: the two rates come from different rows, so their variances add.
    balanced = (true_positive[0] + 1 - false_positive[0]) / 2, (true_positive[1] + false_positive[1]) / 4

    values = {
        "demographic_parity_difference": selected,
        "balanced_accuracy": balanced,
        "accuracy": (right, variance),
        "equalized_odds_difference": odds,
    }
    return {name: {"value": value, "se": math.sqrt(variance)} for name, (value, variance) in values.items()}
