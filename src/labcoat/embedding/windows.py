"""Long texts through a model with a short window: cut into windows, embed those that are new, pool.

Source: FML-bench's released recipe: windows of 510 tokens between the model's first and last token, nothing truncated,
the first-token vectors summed. A sum grows with the length of the code; ``mean`` averages over tokens and does not. It
is ours, so its windows lie where an edit does not move them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import numpy as np

from labcoat.embedding.cache import Cache, Rows, Window
from labcoat.embedding.pieces import pieces

WINDOW = 510
BATCH = 16
Pool = Literal["sum", "mean"]


class Encoder(Protocol):
    """A model that reads windows of tokens."""

    @property
    def name(self) -> str:
        """Of the weights: vectors of one encoder are never taken for those of another."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    def tokens(self, text: str) -> list[int]:
        """The text as tokens, without the first and the last one that mark a window."""
        ...

    def encode(self, windows: Sequence[Sequence[int]], pool: Pool) -> Rows:
        """A vector for each window, (n, dimensions): of its first token (``sum``), or the mean of all its tokens."""
        ...


class Windowed:
    """An embedder made of an encoder: every distinct window is encoded once, also across runs."""

    def __init__(self, name: str, encoder: Encoder, pool: Pool, cache: Cache) -> None:
        """``pool`` says how vectors of windows become one of the text."""
        self.name, self.encoder, self.pool, self.cache = name, encoder, pool, cache

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors (n, dimensions); a text without tokens gives the zero vector."""
        cut = [self.cut(text) for text in texts]
        known = self._encoded({window for own in cut for window in own})
        return [self._pooled(own, known) for own in cut]

    def cut(self, text: str) -> list[Window]:
        """The windows of a text."""
        parts = [text] if self.pool == "sum" else pieces(text)
        return [window for part in parts for window in windows(self.encoder.tokens(part))]

    def _encoded(self, wanted: set[Window]) -> dict[Window, Rows]:
        space = f"{self.encoder.name} {self.pool}"
        found = self.cache.get(space, wanted)
        # By length, so that a batch is padded little.
        for batch in batches(sorted(wanted - found.keys(), key=lambda window: (len(window), window)), BATCH):
            fresh = dict(zip(batch, self.encoder.encode(batch, self.pool), strict=True))
            self.cache.put(space, fresh)
            found |= fresh
        return found

    def _pooled(self, own: Sequence[Window], known: dict[Window, Rows]) -> list[float]:
        total = np.zeros(self.encoder.dimensions, np.float32)
        for window in own:
            total += known[window] * (len(window) if self.pool == "mean" else 1)
        length = sum(map(len, own))
        return [float(x) for x in (total / length if self.pool == "mean" and length else total)]


def windows(tokens: Sequence[int]) -> list[Window]:
    """The tokens in consecutive windows."""
    return [tuple(tokens[start : start + WINDOW]) for start in range(0, len(tokens), WINDOW)]


def batches(items: Sequence[Window], size: int) -> Iterable[Sequence[Window]]:
    """The items, ``size`` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
