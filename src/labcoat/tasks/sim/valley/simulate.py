"""sim/valley: an isotropic summit in the logarithms of five constants, no noise, no interaction.

score = exp(-sum_i w_i ln(x_i / x*_i)^2), with the optimum x* of the test shifted by a few per cent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

OPTIMUM = {
    "val": {"LEARNING_RATE": 0.02, "WEIGHT_DECAY": 0.004, "HIDDEN_UNITS": 96, "DROPOUT": 0.2, "EPOCHS": 20},
    "test": {"LEARNING_RATE": 0.021, "WEIGHT_DECAY": 0.0037, "HIDDEN_UNITS": 101, "DROPOUT": 0.19, "EPOCHS": 22},
}
WEIGHTS = {"LEARNING_RATE": 0.15, "WEIGHT_DECAY": 0.08, "HIDDEN_UNITS": 0.12, "DROPOUT": 0.15, "EPOCHS": 0.2}


def simulate(constants: Mapping[str, object], split: str, seed: int) -> dict[str, float]:
    """The score of the constants on a split; the seed changes nothing here.

    Raises:
        ValueError: a constant is missing or not a positive number.
    """
    distance = 0.0
    for name, best in OPTIMUM[split].items():
        value = constants.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ValueError(f"{name} must be a positive number, found {value!r}")
        distance += WEIGHTS[name] * math.log(value / best) ** 2
    return {"score": math.exp(-distance)}
