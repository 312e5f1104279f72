"""One child process with all its descendants: streams drained, memory watched, ended as a whole.

Everything happens in the main thread: the parent-death signal of a sandbox follows the thread that started it,
so a child must be started by the thread that lives as long as we do.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Literal, Self

from labcoat.bench import processors
from labcoat.bench.cgroup import Group
from labcoat.bench.streams import Echo, HeadTail, Sink
from labcoat.errors import CannotRunHere

Ended = Literal["timeout", "memory", "disk", "tampered"]

WATCH = 0.1  # seconds between two looks at memory
PAGE = os.sysconf("SC_PAGE_SIZE")
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Finished:
    """How a process tree ended. Nothing of it is alive any more."""

    exit: int | None
    """Exit code (negative: signal); None when we ended it."""
    stdout: str
    stderr: str
    seconds: float
    ended: Ended | None = None
    """Why we ended it, if we did."""
    peak_memory: int = 0
    """Bytes: the largest sum over the tree that was seen."""


def children(pid: int) -> set[int]:
    """Process ids of the children of ``pid``, of all its threads."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as listing:
                found.update(map(int, listing.read().split()))
    return found


def descendants(pids: set[int]) -> set[int]:
    """``pids`` and all their descendants."""
    found, fresh = set(pids), set(pids)
    while fresh:
        fresh = set().union(*map(children, fresh)) - found
        found |= fresh
    return found


def resident(pid: int) -> int:
    """Bytes of ``pid`` in memory. A leader thread that has ended shows none, so then its threads are asked."""
    tasks = [f"/proc/{pid}"]
    with contextlib.suppress(OSError):
        tasks += [f"/proc/{pid}/task/{task}" for task in os.listdir(f"/proc/{pid}/task")]
    for task in tasks:
        with contextlib.suppress(OSError), open(f"{task}/statm", "rb") as statm:
            if pages := int(statm.read().split()[1]):
                return pages * PAGE
    return 0


def used(folders: Sequence[Path], enough: int) -> int:
    """Bytes on disk below ``folders``, an entry counting as 4 KiB at least; stops counting above ``enough``."""
    total, waiting = 0, [str(folder) for folder in folders]
    while waiting and total <= enough:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:  # it may go while we look
            for entry in entries:
                state = entry.stat(follow_symlinks=False)
                total += max(4096, state.st_blocks * 512)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                if total > enough:
                    break
    return total


def nameless(pids: set[int], folders: Sequence[Path]) -> int:
    """Bytes on the disk of ``folders`` in files that have no name any more and that one of ``pids`` holds open."""
    devices = {os.stat(folder).st_dev for folder in folders if folder.exists()}
    found: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    state = entry.stat()
                    if stat.S_ISREG(state.st_mode) and not state.st_nlink and state.st_dev in devices:
                        found[state.st_ino] = state.st_blocks * 512
    return sum(found.values())


