"""How a long job says how far it is, whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Count(Protocol):
    """Called as things are done."""

    def __call__(self, done: int = 1, *, more: int = 0) -> None:
        """``done`` things are done; ``more`` were found that are to be done."""


Counting = Callable[[str, int], AbstractContextManager[Count]]
"""What is counted, and how many there are."""
