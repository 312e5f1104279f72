"""Degenerate: nothing causes anything, so every true edge is missing and nothing else is wrong."""

import numpy as np


def learn(X: np.ndarray, seed: int) -> np.ndarray:
    """Return the graph without edges."""
    return np.zeros((X.shape[1], X.shape[1]), bool)
