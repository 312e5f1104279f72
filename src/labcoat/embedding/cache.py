"""Vectors of windows by content, kept across runs; several processes may read and write at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labcoat.errors import CannotRunHere
from labcoat.tree import sha256

Window = tuple[int, ...]
Rows = NDArray[np.float32]
MOST_AT_ONCE = 500  # variables of one query


class Cache:
    """A table of vectors. Losing it costs time only."""

    def __init__(self, path: Path) -> None:
        """Open the table at ``path``, made if missing.

        Raises:
            CannotRunHere: it cannot be opened.
        """
        self.path = path
        with self._named():
            self._table = sqlite3.connect(path, timeout=60)
            self._table.execute("PRAGMA journal_mode = WAL")
            self._table.execute("PRAGMA synchronous = NORMAL")
            self._table.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Say which file fails: it is no table, it is broken, its disk is full."""
        try:
            yield
        except sqlite3.Error as error:
            raise CannotRunHere(
                f"{self.path}: {error}; free some space, or remove the file: it holds nothing that cannot be made again"
            ) from None

    def get(self, space: str, windows: Collection[Window]) -> dict[Window, Rows]:
        """The vectors that are known in ``space`` (an encoder and what it gives).

        Raises:
            CannotRunHere: the table cannot be read.
        """
        by_key = {_key(space, window): window for window in windows}
        keys = list(by_key)
        found: dict[Window, Rows] = {}
        for start in range(0, len(keys), MOST_AT_ONCE):
            part = keys[start : start + MOST_AT_ONCE]
            marks = ",".join("?" * len(part))
            with self._named():
                rows = self._table.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part).fetchall()
            found |= {by_key[key]: np.frombuffer(vector, np.float32) for key, vector in rows}
        return found

    def put(self, space: str, vectors: Mapping[Window, Rows]) -> None:
        """Keep vectors; at once on the disk, so that an interrupted embedding goes on where it stopped.

        Raises:
            CannotRunHere: the table cannot be written.
        """
        rows = [(_key(space, window), np.asarray(vector, np.float32).tobytes()) for window, vector in vectors.items()]
        with self._named(), self._table:
            self._table.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)


def _key(space: str, window: Window) -> str:
    return sha256(f"{space}\n".encode() + np.asarray(window, np.int64).tobytes())
