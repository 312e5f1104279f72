"""What the table of runs says of arms: who is ahead of whom, and what is left of a gain on the test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from labcoat.scoring.contrast import contrasts
from labcoat.scoring.paired import Cell
from labcoat.scoring.ranking import rank_arms
from labcoat.scoring.selection import regression
from labcoat.scoring.table import Row
from labcoat.scoring.tables import best_first, by_cell, grouped, raw, signed


def conclusions(table: Sequence[Row]) -> dict[str, Any]:
    """As plain data; what is undefined is None. An infinite gain (-log10 0) has no mean, and is left out."""
    by_arm = grouped(table, lambda row: row.arm)
    own = {arm: by_arm[arm] for arm in best_first(table)}
    gained = {
        arm: {Cell(row.task, row.round): gain for row in rows if math.isfinite(gain := row.score.improvement)}
        for arm, rows in own.items()
    }
    return {
        "pairs": [pair.to_json() for pair in contrasts(gained)],
        "ranks": _ranks(table),
        "validation_to_test": [{"arm": arm, **_regression(rows)} for arm, rows in own.items()],
    }


def _ranks(table: Sequence[Row]) -> dict[str, Any] | None:
    """By the raw test metric, mean over rounds; None without two arms and a task of both."""
    found = rank_arms(signed(table, by_cell(table, raw)))
    if not found.mean_ranks:
        return None
    return {
        "tasks": found.blocks,
        "mean_ranks": dict(found.mean_ranks),
        "statistic": found.statistic,
        "p": found.p,
        "critical_difference": found.critical_difference,
        "alike": [list(group) for group in found.alike],
    }


def _regression(rows: Sequence[Row]) -> dict[str, Any]:
    gains = {
        task: [row.score.gains for row in own if all(map(math.isfinite, row.score.gains))]
        for task, own in grouped(rows, lambda row: row.task).items()
    }
    return asdict(regression(gains))
