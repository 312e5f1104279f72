"""The tables of a task whose numbers the project's own code reports: what it sees, and where the number is found."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ConfigDict, Field

from labcoat.manifest.table import Place, RelativePath, Table


class Mount(Table):
    """A folder or file of the user's that trials may read and not change."""

    model_config = ConfigDict(serialize_by_alias=True)

    source: Place = Field(alias="from")
    """Where it lies."""
    at: RelativePath | None = None
    """Where the project has it, relative to its folder; its real place where this is left out."""


class Report(Table):
    """Where the numbers of a command are found. Without this table: the last ``NAME = number`` that it printed."""

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
