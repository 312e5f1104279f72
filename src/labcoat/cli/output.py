"""How the commands print: tables and trees for people, JSON for programs.

On a terminal text keeps to its width: it is folded at spaces, and only there. In a pipe nothing is cut or folded.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TextIO

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, as docs/json.md describes it.")]

GAP = 2  # columns between two columns of a table
LABEL = 12  # columns of the name before a line of a summary


def columns(stream: TextIO) -> int | None:
    """Width of the terminal; None where there is none."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def printable(text: str) -> str:
    """``text`` with control characters shown and not obeyed: what a candidate or a model wrote may hold any."""
    return "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(value, indent=1, ensure_ascii=False))


def fold(text: str, width: int | None, indent: int = 0) -> list[str]:
    """``text`` in lines of at most ``width``, all but the first indented; a longer word stays whole."""
    if width is None:
        return [text]
    lines = textwrap.wrap(
        text, max(width, indent + 20), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    return lines or [""]


def say(text: str, stream: TextIO | None = None, indent: int = 0) -> None:
    """Print a sentence."""
    stream = stream or sys.stdout
    print("\n".join(fold(printable(text), columns(stream), indent)), file=stream, flush=stream is sys.stderr)


def print_line(name: str, text: str) -> None:
    """A line of a summary: a name, and what is to be said about it."""
    print("\n".join(fold(f"{name:<{LABEL}}{printable(text)}", columns(sys.stdout), LABEL)))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, cut: bool = False) -> None:
    """A table. On a terminal its last column takes the room that is left: cut to one line, or folded at spaces."""
    from rich.cells import cell_len, set_cell_size

    table = [[" ".join(printable(cell).split()) for cell in row] for row in [head, *rows]]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    before = sum(widths[:-1]) + GAP * (len(widths) - 1)
    whole, room = columns(sys.stdout), None
    if whole is not None:
        room = widths[-1] = min(widths[-1], max(10, whole - before))
    for number, (*cells, last) in enumerate(table):
        if number == 1:
            print(_drawn("─", "-") * min(before + widths[-1], whole or 80))
        if cut and room is not None:
            lines = [last if cell_len(last) <= room else set_cell_size(last, room - 3).rstrip() + "..."]
        else:
            lines = fold(last, room)
        start = "".join(set_cell_size(cell, width + GAP) for cell, width in zip(cells, widths, strict=False))
        for line in lines:
            print((start + line).rstrip())
            start = " " * before


def print_tree(labels: Mapping[int, str], parents: Mapping[int, int | None]) -> None:
    """The nodes below those without a parent. On a terminal a line that is too long loses its beginning."""
    below: dict[int | None, list[int]] = {}
    for node in labels:
        parent = parents[node]
        below.setdefault(parent if parent in labels else None, []).append(node)
    whole = columns(sys.stdout)
    waiting = [("", "", node) for node in reversed(below.get(None, []))]
    while waiting:  # no recursion: a search can be deeper than Python's stack
        before, branch, node = waiting.pop()
        line = printable(before + branch + labels[node])
        print(line if whole is None or len(line) <= whole else "..." + line[3 - whole :])
        if branch:
            before += "    " if branch in ("└── ", "`-- ") else _drawn("│   ", "|   ")
        children = below.get(node, [])
        for child in reversed(children):
            waiting.append((before, _drawn("└── ", "`-- ") if child == children[-1] else _drawn("├── ", "|-- "), child))


def _drawn(line: str, plain: str) -> str:
    """``line``, or what stands for it where standard output has no such characters."""
    try:
        line.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return plain
    return line


def number(value: float | None) -> str:
    """A metric for people; a dash where there is none."""
    return "-" if value is None else f"{value:.6g}"


def money(usd: float | None) -> str:
    """Money for people; a price that nobody knows is said to be unknown."""
    return "unknown" if usd is None else f"${usd:.4g}"


def short(value: float | None) -> str:
    """A metric in a table or a line of progress."""
    return "-" if value is None else f"{value:.4g}"
