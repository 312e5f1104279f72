"""Reference: hill climbing over DAGs with the BIC of regressions on polynomials of the causes.

A polynomial fits effect on cause better than cause on effect where the mechanism is not linear, which tells the
direction of an edge (Hoyer et al., 2008; Buehlmann, Peters and Ernest, 2014). A linear score is blind to it.
"""

from functools import cache

import numpy as np

DEGREE = 3
RIDGE = 1e-6  # powers of one column are nearly collinear


def learn(X: np.ndarray, seed: int) -> np.ndarray:
    """Return the graph at which no added, removed or reversed edge improves the score."""
    n, d = X.shape
    powers = np.concatenate([X**k for k in range(1, DEGREE + 1)], axis=1)
    powers = (powers - powers.mean(0)) / powers.std(0)
    gram = powers.T @ powers / n + RIDGE * np.eye(DEGREE * d)

    @cache
    def bic(node: int, causes: frozenset[int]) -> float:
        """Log-likelihood of ``node`` given ``causes`` less the penalty of their coefficients; d scores add up."""
        columns = [k * d + cause for cause in causes for k in range(DEGREE)]
        cross = gram[columns, node]
        variance = 1 - cross @ np.linalg.solve(gram[np.ix_(columns, columns)], cross)
        return -0.5 * n * np.log(variance) - 0.5 * np.log(n) * len(columns)

    graph = np.zeros((d, d), bool)
    while True:
        causes = [frozenset(np.flatnonzero(graph[:, j]).tolist()) for j in range(d)]
        reaches = closure(graph)
        best, gain = (), 1e-9
        for i, j in np.argwhere(~np.eye(d, dtype=bool)).tolist():
            moves = []
            if graph[i, j]:
                removed = bic(j, causes[j] - {i}) - bic(j, causes[j])
                moves.append((removed, [(i, j)]))
                # Only another path from i to j would make a cycle of the reversed edge.
                if not reaches[np.flatnonzero(graph[i] & (np.arange(d) != j)), j].any():
                    moves.append((removed + bic(i, causes[i] | {j}) - bic(i, causes[i]), [(i, j), (j, i)]))
            elif not reaches[j, i]:
                moves.append((bic(j, causes[j] | {i}) - bic(j, causes[j]), [(i, j)]))
            for value, flipped in moves:
                if value > gain:
                    best, gain = flipped, value
        if not best:
            return graph
        for i, j in best:
            graph[i, j] = not graph[i, j]


def closure(graph: np.ndarray) -> np.ndarray:
    """Return which node reaches which along edges, itself included."""
    reaches = np.eye(len(graph), dtype=bool) | graph
    for _ in range(len(graph).bit_length()):
        reaches = reaches @ reaches
    return reaches
