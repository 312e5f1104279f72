"""The artefact: what ``fit`` left, copied to a place where nobody can change it, and hashed."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from labcoat.bench.outputs import BadOutput, Tampered, kind, open_folder
from labcoat.manifest.phase import DATA_FILES
from labcoat.tree import sha256

MOST_FILES = 10_000
MOST_DEPTH = 20


def keep(source: Path, target: Path, cap: int | None, data_only: bool = False) -> dict[str, str]:
    """Copy the files below ``source`` to the new folder ``target``, readable for all.

    Links are never followed. No process may be alive that can still write to ``source``.

    Args:
        source: what the candidate could write.
        target: must not exist.
        cap: bytes in all, those of names among them; None for an artefact that was taken before, unit by unit.
        data_only: whether it may hold files of data alone, as a program of ours will read it.

    Returns:
        The SHA-256 of each file by relative path.

    Raises:
        BadOutput: too many files, too deep, more than ``cap`` bytes, or something that is not data.
        Tampered: an entry is a link or a special file.
    """
    handle = open_folder(source)
    try:
        return _Copy(cap, data_only).folder(handle, target, "", 0)
    finally:
        os.close(handle)


def hash_of(files: dict[str, str]) -> str:
    """One hash for a tree, as of a ``Code``."""
    return sha256("\n".join(f"{sha} {path}" for path, sha in sorted(files.items())).encode())


class _Copy:
    def __init__(self, cap: int | None, data_only: bool) -> None:
        self.cap, self.bytes, self.count, self.data_only = cap, 0, 0, data_only

    def folder(self, handle: int, target: Path, prefix: str, depth: int) -> dict[str, str]:
        if self.cap is not None and depth > MOST_DEPTH:
            raise BadOutput(f"/artefact holds folders nested deeper than {MOST_DEPTH}")
        target.mkdir()
        target.chmod(0o755)
        found: dict[str, str] = {}
        with os.scandir(handle) as entries:
            for entry in entries:
                self.count += 1
                if self.cap is not None and self.count > MOST_FILES:
                    raise BadOutput(f"/artefact holds more than {MOST_FILES} entries")
                found |= self.entry(handle, entry.name, target, prefix, depth)
        return found

    def entry(self, folder: int, name: str, target: Path, prefix: str, depth: int) -> dict[str, str]:
        path = prefix + name
        shown = ascii(f"/artefact/{path}")[:200]
        if not name.isprintable():  # also bytes that are not UTF-8: they would not survive the journal
            raise BadOutput(f"{shown} is not a printable name")
        self.take(len(name.encode()))  # or names of empty files would carry what the cap keeps out
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(state.st_mode):
            if state.st_mode & stat.S_IRWXU != stat.S_IRWXU:  # an ordinary user's worker may have closed it to us
                os.chmod(name, 0o700, dir_fd=folder)
            handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                return self.folder(handle, target / name, f"{path}/", depth + 1)
            finally:
                os.close(handle)
        if not stat.S_ISREG(state.st_mode):
            raise Tampered(f"{shown} is a {kind(state.st_mode)}, not a file")
        if state.st_nlink != 1:
            raise Tampered(f"{shown} has {state.st_nlink} hard links")
        if self.data_only and not name.endswith(DATA_FILES):
            raise BadOutput(f"{shown} is not one of {', '.join(DATA_FILES)}: this task reads the artefact as data")
        self.take(state.st_size)
        if not state.st_mode & stat.S_IRUSR:
            os.chmod(name, 0o600, dir_fd=folder)
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        digest = hashlib.sha256()
        with open(handle, "rb") as stream, open(target / name, "xb") as copy:
            while block := stream.read(1 << 20):
                digest.update(block)
                copy.write(block)
        (target / name).chmod(0o644)
        return {path: digest.hexdigest()}

    def take(self, size: int) -> None:
        self.bytes += size
        if self.cap is not None and self.bytes > self.cap:
            raise BadOutput(f"/artefact holds more than {self.cap} bytes")
