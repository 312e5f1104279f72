"""Operations: what a reply asks for, or why it cannot be had."""

from __future__ import annotations

from dataclasses import dataclass

FORMATS = (
    'Answer with "### FILE: path" followed by the whole file in a fenced block, or by blocks of the form '
    '"<<<<<<< SEARCH", lines of the file, "=======", new lines, ">>>>>>> REPLACE".'
)


class Rejected(Exception):
    """A reply that cannot be applied. ``reason`` says what was found where, and what to do about it."""

    def __init__(self, reason: str) -> None:
        """Keep the reason."""
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class WholeFile:
    """Put ``content`` at ``path``; every line of it ends in a newline."""

    path: str
    content: str


@dataclass(frozen=True)
class Replace:
    """In the file at ``path``, put ``replace`` in the place of ``search``; every line of both ends in a newline."""

    path: str
    search: str
    replace: str


@dataclass(frozen=True)
class Delete:
    """Delete the file at ``path``."""

    path: str


Operation = WholeFile | Replace | Delete


@dataclass(frozen=True)
class Patch:
    """Operations in the order of the reply, which is the order in which they are applied.

    The path "" stands for a file that the reply did not name.
    """

    operations: tuple[Operation, ...]
