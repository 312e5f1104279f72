"""Runs the learner: ``predict`` reads one data matrix and writes the graph that was learnt from it."""

import argparse
from pathlib import Path

import numpy as np

from algorithm import learn


def predict(inputs: Path, out: Path, seed: int) -> None:
    """Learn from ``inputs/X.npy`` and write ``out/graph.npy``."""
    graph = learn(np.load(inputs / "X.npy"), seed)
    np.save(out / "graph.npy", np.asarray(graph), allow_pickle=False)


def main() -> None:
    """Read the command line and run the phase."""
    parser = argparse.ArgumentParser(description=__doc__)
    phases = parser.add_subparsers(dest="phase", required=True)
    predicting = phases.add_parser("predict")
    predicting.add_argument("--inputs", type=Path, required=True)
    predicting.add_argument("--out", type=Path, required=True)
    predicting.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    predict(options.inputs, options.out, options.seed)


if __name__ == "__main__":
    main()
