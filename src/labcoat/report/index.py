"""What was folded from journals before, so that a further run costs only itself. Losing it costs time only.

An entry holds for the exact files that it was made from; whatever happens to them (a further step, an edit, a copy in
their place), it is made anew. Several processes may read and write at once.
"""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from labcoat import __version__
from labcoat.errors import CannotRunHere
from labcoat.record import RECORD

FORMAT = 3
"""Raised with every change of what an entry holds or how it is computed."""
MADE_FROM = (RECORD, "events.jsonl", "blobs")


def stamp(folder: Path) -> str:
    """What changes with a run's files: which they are, their sizes, and when they were last touched in any way."""
    found = [f"{FORMAT} {__version__}"]
    for name in MADE_FROM:
        try:
            state = os.stat(folder / name)
        except FileNotFoundError:
            continue  # a run that recorded nothing yet
        found.append(f"{name} {state.st_dev} {state.st_ino} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}")
    return "; ".join(found)


class Index:
    """A table of entries by run folder and kind."""

    def __init__(self, path: Path | None) -> None:
        """Open the table at ``path``, made if missing, and made anew if it cannot be read; None: nothing is kept.

        Raises:
            CannotRunHere: it cannot be opened.
        """
        self._changed = False
        try:
            self._table = self._open(path)
        except sqlite3.OperationalError as error:
            raise CannotRunHere(f"{path}: {error}; set LABCOAT_HOME to a folder that can be written to") from None
        except sqlite3.DatabaseError:
            assert path is not None, "nothing is read"
            path.unlink(missing_ok=True)
            self._table = self._open(path)

    @staticmethod
    def _open(path: Path | None) -> sqlite3.Connection:
        table = sqlite3.connect(path or ":memory:", timeout=60)
        table.execute("PRAGMA journal_mode = WAL")
        table.execute("PRAGMA synchronous = OFF")  # after a power cut it may have to be made again
        table.execute(
            "CREATE TABLE IF NOT EXISTS entries"
            " (folder TEXT, kind TEXT, stamp TEXT, entry TEXT, PRIMARY KEY (folder, kind)) WITHOUT ROWID"
        )
        return table

    def get(self, folder: Path, kind: str, stamped: str) -> Any | None:
        """The entry, if it was made from what is there now."""
        query = "SELECT entry FROM entries WHERE folder = ? AND kind = ? AND stamp = ?"
        found = self._table.execute(query, (str(folder.resolve()), kind, stamped)).fetchone()
        return json.loads(found[0]) if found else None

    def put(self, folder: Path, kind: str, stamped: str, entry: Any) -> None:
        """Keep an entry, made from what had the stamp before it was read."""
        self._changed = True
        with self._table:
            self._table.execute(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)",
                (str(folder.resolve()), kind, stamped, json.dumps(entry)),
            )

    def close(self) -> None:
        """Close the table; if it was added to, without the entries of folders that are gone."""
        if self._changed:
            folders = self._table.execute("SELECT DISTINCT folder FROM entries").fetchall()
            gone = [row for row in folders if not os.path.isdir(row[0])]
            with self._table:
                self._table.executemany("DELETE FROM entries WHERE folder = ?", gone)
        self._table.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
