"""Vectors for code: one small protocol, an offline embedder, and the paper's GraphCodeBERT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from labcoat.errors import InputError
from labcoat.tree import Code

__all__ = ["KNOWN", "Embedder", "in_portions", "load", "text_of"]

Vector = list[float]
PORTION = 8
"""Texts that are embedded at once: enough to fill a batch of windows, few enough to see that it goes on."""

KNOWN = {
    "tokens": "hashed counts of tokens and token pairs; offline, at once",
    "graphcodebert": "microsoft/graphcodebert-base, first-token vectors of 510-token windows, summed as in FML-bench",
    "graphcodebert:mean": "the same model on pieces that survive edits, token vectors averaged: length does not count",
}


class Embedder(Protocol):
    """Gives a vector for a text. Equal texts get equal vectors."""

    name: str
    """Recorded with every vector."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text."""
        ...


def load(name: str, cache: Callable[[], Path], device: str | None = None) -> Embedder:
    """The embedder of that name.

    Args:
        name: one of KNOWN.
        cache: gives the folder in which vectors of windows are kept; asked for only where that pays.
        device: where a model computes, as torch names it; None for a GPU if there is one.

    Raises:
        InputError: unknown name.
    """
    if name == "tokens":
        from labcoat.embedding.tokens import HashedTokens

        return HashedTokens()
    if name in KNOWN:
        from labcoat.embedding.cache import Cache
        from labcoat.embedding.graphcodebert import GraphCodeBERT
        from labcoat.embedding.windows import Pool, Windowed

        pool: Pool = "mean" if name.endswith(":mean") else "sum"
        return Windowed(name, GraphCodeBERT(device=device), pool, Cache(cache() / "windows.sqlite"))
    known = "".join(f"\n  {each:20} {what}" for each, what in KNOWN.items())
    raise InputError(f"unknown embedder {name!r}; known:{known}")


def in_portions(texts: Sequence[str], embedder: Embedder) -> Iterator[dict[str, Vector]]:
    """Vectors by text, each distinct text embedded once, a portion at a time."""
    distinct = list(dict.fromkeys(texts))
    for start in range(0, len(distinct), PORTION):
        portion = distinct[start : start + PORTION]
        yield dict(zip(portion, embedder.embed(portion), strict=True))


def text_of(code: Code, paths: Sequence[str]) -> str:
    """What of a code is embedded: the named files in the order of their paths, joined by one newline."""
    return "\n".join(code.text(path) for path in sorted(paths))
