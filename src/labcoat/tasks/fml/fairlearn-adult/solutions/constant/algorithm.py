"""Degenerate: nobody is predicted positive, so both groups have the same rate."""

import numpy as np


class Algorithm:
    """Predicts 0 for everybody."""

    def __init__(self, columns: list[str], seed: int) -> None:
        """Need nothing."""

    def fit(self, X: np.ndarray, y: np.ndarray, group: np.ndarray) -> None:
        """Learn nothing."""

    def predict(self, X: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Return 0 per row."""
        return np.zeros(len(X), bool)
