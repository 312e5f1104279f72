"""What to run, where it sees what, within which limits; and what a sandbox must be able to do with it.

Paths inside are fixed (``/ws``, ``/train`` ...): a candidate's errors read the same on every machine and show nothing
of this one.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from labcoat.bench import home, processors
from labcoat.bench.cgroup import Group, Hierarchy, find, sweep
from labcoat.bench.leases import Lease
from labcoat.bench.process import Child, Finished
from labcoat.bench.streams import HEAD, TAIL, HeadTail, Sink

Level = Literal["bwrap", "none"]
Role = Literal["worker", "scorer"]

USERS: dict[Role, int] = {"worker": 64201, "scorer": 64202}  # below 65536: exists in every user namespace
PRLIMIT = "/usr/bin/prlimit"
OURS = 4  # processes of the sandbox itself, not the candidate's
PINNED = "affinity to leased processors, which a program cannot leave"
FREE = "affinity to leased processors, which a program can leave"
THREADS = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
]


@dataclass(frozen=True)
class Bind:
    """A folder or file of ours and where the command sees it."""

    host: Path
    inside: str
    writable: bool = False


@dataclass(frozen=True)
class Limits:
    """What one command may use."""

    timeout: float
    memory_mb: int
    processes: int = 128
    disk_mb: int = 1024
    cpus: int = 1
    gpus: int = 0
    gpu_memory_mb: int | None = None


def variables(cpus: int, seed: int = 0) -> dict[str, str]:
    """The environment of every sandboxed command; nothing is inherited but what correct arithmetic needs.

    Libraries start at most as many threads as there are processors to run them.
    """
    fixed = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": str(seed % 2**32),
    }
    kernel = {"OPENBLAS_CORETYPE": os.environ["OPENBLAS_CORETYPE"]} if "OPENBLAS_CORETYPE" in os.environ else {}
    return fixed | dict.fromkeys(THREADS, str(min(cpus, len(processors.usable())))) | kernel


@dataclass(frozen=True)
class Command:
    """What to run, on what, within what."""

    argv: Sequence[str]
    binds: Sequence[Bind]
    """What it works on."""
    env: Mapping[str, str]
    limits: Limits
    program: Sequence[Bind] = ()
    """What it needs to start: an environment, shared with other commands."""
    cwd: str = "/"
    role: Role = "worker"


class Sandbox(ABC):
    """One way to run a command. Use it from the main thread."""

    level: Level

    @abstractmethod
    def path(self, bind: Bind) -> str:
        """Where the command sees ``bind``."""

    @abstractmethod
    def enforced(self) -> dict[str, str]:
        """What holds a command back, by protection: the words of ``run.json`` and of ``labcoat doctor``."""

    @abstractmethod
    def start(self, command: Command, *, stdout: Sink, stderr: Sink, stdin: bool = False) -> Child:
        """Start ``command``; leaving the child's ``with`` block ends it and all that it started."""

    @abstractmethod
    def run(self, command: Command) -> Finished:
        """Run ``command`` to its end or to a limit.

        Raises:
            CannotRunHere: the sandbox itself could not be set up.
        """


def completed(child: Child, out: HeadTail, err: HeadTail, timeout: float) -> Finished:
    """Wait for ``child``, whose streams go to ``out`` and ``err``, for ``timeout`` seconds at most."""
    with child:
        child.finish(child.started + timeout)
    return child.finished(out, err)


def group_for(limits: Limits) -> Group | None:
    """A control group with these limits, where one can be made."""
    hierarchy = available()
    if hierarchy is None:
        return None
    try:
        return Group(hierarchy, limits.memory_mb << 20, limits.processes + OURS)
    except OSError:  # it worked a moment ago; the watcher and rlimits are still there
        return None


@cache
def available() -> Hierarchy | None:
    """Where control groups can be made on this machine."""
    hierarchy = find()
    if hierarchy:
        sweep(hierarchy)
    return hierarchy


def counted(nproc: bool) -> dict[str, str]:
    """How amounts are held back here; ``nproc`` as for :func:`limited`."""
    hierarchy = available()
    kernel = [f"cgroup v{hierarchy.version}"] if hierarchy else []
    return {
        "memory": ", ".join([*kernel, "watcher 10 Hz"]),
        "processes": ", ".join([*kernel, *(["RLIMIT_NPROC"] if nproc else [])]) or "none",
        "disk": "RLIMIT_FSIZE per file, watcher 10 Hz for the sum",
        "time": "wall clock, kept by labcoat",
        "logs": f"the first {HEAD >> 10} and the last {TAIL >> 10} KiB of each stream are kept",
    }


def child_of(
    command: Command, argv: Sequence[str], *, env: Mapping[str, str], stdin: bool, stdout: Sink, stderr: Sink,
    cwd: str | Path = "/", pass_fds: Sequence[int] = (), lease: Lease,
) -> Child:  # fmt: skip
    """Start ``argv`` within the limits of ``command``, as the user of its role; ``lease`` is given back at its end."""
    with ExitStack() as held:
        held.enter_context(lease)
        pinned = processors.shared()
        if command.role == "worker":
            alone, pinned = processors.lease(command.limits.cpus)
            held.enter_context(alone)
        if (group := group_for(command.limits)) is not None:
            held.callback(group.close)
        child = Child(
            argv,
            env=env,
            cwd=cwd,
            memory_mb=command.limits.memory_mb,
            group=group,
            watched=[bind.host for bind in command.binds if bind.writable],
            disk_mb=command.limits.disk_mb,
            user=user_of(command.role),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            pinned=pinned,
        )
        child.held.enter_context(held.pop_all())
    return child


def user_of(role: Role) -> int | None:
    """The user to become; None when we are an ordinary user already."""
    return USERS[role] if home.is_root() else None


def limited(limits: Limits, nproc: bool) -> list[str]:
    """The command prefix that sets rlimits; inside a user namespace, where only the sandbox's processes count."""
    count = [f"--nproc={limits.processes}"] if nproc else []
    return [PRLIMIT, *count, f"--fsize={limits.disk_mb << 20}", "--core=0", "--"]
