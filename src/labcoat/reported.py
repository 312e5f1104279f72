"""The tables of a task whose numbers the project's own code reports: what it sees, and where the number is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from labcoat.tree import check_path

SYSTEM = ["/bin", "/dev", "/etc", "/lib", "/proc", "/sys", "/tmp", "/usr/bin", "/usr/lib", "/ws"]
"""What a sandbox itself puts in its place: nothing of the user's can stand there or around it."""


def check_absolute(path: str) -> str:
    """Return ``path`` if it is a plain absolute path, else raise ValueError."""
    pure = PurePosixPath(path)
    if not pure.is_absolute() or str(pure) != path or ".." in pure.parts or not path.isprintable():
        raise ValueError(f"not a plain absolute path: {path!r}")
    return path


def check_place(path: str) -> str:
    """Return ``path`` if a sandbox can show something of the user's there, else raise ValueError."""
    if any(PurePosixPath(system).is_relative_to(check_absolute(path)) for system in SYSTEM):
        raise ValueError(f"{path}: the sandbox has its own; name a folder that is the project's or yours")
    return path


RelativePath = Annotated[str, AfterValidator(check_path)]
AbsolutePath = Annotated[str, AfterValidator(check_absolute)]
Place = Annotated[str, AfterValidator(check_place)]


class Mount(BaseModel):
    """A folder or file of the user's that trials may read and not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)

    source: Place = Field(alias="from")
    """Where it lies."""
    at: RelativePath | None = None
    """Where the project has it, relative to its folder; its real place where this is left out."""


class Report(BaseModel):
    """Where the numbers of a command are found. Without this table: the last ``NAME = number`` that it printed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: RelativePath
    """A JSON file that the command writes in the workspace; the number is the value of the key NAME."""


def told(metric: str, argv: Sequence[str], report: Report | None, mounts: Sequence[Mount]) -> list[str]:
    """What the agent is told: the command, where its number is found, and which data it meets."""
    where = f"the key {metric} of {report.file}" if report else f"the last `{metric} = NUMBER` that it prints"
    data = ", ".join(mount.at or mount.source for mount in mounts)
    return [
        f"Command: {' '.join(argv)}, in a fresh copy of the project, without network; its result is {where}",
        *([f"Data that can be read and not changed: {data}"] if data else []),
    ]
