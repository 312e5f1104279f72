"""sim/ridge: two constants that matter through their ratio, a cliff, a switch, a schedule, a memory budget, noise.

loss = 0.1 + 0.25 ln(r / r*)^2 + 0.15 [ln(512 / width)]+ + 0.2 [ln(8 / depth)]+ + schedule + 0.1 (not normalised)

with r = learning rate / batch size. At width 512, depth 8 and batch 16 the memory is 1.6 GB, so the optimum of 0.1 lies
within the budget. The noise has a standard deviation of 0.01 and is drawn from the constants and the seed, so that the
same trial gives the same number; it never takes the loss below the optimum.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping

BEST_RATIO = {"val": 0.002, "test": 0.0022}
CLIFF = 0.012
"""Learning rate over batch size at which training diverges, without normalisation."""
NOISE = 0.01
SCHEDULES = {"constant": 0.15, "linear": 0.05, "step": 0.08, "exponential": 0.06, "cosine": 0.0}


def simulate(constants: Mapping[str, object], split: str, seed: int) -> dict[str, float]:
    """Loss and memory of the constants on a split.

    Raises:
        ValueError: a constant is missing or no such number, or the training diverges.
    """
    rate, batch, width, depth = (_positive(constants, n) for n in ("LEARNING_RATE", "BATCH_SIZE", "WIDTH", "DEPTH"))
    normalise, schedule = constants.get("NORMALISE"), constants.get("SCHEDULE")
    if not isinstance(normalise, bool):
        raise ValueError(f"NORMALISE must be True or False, found {normalise!r}")
    if schedule not in SCHEDULES:
        raise ValueError(f"SCHEDULE must be one of {', '.join(SCHEDULES)}, found {schedule!r}")
    ratio = rate / batch
    if ratio > CLIFF * (4 if normalise else 1):
        raise ValueError(f"loss is nan at step 12: training diverged (LEARNING_RATE / BATCH_SIZE = {ratio:.4g})")
    tuning = 0.25 * math.log(ratio / BEST_RATIO[split]) ** 2
    capacity = 0.15 * max(0.0, math.log(512 / width)) + 0.2 * max(0.0, math.log(8 / depth))
    loss = 0.1 + tuning + capacity + SCHEDULES[str(schedule)] + (0.0 if normalise else 0.1)
    text = f"{sorted(constants.items())} {split} {seed}"
    noise = random.Random(hashlib.sha256(text.encode()).digest()).gauss(0.0, NOISE)
    memory = 0.5 + width * depth * batch / 60_000
    return {"loss": max(0.1, loss + noise), "memory_gb": memory}


def _positive(constants: Mapping[str, object], name: str) -> float:
    value = constants.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ValueError(f"{name} must be a positive number, found {value!r}")
    return float(value)
