"""Tables on a terminal keep to its width: heads are folded, what is too wide goes in parts, or row by row."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import zip_longest

from labcoat.cli.output import columns, drawn, fold, print_text, printable, say

GAP = 2  # columns between two columns of a table
FOLDED = 20  # columns that the last column of a table, folded, has at least


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
        needed = _narrow(column) if number < len(table) else _folded(column, whole)
        if len(parts[-1]) > keys and sum(_narrow(beside) + GAP for beside in parts[-1]) + needed > whole:
            parts.append(table[:keys])
        parts[-1] = [*parts[-1], column]
    return parts


def _print_part(table: Sequence[Sequence[str]], whole: int | None, cut: bool) -> None:
    from rich.cells import cell_len, set_cell_size

    widths = [max(map(cell_len, column)) for column in table]
    if whole is not None and _across(widths) > whole:
        narrow, last = [*map(_narrow, table[:-1])], _folded(table[-1], whole)
        before = widths[:-1] if _across([*widths[:-1], last]) <= whole else narrow
        widths = [*before, min(widths[-1], max(last, whole - _across([*before, 0])))]
    for number, cells in enumerate(zip(*table, strict=True)):
        if number == 1:
            print(drawn("─", "-") * min(_across(widths), whole or 80))
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


def _folded(column: Sequence[str], whole: int) -> int:
    """Width of a column whose cells are folded, too; its words stay whole if half of the terminal holds them."""
    from rich.cells import cell_len

    longest = max((cell_len(word) for cell in column for word in cell.split()), default=0)
    return min(_narrow(column), max(FOLDED, min(longest, whole // 2)))


def _across(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


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
