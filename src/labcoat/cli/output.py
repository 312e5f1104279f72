"""How the commands print: tables and trees for people, JSON for programs.

On a terminal text keeps to its width: it is folded at spaces, and only there. In a pipe nothing is cut or folded.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, as docs/json.md describes it.")]

GAP = 2  # columns between two columns of a table
FOLDED = 20  # columns that the last column of a table, folded, has at least
LABEL = 12  # columns of the name before a line of a summary

ITEM = re.compile(r" *(?:[-*]|\d+\.) ")  # how an item of a list begins


def columns(stream: TextIO) -> int | None:
    """Width of the terminal; None where there is none."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def printable(text: str) -> str:
    """``text`` with control characters shown and not obeyed: what a candidate or a model wrote may hold any."""
    return "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)


def program() -> str:
    """How labcoat was called, for a line that can be pasted."""
    return f"{sys.executable} -m labcoat" if Path(sys.argv[0]).name == "__main__.py" else sys.argv[0]


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(value, indent=1, ensure_ascii=False))


def fold(text: str, width: int | None, indent: int = 0) -> list[str]:
    """``text`` in lines of at most ``width``, all but the first indented; a longer word stays whole."""
    if width is None:
        return [text]
    room = max(width, indent + 20) if indent else max(width, 1)
    hang = " " * indent
    lines = textwrap.wrap(text, room, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
    return lines or [""]


def say(text: str, stream: TextIO | None = None, indent: int = 0) -> None:
    """Print a sentence."""
    stream = stream or sys.stdout
    print("\n".join(fold(printable(text), columns(stream), indent)), file=stream, flush=stream is sys.stderr)


def print_text(text: str) -> None:
    """Prose with lists. On a terminal its paragraphs and items are folded anew, in a pipe it is printed as it is."""
    if columns(sys.stdout) is None:
        print(printable(text))
        return
    paragraphs: list[tuple[str, int | None]] = []  # and how deep a line is that goes on with it, if one can
    for line in text.splitlines():
        mark, depth = ITEM.match(line), len(line) - len(line.lstrip())
        if paragraphs and line and not mark and depth == paragraphs[-1][1]:
            paragraphs[-1] = (f"{paragraphs[-1][0]} {line.strip()}", depth)
        else:
            paragraphs.append((line, mark.end() if mark else None if depth or not line else 0))
    for paragraph, hang in paragraphs:
        say(paragraph, indent=hang or 0)


def print_markdown(text: str) -> None:
    """Markdown as it is; on a terminal paragraphs are folded and tables drawn."""
    if columns(sys.stdout) is None:
        print(text)
        return
    for block in text.strip().split("\n\n"):
        if block.startswith("| "):
            head, _, *rows = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in block.splitlines())
            print_table(head, rows)
        else:
            print_text(block.lstrip("# "))
        print()


def print_line(name: str, text: str) -> None:
    """A line of a summary: a name, and what is to be said about it."""
    print("\n".join(fold(f"{name:<{LABEL}}{printable(text)}", columns(sys.stdout), LABEL)))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, keys: int = 1, cut: bool = False) -> None:
    """A table. On a terminal its heads and its last column are folded at spaces; ``cut`` keeps that to one line.

    What is still too wide goes in parts below each other, each with the first ``keys`` columns, which name the row;
    rows with a column that is wider than half of the terminal go below each other, a line for each cell.
    """
    whole = columns(sys.stdout)
    table = [[" ".join(printable(cell).split()) for cell in column] for column in zip(head, *rows, strict=True)]
    if whole is not None and max(map(_narrow, table[:-1]), default=0) > whole // 2:
        _print_rows(table, keys)
        return
    for number, part in enumerate([table] if whole is None else _parts(table, keys, whole)):
        if number:
            print()
        _print_part(part, whole, cut)


def _print_rows(table: Sequence[Sequence[str]], keys: int) -> None:
    label = max((len(head) for head, *_ in table[keys:]), default=0) + GAP
    head, *rows = zip(*table, strict=True)
    for row in rows:
        say("  ".join(row[:keys]), indent=GAP)
        for name, cell in zip(head[keys:], row[keys:], strict=True):
            say(f"{'':<{GAP}}{name:<{label}}{cell}".rstrip(), indent=GAP + label)


def _parts(table: list[list[str]], keys: int, whole: int) -> list[list[list[str]]]:
    """The columns of a table, dealt to parts that fit."""
    parts = [table[:keys]]
    for number, column in enumerate(table[keys:], keys + 1):
        needed = _narrow(column) if number < len(table) else min(_narrow(column), FOLDED)
        if len(parts[-1]) > keys and sum(_narrow(beside) + GAP for beside in parts[-1]) + needed > whole:
            parts.append(table[:keys])
        parts[-1] = [*parts[-1], column]
    return parts


def _print_part(table: Sequence[Sequence[str]], whole: int | None, cut: bool) -> None:
    from rich.cells import cell_len, set_cell_size

    widths = [max(map(cell_len, column)) for column in table]
    if whole is not None and _across(widths) > whole:
        *narrow, last = map(_narrow, table)
        last = min(last, FOLDED)
        before = widths[:-1] if _across([*widths[:-1], last]) <= whole else narrow
        widths = [*before, min(widths[-1], max(last, whole - _across([*before, 0])))]
    for number, cells in enumerate(zip(*table, strict=True)):
        if number == 1:
            print(_drawn("─", "-") * min(_across(widths), whole or 80))
        folded = [[cell] if whole is None else fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
        if number and cut and cell_len(cells[-1]) > widths[-1]:
            folded[-1] = [set_cell_size(cells[-1], widths[-1] - 3).rstrip() + "..."]
        for *line, last in zip_longest(*folded, fillvalue=""):
            padded = [set_cell_size(text, width + GAP) for text, width in zip(line, widths, strict=False)]
            print(("".join(padded) + last).rstrip())


def _narrow(column: Sequence[str]) -> int:
    """Width of a column whose head is folded."""
    from rich.cells import cell_len

    head, *cells = column
    return max(map(cell_len, [*head.split(), *cells]), default=0)


def _across(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


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
