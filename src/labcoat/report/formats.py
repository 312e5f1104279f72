"""Sheets as text: for people, as Markdown, as CSV; and a folder with all of it."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labcoat.errors import CannotRunHere
from labcoat.report.sheets import MEANING, SYMBOLS, Cell, Chance, Label, Sheet, Spread, symbols
from labcoat.scoring.intervals import Estimate

WIDE = ("runs",)
"""Sheets with too many columns for a page."""


def shown(cell: Cell) -> str:
    """A cell for people: four significant digits, of a p-value two, a dash for what is undefined."""
    if isinstance(cell, Label):
        return cell.signed
    if isinstance(cell, Spread):
        sd = "" if cell.sd is None else f" ± {cell.sd:.2g}"
        return f"{shown(cell.mean)}{sd}{symbols(cell.marks or ())}"
    if isinstance(cell, Estimate):
        return shown(cell.value) + ("" if cell.low is None else f" [{shown(cell.low)}, {shown(cell.high)}]")
    if isinstance(cell, Chance):
        return f"{cell:.2g}"
    if isinstance(cell, float):
        return f"{cell:.4g}" if math.isfinite(cell) else "-"
    return "-" if cell is None else str(cell)


def legend(sheet: Sheet) -> str:
    """What the symbols in a sheet mean; empty without any."""
    return "; ".join(f"{SYMBOLS[mark]} {mark}: {MEANING[mark]}" for mark in sheet.marks)


def for_pages(sheets: Sequence[Sheet]) -> list[Sheet]:
    """The sheets that fit on a page."""
    return [sheet for sheet in sheets if sheet.name not in WIDE]


def markdown(heading: str, sheets: Sequence[Sheet]) -> str:
    """The sheets below a heading."""
    parts = [heading]
    for sheet in for_pages(sheets):
        lines = [[shown(cell) for cell in row] for row in [sheet.head, *sheet.rows]]
        lines.insert(1, ["---"] * len(sheet.head))
        table = "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)
        parts += [f"## {sheet.title}", *filter(None, [sheet.note]), table, *filter(None, [legend(sheet)])]
    return "\n\n".join(parts) + "\n"


def as_csv(sheet: Sheet) -> str:
    """A sheet in full precision; the parts of a cell are columns, what is undefined is empty."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    columns = zip(*sheet.rows, strict=True)
    head = [
        f"{label.in_full}{part}"
        for label, column in zip(sheet.head, columns, strict=True)
        for part in _parts(column[0])
    ]
    writer.writerow(head)
    for row in sheet.rows:
        writer.writerow([value for cell in row for value in _parts(cell).values()])
    return table.getvalue()


def _parts(cell: Cell) -> dict[str, Any]:
    """What a cell holds, by what is added to the name of its column; the same parts for all cells of a column."""
    if isinstance(cell, Spread):
        marks = {} if cell.marks is None else {" marks": "; ".join(cell.marks)}
        return {"": cell.mean, " sd": cell.sd} | marks
    if isinstance(cell, Estimate):
        return {"": cell.value, " low": cell.low, " high": cell.high}
    return {"": cell.in_full if isinstance(cell, Label) else cell}


def place(folder: Path) -> None:
    """Make the folder of :func:`write`, before anything takes long.

    Raises:
        CannotRunHere: it cannot be made.
    """
    with _named(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write(folder: Path, found: dict[str, Any], heading: str, sheets: Sequence[Sheet]) -> None:
    """Write ``score.json``, ``report.md`` and a CSV file for each sheet, each whole or not at all.

    Raises:
        CannotRunHere: they cannot be written.
    """
    texts = {f"{sheet.name}.csv": as_csv(sheet) for sheet in sheets}
    texts["score.json"] = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    texts["report.md"] = f"# Scores\n\n{markdown(heading, sheets)}"
    for name, text in texts.items():
        half = folder / f"{name}.{os.getpid()}.part"  # another process may write there, too
        try:
            with _named(folder):
                half.write_text(text, encoding="utf-8", errors="backslashreplace")  # a folder may have any name
                os.replace(half, folder / name)
        finally:
            half.unlink(missing_ok=True)


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotRunHere(f"{folder}: {error.strerror}; give another folder with --out, or free some space") from None
