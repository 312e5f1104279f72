"""A control group per process tree: memory and processes counted by the kernel, tmpfs and page cache included.

Used where it can be: version 2 where a group that we own has the controllers, version 1 where its hierarchies are
writable (as root). Elsewhere the watcher and rlimits hold a tree back, and ``facts`` says so.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import time
from collections.abc import Callable
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


def find(
    root: Path = ROOT, membership: str | None = None, works: Callable[[Path], bool] | None = None
) -> Hierarchy | None:
    """The hierarchy in which this process can make groups with both controllers, if there is one.

    Args:
        root: where the cgroup file systems are mounted.
        membership: content of ``/proc/self/cgroup``.
        works: whether groups below a folder can be used; by default it is tried with a process of ours.
    """
    works = works or usable
    try:
        lines = (membership if membership is not None else Path("/proc/self/cgroup").read_text()).splitlines()
    except OSError:
        return None
    paths: dict[str, str] = {}
    for _, names, path in (line.split(":", 2) for line in lines):
        paths |= dict.fromkeys(names.split(","), path.lstrip("/"))
    with contextlib.suppress(OSError):
        if (root / "cgroup.controllers").exists():
            return _unified(root, paths.get("", ""), works)
        if {"memory", "pids"} <= set(paths):
            found = Hierarchy(1, root / "memory" / paths["memory"], root / "pids" / paths["pids"])
            if works(found.memory) and works(found.pids):
                return found
    return None


def _unified(root: Path, path: str, works: Callable[[Path], bool]) -> Hierarchy | None:
    """Version 2: the nearest group, ours or above it, that hands both controllers to its children."""
    place = root / path
    for folder in [place, *place.parents]:
        if {"memory", "pids"} <= set((folder / "cgroup.subtree_control").read_text().split()) and works(folder):
            return Hierarchy(2, folder, folder)
        if folder == root:
            return None
    return None


def usable(folder: Path) -> bool:
    """Whether a group can be made below ``folder`` and a process of ours moved into it: done once, for real."""
    trial = folder / f"labcoat-{os.getpid()}-probe"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
            (trial / "cgroup.procs").write_text(str(child.pid))
        return True
    except OSError:
        return False
    finally:
        discard(trial)


def discard(group: Path) -> None:
    """Remove an empty group; a few tries, as the kernel lets go of its last process a little later."""
    for _ in range(50):
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.002)


def sweep(hierarchy: Hierarchy) -> None:
    """Remove the groups that killed processes of ours have left; one that is not empty stays."""
    for folder in {hierarchy.memory, hierarchy.pids}:
        for group in folder.glob("labcoat-*-*"):
            owner = group.name.split("-")[1]
            if owner.isdecimal() and not Path("/proc", owner).exists():
                with contextlib.suppress(OSError):
                    group.rmdir()


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
        """Remove the group, which must be empty."""
        for folder in self._folders:
            discard(folder)
