"""Opportunity density (FML-bench appendix E): what improving steps gain, by how far they are from the baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence


def opportunity_density(improvements: Sequence[float], distances: Sequence[float]) -> float:
    """Density of one run: the sum of ``imp_k`` over the sum of ``d_k / d_max``, both over the steps that improve.

    A run without an improving step has density 0; one whose improving steps all have the baseline's vector has none.

    Args:
        improvements: of each valid step, over the baseline, as a share of the metric's range; not clamped.
        distances: of each valid step's code to the baseline's, in an embedding.

    >>> opportunity_density([0.25, -0.1, 0.5], [1.0, 2.0, 0.5])
    1.0
    >>> opportunity_density([-0.1, 0.0], [1.0, 2.0])
    0.0
    """
    improving = [(imp, d) for imp, d in zip(improvements, distances, strict=True) if imp > 0]
    if not improving:
        return 0.0
    gone = math.fsum(d for _, d in improving)
    if not gone:
        return math.nan
    return math.fsum(imp for imp, _ in improving) * max(distances) / gone
