"""The offline embedder: hashed counts of tokens and of neighbouring pairs of tokens."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

DIMENSIONS = 256
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[^\w\s]")


class HashedTokens:
    """Feature hashing with signs (Weinberger et al. 2009) of log-damped counts."""

    name = "tokens"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Unit vectors (n, 256), equal on every machine. A text without tokens gives the zero vector."""
        return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    tokens = _TOKEN.findall(text)
    vector = [0.0] * DIMENSIONS
    for feature, count in Counter([*tokens, *(f"{a} {b}" for a, b in pairwise(tokens))]).items():
        place, sign = _hashed(feature)
        vector[place] += sign * (1 + math.log(count))
    length = math.sqrt(math.fsum(x * x for x in vector))
    return [x / length for x in vector] if length else vector


@lru_cache(maxsize=1 << 12)  # numbers are tokens too, and new ones never end
def _hashed(feature: str) -> tuple[int, int]:
    word = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
    return word % DIMENSIONS, 1 if word >> 63 else -1
