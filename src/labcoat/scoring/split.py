"""Does a statistic differ between two kinds of tasks? A test that exchanges the labels of the tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from labcoat.scoring.paired import DRAWS, EXACT, drawn_p


def split_test(one: Sequence[float], other: Sequence[float], *, seed: int = 0) -> float:
    """Two-sided p-value of the difference of the means, if each value could as well have been of the other kind.

    All splits into as many and as many are tried up to EXACT values, above that DRAWS draws. 1 where nothing differs.

    >>> split_test([1.0, 2.0, 3.0], [7.0, 8.0, 9.0])
    0.1
    """
    values, size = np.array([*one, *other], float), len(one)
    if not size or size == len(values):
        return 1.0
    total = float(values.sum())
    middle = total * size / len(values)  # of the sum of the first kind, if the kinds are alike
    observed = abs(math.fsum(one) - middle) - 1e-12 * float(np.abs(values).sum())
    if len(values) <= EXACT:
        sums, counts = np.zeros(1), np.zeros(1, dtype=np.int64)
        for value in values:
            sums, counts = np.concatenate([sums, sums + value]), np.concatenate([counts, counts + 1])
        return float(np.mean(np.abs(sums[counts == size] - middle) >= observed))
    rng = np.random.default_rng(seed)
    drawn = np.array([rng.permutation(values)[:size].sum() for _ in range(DRAWS)])
    return drawn_p(drawn - middle, observed)
