"""A control group per process tree: memory and processes counted by the kernel, tmpfs and page cache included.

Used where it can be: version 2 where a group that we own has the controllers, version 1 where its hierarchies are
writable (as root). Elsewhere the watcher and rlimits hold a tree back, and ``facts`` says so.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_count = itertools.count()


@dataclass(frozen=True)
class Hierarchy:
    """Where groups can be made: one folder for both controllers (version 2), or one for each (version 1)."""

    version: int
    memory: Path
    pids: Path


def find(root: Path = ROOT, membership: str | None = None) -> Hierarchy | None:
    """The hierarchy in which this process can make groups with both controllers, if there is one.

    Args:
        root: where the cgroup file systems are mounted.
        membership: content of ``/proc/self/cgroup``.
    """
    lines = (membership if membership is not None else Path("/proc/self/cgroup").read_text()).splitlines()
    paths: dict[str, str] = {}
    for _, names, path in (line.split(":", 2) for line in lines):
        paths |= dict.fromkeys(names.split(","), path.lstrip("/"))
    with contextlib.suppress(OSError):
        if (root / "cgroup.controllers").exists():
            return _unified(root, paths.get("", ""))
        if {"memory", "pids"} <= set(paths):
            found = Hierarchy(1, root / "memory" / paths["memory"], root / "pids" / paths["pids"])
            if _can_make(found.memory) and _can_make(found.pids):
                return found
    return None


def _unified(root: Path, path: str) -> Hierarchy | None:
    """Version 2: the nearest group, ours or above it, that hands both controllers to its children."""
    place = root / path
    for folder in [place, *place.parents]:
        if {"memory", "pids"} <= set((folder / "cgroup.subtree_control").read_text().split()) and _can_make(folder):
            return Hierarchy(2, folder, folder)
        if folder == root:
            return None
    return None


def _can_make(folder: Path) -> bool:
    """Whether a group can really be made below ``folder``."""
    trial = folder / f"labcoat-{os.getpid()}-probe"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError:
        return False
    return True


class Group:
    """One group, for one process tree."""

    def __init__(self, hierarchy: Hierarchy, memory: int, processes: int) -> None:
        """Make it, with its limits in bytes and in processes and threads.

        Raises:
            OSError: it cannot be made after all.
        """
        self._hierarchy = hierarchy
        name = f"labcoat-{os.getpid()}-{next(_count)}"
        self._memory, self._pids = hierarchy.memory / name, hierarchy.pids / name
        for folder in self._folders:
            folder.mkdir()
        if hierarchy.version == 2:
            (self._memory / "memory.max").write_text(str(memory))
            with contextlib.suppress(OSError):  # no swap accounting here
                (self._memory / "memory.swap.max").write_text("0")
        else:
            (self._memory / "memory.limit_in_bytes").write_text(str(memory))
        (self._pids / "pids.max").write_text(str(processes))

    @property
    def _folders(self) -> list[Path]:
        return list(dict.fromkeys([self._memory, self._pids]))

    def add(self, pid: int) -> None:
        """Put a process in; what it starts later is in too."""
        for folder in self._folders:
            (folder / "cgroup.procs").write_text(str(pid))

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel ended a process of this group for its memory."""
        name = "memory.events" if self._hierarchy.version == 2 else "memory.oom_control"
        with contextlib.suppress(OSError):
            fields = dict(line.split() for line in (self._memory / name).read_text().splitlines())
            return int(fields.get("oom_kill", 0)) > 0
        return False

    def close(self) -> None:
        """Remove the group, which must be empty; a few tries, as the kernel lets go a little later."""
        for folder in self._folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.002)
