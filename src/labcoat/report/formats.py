"""Sheets as text: for people, as Markdown, as CSV; and a folder with all of it."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labcoat.report.sheets import MEANING, SYMBOLS, Cell, Label, Sheet, Spread

WIDE = ("runs",)
"""Sheets with too many columns for a page."""


def shown(cell: Cell) -> str:
    """A cell for people: four significant digits, a dash for what is undefined."""
    if isinstance(cell, Label):
        return cell.signed
    if isinstance(cell, Spread):
        return shown(cell.mean) if cell.sd is None else f"{shown(cell.mean)} ± {cell.sd:.2g}"
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
    """A sheet in full precision; a mean and its deviation are two columns, what is undefined is empty."""
    split = [any(isinstance(row[column], Spread) for row in sheet.rows) for column in range(len(sheet.head))]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    head: list[str] = []
    for label, wide in zip(sheet.head, split, strict=True):
        head += [label.in_full, f"{label.in_full} sd"] if wide else [label.in_full]
    writer.writerow(head)
    for row in sheet.rows:
        writer.writerow([value for cell in row for value in _values(cell)])
    return table.getvalue()


def _values(cell: Cell) -> list[Any]:
    if isinstance(cell, Spread):
        return [cell.mean, cell.sd]
    return [cell.in_full if isinstance(cell, Label) else cell]


def write(folder: Path, found: dict[str, Any], heading: str, sheets: Sequence[Sheet]) -> None:
    """Write ``score.json``, ``report.md`` and a CSV file for each sheet, each whole or not at all."""
    texts = {f"{sheet.name}.csv": as_csv(sheet) for sheet in sheets}
    texts["score.json"] = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    texts["report.md"] = f"# Scores\n\n{markdown(heading, sheets)}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        half = folder / f"{name}.part"
        half.write_text(text, encoding="utf-8")
        os.replace(half, folder / name)
