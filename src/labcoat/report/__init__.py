"""Reports: runs are read from their folders, scored, and set in tables."""

from __future__ import annotations

from typing import Any

from labcoat import __version__
from labcoat.report.gather import Gathered
from labcoat.scoring.conclusions import conclusions
from labcoat.scoring.measures import Mode
from labcoat.scoring.table import rows
from labcoat.scoring.tables import tables

__all__ = ["scored"]


def scored(gathered: Gathered, mode: Mode, embedder: str) -> dict[str, Any]:
    """All tables of some runs as plain data; docs/json.md describes it."""
    table = rows(gathered.runs, gathered.geometry, mode)
    found = tables(table) | conclusions(table)
    left_out = [vars(each) for each in gathered.left_out]
    return {
        "labcoat": __version__,
        "mode": mode,
        "embedder": embedder,
        **found,
        "missing": left_out + found["missing"],
    }
