"""The result folder: rows as CSV, everything as JSON, the tables as Markdown."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from labcoat import __version__
from labcoat.sim.grid import Cell, Grid
from labcoat.sim.pool import Failure
from labcoat.sim.rows import Row
from labcoat.sim.tables import CONTROL, GREEDY, READINGS, tables


def results(grid: Grid, rows: Iterable[Row], failed: Mapping[Cell, Failure]) -> dict[str, Any]:
    """Everything as plain data, in the order of the grid; docs/json.md describes it."""
    order = {(cell.strategy, cell.seed): number for number, cell in enumerate(grid.cells())}
    rows = sorted(rows, key=lambda row: (row.landscape, order[row.strategy, row.seed]))
    return {
        "labcoat": __version__,
        "grid": grid.to_json(),
        "rows": [asdict(row) for row in rows],
        "failed": [
            {"strategy": cell.strategy, "landscape": cell.landscape, "seed": cell.seed, "error": failure.error}
            for cell, failure in failed.items()
        ],
        "tables": tables(rows),
    }


def write(folder: Path, found: dict[str, Any]) -> None:
    """Write ``results.csv``, ``results.json`` and ``report.md``, each whole or not at all."""
    table = io.StringIO()
    writer = csv.DictWriter(table, [field.name for field in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(found["rows"])
    texts = {
        "results.csv": table.getvalue(),
        "results.json": json.dumps(found, indent=1) + "\n",
        "report.md": f"# Strategies on simulated landscapes\n\n{markdown(found)}",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        half = folder / f"{name}.part"
        half.write_text(text, encoding="utf-8")
        os.replace(half, folder / name)


def markdown(found: dict[str, Any]) -> str:
    """The tables for people."""
    grid, said = found["grid"], found["tables"]
    names = [row["strategy"] for row in said["strategies"]]
    size = f"strategies {len(grid['strategies'])} × landscapes {len(grid['landscapes'])} × seeds {grid['seeds']}"
    parts = [
        f"{len(found['rows'])} runs: {size}, steps {grid['steps']}, model `{grid['model']}`. "
        "In brackets: 95 % intervals by a bootstrap over landscapes.",
    ]
    if found["failed"]:
        parts.append(f"{len(found['failed'])} runs failed and are in no table:")
        parts.append("\n".join(f"- {_run(run)}: {run['error'].splitlines()[0]}" for run in found["failed"]))
    if not names:
        return "\n\n".join([*parts, "No seed of any landscape is finished for all strategies."]) + "\n"
    parts += ["## Strategies", _strategies(said["strategies"]), _control(said["strategies"])]
    parts += ["## Landscapes", "Mean normalised test improvement.", _landscapes(said["landscapes"], names)]
    for split in said["density"]:
        parts += [f"## Dense and sparse by `{split['by']}`", *_split(split)]
    return "\n\n".join(parts) + "\n"


def _strategies(rows: Sequence[dict[str, Any]]) -> str:
    return _table(
        ["strategy", "normalised test improvement", "win rate", "position to the optimum", f"over `{CONTROL}`"],
        [
            [
                row["strategy"],
                *(_interval(row[name]) for name in ("improvement", "win_rate", "position", "over_control")),
            ]
            for row in rows
        ],
    )


def _control(rows: Sequence[dict[str, Any]]) -> str:
    """What the strategies add to blind edits of the baseline."""
    compared = [row for row in rows if row["over_control"]]
    beyond = [row["strategy"] for row in compared if (row["over_control"]["low"] or 0.0) > 0]
    if not compared:
        return f"Nothing is compared with the control `{CONTROL}`."
    return (
        f"Of {len(compared)} strategies {len(beyond)} improve on the control `{CONTROL}` with an interval above 0"
        + (f": {', '.join(beyond)}." if beyond else ".")
    )


def _landscapes(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    return _table(
        ["landscape", *READINGS, *names],
        [
            [
                row["landscape"],
                *(_number(row["density"][reading]) for reading in READINGS),
                *(_number(row["improvement"][name]) for name in names),
            ]
            for row in rows
        ],
    )


def _split(split: dict[str, Any]) -> list[str]:
    parts = [
        f"Density is {READINGS[split['by']]}. Dense is above the median of {split['median']:.3f}: "
        f"{', '.join(split['dense'])}. The correlation is that of the density with how far a strategy is ahead of the "
        "mean of all (Spearman, over landscapes).",
        _table(
            ["strategy", "dense", "rank", "sparse", "rank", "correlation"],
            [
                [
                    row["strategy"], _interval(row["dense"]), f"{row['dense_rank']:g}",
                    _interval(row["sparse"]), f"{row['sparse_rank']:g}", _interval(row["correlation"]),
                ]
                for row in sorted(split["strategies"], key=lambda row: row["dense_rank"])
            ],
        ),
    ]  # fmt: skip
    if split["crossover"]:
        shown = [row["other"] for row in split["crossover"] if row["crossover"] == "shown"]
        parts += [
            f"How far `{GREEDY}` is ahead of each other strategy. The paper's crossover, ahead where opportunities are "
            f"dense and behind where they are sparse, is shown against {len(shown)} of {len(split['crossover'])}"
            + (f": {', '.join(shown)}." if shown else "."),
            _table(
                [f"`{GREEDY}` over", "dense", "sparse", "crossover"],
                [
                    [row["other"], _interval(row["dense"]), _interval(row["sparse"]), row["crossover"]]
                    for row in split["crossover"]
                ],
            ),
        ]
    return parts


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _run(run: dict[str, Any]) -> str:
    return f"{run['strategy']} on {run['landscape']}, seed {run['seed']}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(estimate: dict[str, float | None] | None) -> str:
    if estimate is None or estimate["value"] is None:
        return "-"
    return f"{_number(estimate['value'])} [{_number(estimate['low'])}, {_number(estimate['high'])}]"
