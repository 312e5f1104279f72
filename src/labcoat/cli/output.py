"""How the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, as docs/json.md describes it.")]


def console() -> Console:
    """Standard output; as wide as the text where it is no terminal, so that nothing is cut in a pipe."""
    import sys

    from rich.console import Console

    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 160)


def printable(text: str) -> str:
    """``text`` with control characters shown and not obeyed: what a candidate or a model wrote may hold any."""
    return "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(value, indent=1, ensure_ascii=False))


def print_table(head: list[str], rows: list[list[str]]) -> None:
    """A plain table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console().print(table)


def number(value: float | None) -> str:
    """A metric for people; a dash where there is none."""
    return "-" if value is None else f"{value:.6g}"