def proportional(pid: int) -> int:
    """Bytes of ``pid`` with shared pages divided among those who share them; as :func:`resident` where not shown."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
        for line in rollup:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return resident(pid)


class Child:
    """A started process tree. Use it in a ``with`` block: at its end nothing of the tree is alive."""

    _alive: ClassVar[set[int]] = set()  # of all instances: none takes another's process for its orphan

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | Path = "/",
        memory_mb: int | None = None,
        group: Group | None = None,
        watched: Sequence[Path] = (),
        disk_mb: int = 0,
        user: int | None = None,
        stdin: bool = False,
        stdout: Sink,
        stderr: Sink,
        pass_fds: Sequence[int] = (),
        pinned: Collection[int] = (),
    ) -> None:
        """Start ``argv`` in a session of its own, as ``user`` (and the group of that number) if one is given.

        The tree is put into ``group`` and onto the processors ``pinned``, if any. Folders that are ``watched`` may grow
        to ``disk_mb`` together. What is pushed on ``held`` later is given back when nothing is alive.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("processes of a bench start from the main thread only")
        # Orphans of the tree come to us and not to init: so they are found, counted and ended.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._not_ours = children(os.getpid())
        self.held = ExitStack()
        self._group, self._watched, self._disk = group, watched, disk_mb << 20
        self._memory = None if memory_mb is None else memory_mb << 20
        self.ended: Ended | None = None
        self.peak_memory = 0
        self.started = time.monotonic()
        self.seconds = 0.0
        self._next_watch = self.started + WATCH / 10
        try:
            with processors.only(pinned) if pinned else contextlib.nullcontext():
                self.process = subprocess.Popen(
                    list(argv),
                    env=dict(env),
                    cwd=cwd,
                    stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,
                    pass_fds=pass_fds,
                    umask=0o022,
                    user=user,
                    group=user,
                    extra_groups=None if user is None else [],
                )
        except OSError as error:
            raise CannotRunHere(f"cannot start {argv[0]}: {error}") from error
        if group is not None:
            self._join(group)
        self._alive.add(self.process.pid)
        with contextlib.suppress(OSError):  # if the machine runs out of memory, this tree is ended first
            Path(f"/proc/{self.process.pid}/oom_score_adj").write_text("1000")
        self._streams = selectors.DefaultSelector()
        for stream, sink in ((self.process.stdout, stdout), (self.process.stderr, stderr)):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self._streams.register(stream, selectors.EVENT_READ, sink)

    def turn(self, deadline: float) -> bool:
        """Move data and watch memory once, until ``deadline`` at most. False when the process has ended."""
        now = time.monotonic()
        pause = max(0.0, min(deadline, self._next_watch) - now)
        if self._streams.get_map():
            self._drain(pause)
        else:  # it closed its streams: nothing wakes us, so ask often
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(min(pause, WATCH))
        if time.monotonic() >= self._next_watch:
            self._watch()
        if self.process.poll() is not None and self.ended is None and self._group and self._group.out_of_memory:
            self.ended = "memory"  # the kernel was faster than the watcher
        return self.process.poll() is None and self.ended is None

    def finish(self, deadline: float) -> None:
        """Wait for the end, whatever brings it."""
        while self.turn(deadline):
            if time.monotonic() >= deadline:
                self.ended = "timeout"
                break
        self.seconds = time.monotonic() - self.started
        if self.ended is None:
            self._weigh()

    def finished(self, stdout: HeadTail, stderr: HeadTail) -> Finished:
        """How it ended, after :meth:`close`."""
        code = None if self.ended else self.process.returncode
        return Finished(code, stdout.text(), stderr.text(), self.seconds, self.ended, self.peak_memory)

    def close(self) -> None:
        """End what is alive of the tree and take what its streams still hold."""
        give_up = time.monotonic() + 10
        while living := self._tree():
            for pid in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            if time.monotonic() > give_up:
                raise CannotRunHere(
                    f"processes {sorted(living)} do not end after SIGKILL; look at `ps -o pid,stat,wchan`"
                )
            time.sleep(0.001)
        self._alive.discard(self.process.pid)
        while self._streams.get_map() and time.monotonic() < give_up and self._drain(0.0):
            pass
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._streams.close()
        self.held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _drain(self, pause: float) -> int:
        """Hand on what has come within ``pause`` seconds; the number of streams that had something."""
        ready = self._streams.select(pause)
        for key, _ in ready:
            try:
                data = os.read(key.fd, 1 << 16)
            except BlockingIOError:  # the child may read its own pipe, and was faster
                continue
            if data:
                key.data.feed(data)
            else:
                self._streams.unregister(key.fileobj)
        return len(ready)

    def _watch(self) -> None:
        """Measure the tree; a first look comes early, then ten a second."""
        now = time.monotonic()
        self._next_watch = now + min(WATCH, max(WATCH / 10, (now - self.started) / 2))
        self._reap()
        pids = self._tree()
        memory = sum(map(resident, pids))
        if self._memory is not None and memory > self._memory:  # shared pages may have been counted twice
            memory = sum(map(proportional, pids))
            if memory > self._memory:
                self.ended = "memory"
        if self._group and self._group.out_of_memory:  # the kernel may have ended a child and left the others
            self.ended = "memory"
        self.peak_memory = max(self.peak_memory, memory)
        self._weigh(pids)

    def _weigh(self, pids: set[int] | None = None) -> None:
        """Look at what it has written; once more at its end, so that the verdict does not hang on the moment."""
        if self._watched:
            hidden = nameless(pids or set(), self._watched)
            if hidden + used(self._watched, self._disk) > self._disk:
                self.ended = "disk"

    def _join(self, group: Group) -> None:
        """Put the tree into its group. What it starts from then on is in by itself, so this ends after few rounds."""
        joined: set[int] = set()
        while fresh := descendants({self.process.pid}) - joined:
            for pid in fresh:
                with contextlib.suppress(ProcessLookupError):
                    group.add(pid)
            joined |= fresh

    def _orphans(self) -> set[int]:
        """Children that came to us from the tree. Our own others share our session or were there before."""
        ours, found = os.getsid(0), set()
        for pid in children(os.getpid()) - self._not_ours - self._alive:
            with contextlib.suppress(OSError):
                if os.getsid(pid) != ours:
                    found.add(pid)
        return found

    def _tree(self) -> set[int]:
        alive = {self.process.pid} if self.process.poll() is None else set()
        return descendants(alive | self._orphans())

    def _reap(self) -> None:
        for pid in self._orphans():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path = "/",
    timeout: float,
    memory_mb: int | None = None,
    user: int | None = None,
    echo: Callable[[str], None] | None = None,
    pass_fds: Sequence[int] = (),
) -> Finished:
    """Run ``argv`` to its end, or end it.

    Args:
        argv: command, without a shell.
        env: the whole environment.
        cwd: working folder.
        timeout: seconds of wall clock.
        memory_mb: MiB for the whole tree, watched ten times a second.
        user: user and group id to become, for root.
        echo: called with each line of standard output as it comes.
        pass_fds: file descriptors that the child inherits.

    Raises:
        CannotRunHere: the command cannot be started.
    """
    out, err = Echo(echo) if echo else HeadTail(), HeadTail()
    child = Child(
        argv, env=env, cwd=cwd, memory_mb=memory_mb, user=user, stdout=out, stderr=err, pass_fds=pass_fds
    )  # fmt: skip
    with child:
        child.finish(child.started + timeout)
    return child.finished(out, err)
