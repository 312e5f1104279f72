"""What was folded from journals before, so that a further run costs only itself. Losing it costs time only.

An entry holds for the exact files that it was made from; whatever happens to them (a further step, an edit, a copy in
their place), it is made anew. Several processes may read and write at once.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labcoat import __version__
from labcoat.errors import CannotRunHere
from labcoat.record import RECORD

FORMAT = 3
"""Raised with every change of what an entry holds or how it is computed."""
SOUND = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
}  # fmt: skip
"""Failures of the disk, or of others that use the file; any other one says that the file is broken."""
MADE_FROM = (RECORD, "events.jsonl", "blobs")


def stamp(folder: Path) -> str:
    """What changes with a run's files: which they are, their sizes, and when they were last touched in any way."""
    found = [f"{FORMAT} {__version__}"]
    for name in MADE_FROM:
        try:
            state = os.stat(folder / name)
        except OSError:
            continue  # a run that recorded nothing yet; what cannot be read, its reader says
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
        self._path = path
        self.lost = ""
        """Why nothing more is kept; empty while all is well."""
        try:
            self._table = self._open(path)
        except sqlite3.OperationalError as error:
            raise CannotRunHere(f"{path}: {error}; set LABCOAT_HOME to a folder that can be written to") from None
        except sqlite3.DatabaseError:
            self._remove()
            self._table = self._open(path)

    @staticmethod
    def _open(path: Path | None) -> sqlite3.Connection:
        table = sqlite3.connect(path or ":memory:", timeout=60)
        table.execute("PRAGMA journal_mode = WAL")
        table.execute("PRAGMA synchronous = OFF")  # after a power cut it may have to be made again
        table.execute(
            "CREATE TABLE IF NOT EXISTS entries"
            " (folder BLOB, kind TEXT, stamp TEXT, entry TEXT, PRIMARY KEY (folder, kind)) WITHOUT ROWID"
        )
        return table

    def get(self, folder: Path, kind: str, stamped: str) -> Any | None:
        """The entry, if it was made from what is there now."""
        query = "SELECT entry FROM entries WHERE folder = ? AND kind = ? AND stamp = ?"
        entry = None
        with self._losing():
            found = self._table.execute(query, (_key(folder), kind, stamped)).fetchone()
            entry = json.loads(found[0]) if found else None
        return entry

    def put(self, folder: Path, kind: str, stamped: str, entry: Any) -> None:
        """Keep an entry, made from what had the stamp before it was read."""
        self._changed = True
        with self._losing(), self._table:
            self._table.execute(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)",
                (_key(folder), kind, stamped, json.dumps(entry)),
            )

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Go on without the table where it fails: a full disk, or a broken file, which is made anew the next time."""
        try:
            yield
        except (sqlite3.DatabaseError, ValueError) as error:
            self.lost = f"{self._path}: {str(error)[:80]}"
            self._table.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in SOUND:
                self._remove()
            self._table = self._open(None)

    def _remove(self) -> None:
        """Remove the file with what belongs to it; who has it open goes on with what is there no more."""
        for suffix in ("", "-wal", "-shm") if self._path else ():
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    def close(self) -> None:
        """Close the table; if it was added to, without the entries of folders that are gone."""
        if self._changed:
            with self._losing(), self._table:
                folders = self._table.execute("SELECT DISTINCT folder FROM entries").fetchall()
                gone = [row for row in folders if not os.path.isdir(row[0])]
                self._table.executemany("DELETE FROM entries WHERE folder = ?", gone)
        self._table.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _key(folder: Path) -> bytes:
    """Its name as the system has it, which need not be text."""
    return os.fsencode(folder.resolve())
