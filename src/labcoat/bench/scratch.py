"""Scratch folders of one bench: removed at the end, and swept by the next bench if we were killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labcoat.bench import home


class Scratch:
    """A folder below ``home/work`` that is ours while we hold its lock."""

    def __init__(self) -> None:
        """Make the folder, and remove those whose owners are gone."""
        work = home.folder("work")
        with home.locked(work / ".lock", lambda text: None, "scratch"), home.named(work):
            for stale in work.glob("*.owner"):
                sweep(stale)
            self.folder = Path(tempfile.mkdtemp(prefix="bench-", dir=work))
            self.folder.chmod(0o755)
            self._owner = self.folder.with_suffix(".owner")
            self._lock = os.open(self._owner, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    @contextmanager
    def part(self, name: str) -> Iterator[Path]:
        """A fresh folder inside, removed at exit whatever lies in it."""
        with home.named(self.folder):
            path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
            path.chmod(0o755)
        try:
            yield path
        finally:
            remove(path)

    def close(self) -> None:
        """Remove everything."""
        remove(self.folder)
        self._owner.unlink(missing_ok=True)
        os.close(self._lock)


def sweep(owner: Path) -> None:
    """Remove the scratch folder of ``owner`` (its lock file) unless a living process holds it."""
    try:
        handle = os.open(owner, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:  # it has just gone by itself
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(owner.with_suffix(""))
        owner.unlink(missing_ok=True)
    except BlockingIOError:
        pass
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a tree that a hostile program may have made: closed folders, nesting deeper than Python's stack."""
    if not os.path.lexists(path):
        return
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        for argv in (["chmod", "-R", "u+rwX"], ["rm", "-rf", "--one-file-system"]):
            subprocess.run([*argv, "--", str(path)], check=False, stderr=subprocess.DEVNULL)  # rm walks any depth


def own(path: Path, user: int | None, mode: int) -> Path:
    """Give the folder ``path``, made if missing, to ``user`` (if one is given) with ``mode``."""
    path.mkdir(exist_ok=True)
    if user is not None:
        os.chown(path, user, user)
    path.chmod(mode)
    return path


def open_tree(path: Path) -> None:
    """Let everybody read the tree at ``path``, which we wrote, whatever the umask was."""
    set_modes(path, 0o755, 0o644)


def set_modes(path: Path, folders: int, files: int, user: int | None = None) -> None:
    """Set modes, and the owner if one is given, of a tree that we wrote."""
    for folder, _, names in os.walk(path, topdown=False):
        for name in names:
            file = os.path.join(folder, name)
            if not os.path.islink(file):
                runs = os.stat(file).st_mode & 0o100 and files & 0o044
                os.chmod(file, files | (0o111 if runs else 0))
                if user is not None:
                    os.chown(file, user, user)
        os.chmod(folder, folders)
        if user is not None:
            os.chown(folder, user, user)
