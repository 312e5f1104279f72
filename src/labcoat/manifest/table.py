"""What every table of the manifest shares: its strictness, and the kinds of paths."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from labcoat.tree import check_path

SYSTEM = ["/bin", "/dev", "/etc", "/lib", "/proc", "/sys", "/tmp", "/usr/bin", "/usr/lib", "/ws"]
"""What a sandbox itself puts in its place: nothing of the user's can stand there or around it."""


MOST_MB = 1 << 30
"""A limit above these MiB is none: sums of bytes would no longer fit into what the kernel takes."""


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


def check_name(name: str) -> str:
    """Return ``name`` if it can be looked for in a line of text, else raise ValueError."""
    if not name.isprintable() or not name.strip():
        raise ValueError(f"not a name: {name!r}")
    return name


Name = Annotated[str, AfterValidator(check_name)]
RelativePath = Annotated[str, AfterValidator(check_path)]
AbsolutePath = Annotated[str, AfterValidator(check_absolute)]
Place = Annotated[str, AfterValidator(check_place)]


class Table(BaseModel):
    """A table of the manifest: unknown keys are errors, types are meant, numbers are finite, values never change."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)
