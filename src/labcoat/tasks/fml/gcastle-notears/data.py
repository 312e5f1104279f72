"""Draw the graphs and the data of fml/gcastle-notears from the installation's salt. Needs numpy only.

Nothing about the truth is in the package: graphs, mechanisms, noise and the order of the nodes all come from the salt,
and every problem has a random stream of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SAMPLES = 500
EDGES_PER_NODE = 2
KINDS = ("erdos-renyi", "scale-free")
SIZES = {
    "cpu": {"val": (10, 12, 15, 18, 20), "test": (10, 10, 12, 12, 15, 15, 18, 18, 20, 20)},
    "full": {"val": (50,) * 3, "test": (50,) * 5},
}
"""Nodes of the graphs of each split; every entry is one graph of each kind."""
NOISE = 0.5
"""Standard deviation of a node's own noise."""
WEIGHT, BIAS = 0.8, 0.3
"""Standard deviations of the networks' weights and biases."""
HIDDEN = 4
"""Least number of hidden units."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def erdos_renyi(nodes: int, rng: np.random.Generator) -> Bools:
    """A DAG with exactly ``EDGES_PER_NODE * nodes`` edges, drawn uniformly from the pairs i < j."""
    graph = np.zeros((nodes, nodes), bool)
    pairs = np.triu_indices(nodes, 1)
    chosen = rng.choice(len(pairs[0]), EDGES_PER_NODE * nodes, replace=False)
    graph[pairs[0][chosen], pairs[1][chosen]] = True
    return graph


def scale_free(nodes: int, rng: np.random.Generator) -> Bools:
    """A DAG by preferential attachment (Barabasi and Albert, 1999), numbered in topological order.

    Each node joins ``EDGES_PER_NODE`` earlier ones, drawn with probability proportional to 1 + degree. A coin decides
    whether all edges point to the later or all to the earlier node, so that hubs have many effects or many causes:
    were it always the same, how well a node is predicted by the others would give the order away.
    """
    graph = np.zeros((nodes, nodes), bool)
    for new in range(1, nodes):
        degree = 1.0 + graph[:new].sum(1) + graph[:, :new].sum(0)
        old = rng.choice(new, min(EDGES_PER_NODE, new), replace=False, p=degree / degree.sum())
        graph[old, new] = True
    return graph if rng.random() < 0.5 else graph.T[::-1, ::-1]


def sample(graph: Bools, samples: int, rng: np.random.Generator) -> Floats:
    """Draw from a structural equation model on ``graph``, whose nodes are in topological order.

    A root is noise; any other node is a network of its parents with one hidden layer of tanh units, plus noise.

    Returns:
        Samples, shape (samples, nodes).
    """
    X = rng.normal(0, NOISE, (samples, len(graph)))
    for node in range(len(graph)):
        parents = np.flatnonzero(graph[:, node])
        if len(parents):
            hidden = max(HIDDEN, len(parents))
            inner, outer = rng.normal(0, WEIGHT, (len(parents), hidden)), rng.normal(0, WEIGHT, hidden)
            X[:, node] += np.tanh(X[:, parents] @ inner + rng.normal(0, BIAS, hidden)) @ outer
    return X


def problem(nodes: int, kind: str, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """One problem: data as the learner sees them, and the truth.

    Returns:
        ``X`` (samples, nodes), every column with mean 0 and variance 1: variances that grow along the edges would give
        the order away (Reisach et al., 2021). ``graph`` (nodes, nodes): ``graph[i, j]`` means i -> j. Columns and nodes
        are in the same random order.
    """
    ordered = {"erdos-renyi": erdos_renyi, "scale-free": scale_free}[kind](nodes, rng)
    X = sample(ordered, SAMPLES, rng)
    shuffled = rng.permutation(nodes)
    X = X[:, shuffled]
    return (X - X.mean(0)) / X.std(0), ordered[np.ix_(shuffled, shuffled)]


def problems(salt: bytes, scale: str, split: str) -> Iterator[tuple[Floats, Bools]]:
    """All problems of a split, in order."""
    for number, (nodes, kind) in enumerate((nodes, kind) for nodes in SIZES[scale][split] for kind in KINDS):
        # A stream of its own for each problem: 256 bits that nobody can guess without the salt.
        stream = hashlib.sha256(salt + f"{scale} {split} {number}".encode()).digest()
        yield problem(nodes, kind, np.random.default_rng(int.from_bytes(stream)))


def write(salt: bytes, scale: str, out: Path) -> None:
    """Write both splits below ``out``."""
    for split in SIZES[scale]:
        for number, (X, graph) in enumerate(problems(salt, scale, split)):
            folder = out / split / str(number)
            for part, name, array in (("inputs", "X", X), ("answers", "graph", graph)):
                (folder / part).mkdir(parents=True)
                np.save(folder / part / f"{name}.npy", array)
            (folder / "problem.json").write_text(json.dumps({"nodes": len(graph)}))


def main() -> None:
    """Read the command line and write the splits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, help="not used: everything is generated")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scale", choices=list(SIZES), default="cpu")
    parser.add_argument("--salt", type=bytes.fromhex, required=True, help="secret of this installation, in hex")
    options = parser.parse_args()
    write(options.salt, options.scale, options.out)


if __name__ == "__main__":
    main()
