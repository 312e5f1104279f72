"""One writer per run: a lock that the kernel releases when its holder dies, and the epoch that takeover raises."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Any

from labcoat.errors import CannotRunHere, InputError, RunBusy


def boot_id() -> str:
    """Identity of this boot of this machine; empty where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def holder(path: Path) -> dict[str, Any] | None:
    """Who holds the lock, as its file says; None if nobody does. It may be dead."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("held") else None


def elsewhere(holder: dict[str, Any]) -> bool:
    """Whether it is a process of another machine, which cannot be seen from here."""
    return bool(holder.get("host") != socket.gethostname())


def working(path: Path) -> bool:
    """Whether a living process of this machine, or one of another machine that cannot be seen, holds the lock."""
    found = holder(path)
    if found is None or elsewhere(found):
        return found is not None
    if found.get("boot_id") != boot_id():
        return False
    try:
        os.kill(int(found["pid"]), 0)
    except (ProcessLookupError, KeyError, TypeError, ValueError):  # dead, or not our file any more
        return False
    except PermissionError:
        pass
    return True


class Lock:
    """Held from construction until :meth:`release`. ``epoch`` counts the writers that a run has had.

    The lock is `flock` on a file that is never removed: no stale lock can be left behind on one machine. On file
    systems where `flock` does not reach other hosts, the host named in the file decides, and a person must.
    """

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            RunBusy: another process works on this run; it is named.
        """
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CannotRunHere(f"{path}: {error.strerror}; the run folder must be writable") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._read()
            os.close(self._descriptor)
            raise RunBusy(
                f"{path.parent}: process {holder.get('pid', '?')} on {holder.get('host', '?')} is working on this run; "
                "wait for it, or stop it, then give the same command again"
            ) from None
        last = self._read()
        host = socket.gethostname()
        if last.get("held") and last.get("host") != host and last.get("boot_id") != boot_id():
            os.close(self._descriptor)
            raise RunBusy(
                f"{path}: held by process {last['pid']} on {last['host']}, which cannot be seen from here; "
                f"if it is dead, remove {path} and give the same command again"
            )
        self.epoch = int(last.get("epoch", 0)) + 1
        self._write({"host": host, "pid": os.getpid(), "boot_id": boot_id(), "epoch": self.epoch, "held": True})

    def at_least(self, epoch: int) -> None:
        """Raise the epoch above every epoch found in the events (the lock file may have been removed by hand)."""
        if self.epoch <= epoch:
            self.epoch = epoch + 1
            self._write(self._read() | {"epoch": self.epoch})

    def release(self) -> None:
        """Give the run free."""
        if self._descriptor >= 0:
            self._write(self._read() | {"held": False})
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _read(self) -> dict[str, Any]:
        text = os.pread(self._descriptor, 4096, 0)
        if not text:
            return {}
        try:
            content = json.loads(text)
        except ValueError:
            # A machine that lost power in the middle of `_write`; the events still tell the epoch.
            return {}
        if not isinstance(content, dict):
            raise InputError(f"{self.path}: not a lock of labcoat; move it away")
        return content

    def _write(self, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        try:
            os.pwrite(self._descriptor, data, 0)
            os.ftruncate(self._descriptor, len(data))
        except OSError as error:
            raise CannotRunHere(f"{self.path}: cannot write: {error.strerror}; free some space and try again") from None
