"""Scores of fml/gcastle-notears: the structural Hamming distance of a learnt DAG to the true one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


def cycle(graph: Bools) -> list[int]:
    """Some directed cycle of ``graph``, its first node repeated at the end; empty if there is none."""
    left = np.arange(len(graph))
    while True:
        caused = graph[np.ix_(left, left)].any(axis=0)
        if caused.all():
            break
        left = left[caused]  # a node without causes is on no cycle
    if not len(left):
        return []
    # Every node left has a cause among those left: going from cause to cause must come back to a node passed before.
    path = [int(left[0])]
    while path.count(path[-1]) == 1:
        path.append(next(int(node) for node in left if graph[node, path[-1]]))
    return path[path.index(path[-1]) :][::-1]


def checked(raw: NDArray[np.generic]) -> Bools:
    """``raw`` as a DAG.

    Raises:
        ValueError: saying what it has that a DAG does not.
    """
    if not np.isin(raw, (0, 1)).all():
        raise ValueError(f"graph holds values other than 0 and 1, such as {raw[~np.isin(raw, (0, 1))][0]}")
    graph: Bools = raw == 1
    if graph.diagonal().any():
        node = int(graph.diagonal().argmax())
        raise ValueError(f"graph has a loop: graph[{node}, {node}] is 1, and no variable causes itself")
    if (graph & graph.T).any():
        i, j = np.argwhere(graph & graph.T)[0].tolist()
        raise ValueError(
            f"graph has an edge in both directions: graph[{i}, {j}] and graph[{j}, {i}] are both 1; choose one"
        )
    if found := cycle(graph):
        raise ValueError(f"graph has a cycle: {' -> '.join(map(str, found))}; it must be acyclic")
    return graph


def score(
    outputs: dict[str, NDArray[np.generic]], answers: dict[str, NDArray[np.generic]]
) -> dict[str, dict[str, float | None]]:
    """Score one learnt graph against the true one.

    Args:
        outputs: ``graph``, 0/1 or booleans, shape (nodes, nodes); ``graph[i, j]`` means i -> j.
        answers: ``graph``, booleans of the same shape.

    Returns:
        ``{"value": v, "se": None}`` for each metric: a graph has no rows to take an error from.

    Raises:
        ValueError: if the learnt graph is no DAG.
    """
    graph, truth = checked(outputs["graph"]), answers["graph"] == 1
    predicted, true, correct = int(graph.sum()), int(truth.sum()), int((graph & truth).sum())
    backwards = int((graph & truth.T).sum())
    # A reversed edge is one error: neither missing nor extra.
    missing, extra = true - correct - backwards, predicted - correct - backwards
    distance = missing + extra + backwards
    values = {
        "normalised_shd": distance / true,
        "shd": float(distance),
        "f1": 2 * correct / (predicted + true),
        "tpr": correct / true,
        "fdr": (predicted - correct) / max(predicted, 1),
    }
    return {name: {"value": value, "se": None} for name, value in values.items()}
