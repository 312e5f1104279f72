"""Runs the algorithm: ``fit`` trains and pickles it, ``predict`` loads it and writes its predictions."""

import argparse
import json
import pickle
from pathlib import Path

import numpy as np

from algorithm import Algorithm


def fit(train: Path, artefact: Path, seed: int) -> None:
    """Train on the arrays in ``train`` and write ``artefact/model.pkl``."""
    columns = json.loads((train / "columns.json").read_text())
    algorithm = Algorithm(columns=columns, seed=seed)
    algorithm.fit(*(np.load(train / f"{name}.npy") for name in ("features", "label", "group")))
    (artefact / "model.pkl").write_bytes(pickle.dumps(algorithm))


def predict(inputs: Path, artefact: Path, out: Path) -> None:
    """Predict the rows in ``inputs`` and write ``out/prediction.npy``."""
    algorithm = pickle.loads((artefact / "model.pkl").read_bytes())
    prediction = algorithm.predict(*(np.load(inputs / f"{name}.npy") for name in ("features", "group")))
    np.save(out / "prediction.npy", np.asarray(prediction), allow_pickle=False)


def main() -> None:
    """Read the command line and run one phase."""
    parser = argparse.ArgumentParser(description=__doc__)
    phases = parser.add_subparsers(dest="phase", required=True)
    fitting = phases.add_parser("fit")
    fitting.add_argument("--train", type=Path, required=True)
    fitting.add_argument("--artefact", type=Path, required=True)
    fitting.add_argument("--seed", type=int, required=True)
    predicting = phases.add_parser("predict")
    predicting.add_argument("--inputs", type=Path, required=True)
    predicting.add_argument("--artefact", type=Path, required=True)
    predicting.add_argument("--out", type=Path, required=True)
    options = vars(parser.parse_args())
    {"fit": fit, "predict": predict}[options.pop("phase")](**options)


if __name__ == "__main__":
    main()
