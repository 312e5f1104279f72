"""Degenerate: as many edges as there may be in truth, drawn by chance along a random order."""

import numpy as np

EDGES_PER_NODE = 2


def learn(X: np.ndarray, seed: int) -> np.ndarray:
    """Return a random DAG."""
    d, rng = X.shape[1], np.random.default_rng(seed)
    pairs = np.transpose(np.triu_indices(d, 1))
    i, j = rng.permutation(d)[rng.choice(pairs, EDGES_PER_NODE * d, replace=False)].T
    graph = np.zeros((d, d), bool)
    graph[i, j] = True
    return graph
