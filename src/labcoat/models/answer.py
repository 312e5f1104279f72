"""What can come back from an endpoint: an answer of any status, or the ways in which there is none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """What an endpoint answered, whatever its status."""

    status: int
    body: bytes
    asked: float | None = None
    """Seconds that it asks us to wait."""


class Unreachable(Exception):
    """No answer began: refused, no such host, cut off before the first byte."""


class CutOff(Exception):
    """An answer may have been made, and paid, and cannot be read: it broke off, or it took too long."""

    def __init__(self, text: str, received: int = 0) -> None:
        """``received`` counts the bytes that did come."""
        super().__init__(text)
        self.received = received


class TooLong(CutOff):
    """The answer has more bytes than we take."""
