"""Blobs: one append-only file of contents, addressed by hash, offset and length."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from labcoat.errors import CannotRunHere, Diverged
from labcoat.tree import sha256

Place = tuple[int, int]  # offset, length


class Blobs:
    """Contents by SHA-256. A content is written before the event that names it, and written once.

    The places of new contents are handed to the next event (:meth:`take_new`), so that the index can be
    rebuilt from the events alone; what a crash leaves behind the last named content is never read.
    """

    def __init__(self, path: Path, index: dict[str, Place]) -> None:
        """Open for reading; the file is opened for appending at the first :meth:`put` of something new."""
        self.path = path
        self._index = index
        self._new: dict[str, Place] = {}
        self._append: int | None = None
        self._read: int | None = None

    def put(self, content: bytes | str) -> str:
        """Store ``content`` unless it is there; return its hash."""
        # A model's reply may hold lone surrogates, which are no text: they become question marks.
        data = content.encode(errors="replace") if isinstance(content, str) else content
        sha = sha256(data)
        if sha not in self._index:
            if self._append is None:
                self._append = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            write_all(self._append, data, self.path)
            end = os.lseek(self._append, 0, os.SEEK_CUR)
            self._index[sha] = self._new[sha] = (end - len(data), len(data))
        return sha

    def __contains__(self, sha: object) -> bool:
        return sha in self._index

    def get(self, sha: str) -> bytes:
        """The content of that hash, checked against it.

        Raises:
            Diverged: the run folder does not hold it, or holds something else in its place.
        """
        if sha not in self._index:
            raise Diverged(f"{self.path}: no content {sha[:12]}; the run folder is incomplete, copy it again")
        if self._read is None:
            self._read = os.open(self.path, os.O_RDONLY)
        offset, length = self._index[sha]
        data = os.pread(self._read, length, offset)
        if sha256(data) != sha:
            raise Diverged(f"{self.path}: content at offset {offset} is not {sha[:12]}; the file was changed")
        return data

    def text(self, sha: str) -> str:
        """The content as text."""
        return self.get(sha).decode("utf-8", errors="replace")

    def verify(self) -> int:
        """Read every content and check it against its hash; return how many there are."""
        for sha in self._index:
            self.get(sha)
        return len(self._index)

    def take_new(self) -> dict[str, Place]:
        """Places of the contents stored since the last call."""
        new, self._new = self._new, {}
        return new

    def sync(self) -> None:
        """Force what was written to the disk."""
        if self._append is not None:
            os.fsync(self._append)

    def close(self) -> None:
        """Close the files."""
        for descriptor in (self._append, self._read):
            if descriptor is not None:
                os.close(descriptor)
        self._append = self._read = None


def write_all(descriptor: int, data: bytes, path: Path) -> None:
    """Append all of ``data`` or nothing.

    Raises:
        CannotRunHere: the disk is full or the file cannot be written; a half-written end is cut off again.
    """
    begin = os.lseek(descriptor, 0, os.SEEK_END)
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        with contextlib.suppress(OSError):  # what is no plain file cannot be cut; a torn end is tolerated anyway
            os.ftruncate(descriptor, begin)
        raise CannotRunHere(
            f"{path}: cannot write: {error.strerror}; free some space (or fix the permissions) "
            "and give the same command again, it resumes here"
        ) from None
