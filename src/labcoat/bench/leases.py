"""Leases of numbered things of this machine, processors and GPUs, among all processes of labcoat that share a home."""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from labcoat.bench import home


class Lease:
    """Numbers that nobody else holds until it is closed, or until we die."""

    def __init__(self, kind: str, numbers: Sequence[int], most: int) -> None:
        """Take the first ``most`` of ``numbers`` that are free; fewer where fewer are."""
        self._locks: dict[int, int] = {}
        folder = home.folder(kind) if numbers else Path()
        for number in numbers:
            if len(self._locks) == most:
                break
            path = folder / f"{platform.node()}-{number}.lock"  # a home may be shared by several machines
            with home.named(path):
                lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
            else:
                self._locks[number] = lock

    @property
    def held(self) -> list[int]:
        """The numbers that are ours."""
        return list(self._locks)

    def close(self) -> None:
        """Give them back."""
        while self._locks:
            os.close(self._locks.popitem()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
