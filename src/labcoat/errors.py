"""The few errors that labcoat raises, each with its exit code.

Every message says what is wrong, where (file and field), and what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping


class LabcoatError(Exception):
    """Base of all errors that a user can act on."""

    exit_code = 1


class InputError(LabcoatError):
    """Something the user gave is wrong: an unknown task, a bad manifest, a run folder of another spec."""

    exit_code = 2


class CannotRunHere(LabcoatError):
    """The machine lacks something: the sandbox, disk space, a data file, a package."""

    exit_code = 3


class RunBusy(LabcoatError):
    """Another process is working on the same run."""

    exit_code = 4


class Stopped(LabcoatError):
    """The run stopped before its end (a limit, a model endpoint that is away) and can be resumed."""

    exit_code = 5


class Diverged(LabcoatError):
    """What is recomputed differs from what the journal recorded."""

    exit_code = 6


class StrategyError(LabcoatError):
    """A strategy broke the rules of the Lab (awaited something else, raised an unexpected exception)."""

    exit_code = 7


def of_field(wrong: Mapping[str, object]) -> str:
    """What is wrong with a field, of one of the errors that a model of pydantic found."""
    return "no such field" if wrong["type"] == "extra_forbidden" else str(wrong["msg"]).removeprefix("Value error, ")
