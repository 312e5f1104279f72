"""Trivial: every pair that is correlated gets an edge from the earlier to the later column, which is acyclic."""

import numpy as np

THRESHOLD = 0.3


def learn(X: np.ndarray, seed: int) -> np.ndarray:
    """Return the strong correlations, directed by the order of the columns."""
    return np.triu(np.abs(np.corrcoef(X, rowvar=False)) > THRESHOLD, 1)
