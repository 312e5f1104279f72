"""Where the output of a process goes, never more of it than fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

HEAD, TAIL = 16 << 10, 48 << 10  # bytes of each stream that are kept
GAP = re.compile(r"\n(\.\.\.) \[\d+ bytes left out\] \.\.\.\n")


class Sink(Protocol):
    """Takes what a stream delivers."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""


class HeadTail:
    """Keeps the first and the last bytes of a stream and never holds more than that."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        """Keep ``head`` and ``tail`` bytes."""
        self._head, self._tail = bytearray(), bytearray()
        self._caps = head, tail
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._total += len(data)
        room = self._caps[0] - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if (over := len(self._tail) - self._caps[1]) > 0:
            del self._tail[:over]

    def text(self) -> str:
        """What was kept, as text; a mark stands where bytes were left out."""
        left_out = self._total - len(self._head) - len(self._tail)
        mark = f"\n... [{left_out} bytes left out] ...\n".encode() if left_out else b""
        return (self._head + mark + self._tail).decode("utf-8", errors="replace")


def end_of(text: str) -> str:
    """What is known to be the end of a stream: all of it, or what stands after the last gap, begun by three dots."""
    return "".join(GAP.split(text)[-2:])


class Echo(HeadTail):
    """A HeadTail that also hands every whole line on, for progress."""

    def __init__(self, line: Callable[[str], None]) -> None:
        """Call ``line`` with each line, stripped."""
        super().__init__()
        self._line, self._rest = line, b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        super().feed(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-HEAD:]
        for line in whole:
            self._line(line.decode("utf-8", errors="replace").strip())
