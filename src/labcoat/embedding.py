"""A vector for a piece of code, offline: hashed counts of tokens and of neighbouring pairs of tokens."""

from __future__ import annotations

import math
import re
from hashlib import blake2b
from itertools import pairwise

from labcoat.tree import Code

DIMENSIONS = 256
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[^\w\s]")


def embed(code: Code, paths: list[str]) -> list[float]:
    """Unit vector (256,) of the named files, by feature hashing with signs (Weinberger et al. 2009).

    Log-damped counts of tokens and token pairs; equal text gives equal vectors on every machine. A code without
    tokens gives the zero vector.
    """
    counts: dict[str, int] = {}
    for path in paths:
        tokens = _TOKEN.findall(code.text(path))
        for feature in [*tokens, *(f"{a} {b}" for a, b in pairwise(tokens))]:
            counts[feature] = counts.get(feature, 0) + 1
    vector = [0.0] * DIMENSIONS
    for feature, count in counts.items():
        word = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
        vector[word % DIMENSIONS] += math.copysign(1 + math.log(count), 1 if word >> 63 else -1)
    length = math.sqrt(math.fsum(x * x for x in vector))
    return [x / length for x in vector] if length else vector
