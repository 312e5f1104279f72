"""A run folder that is read: whatever happened to it is said in one way, and nothing stays open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labcoat.errors import InputError
from labcoat.history import History

MISSHAPEN = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError)
"""What Python says of data that has another shape than the reader takes for granted."""


@contextmanager
def opened(folder: Path) -> Iterator[History]:
    """The run in ``folder``, to be read within the block, in which nothing but reading belongs.

    Raises:
        InputError: there is no run, a file of it is missing or closed to us, or holds something else.
        Diverged: a content of it was changed.
    """
    try:
        history = History(folder)
        try:
            yield history
        finally:
            history.journal.close()
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}; copy the run folder again") from error
    except MISSHAPEN as error:
        why = " ".join(str(error).split())
        raise InputError(f"{folder}: damaged, copy it again ({type(error).__name__}: {why})") from error
