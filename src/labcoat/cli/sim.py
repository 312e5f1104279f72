"""``labcoat sim``."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from labcoat.cli.output import JsonFlag, print_json, say
from labcoat.cli.run import ended_by_signals
from labcoat.cli.table import print_markdown


def sim(
    strategy: Annotated[
        list[str] | None, typer.Option(metavar="NAME[@PRESET]", help="A strategy; give it once for each. Default: all.")
    ] = None,
    landscape: Annotated[
        list[str] | None, typer.Option(help="A simulated task; once for each. Default: the suite `landscapes`.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds: 0, 1, ...")] = 10,
    steps: Annotated[int, typer.Option(help="How many trials each run may spend.")] = 100,
    runs: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results. Default: `sim` in the folder of all runs.")
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="How many. Default: one for each core.")] = None,
    json: JsonFlag = False,
) -> None:
    """Compare strategies on simulated landscapes. The same command again goes on; finished runs are read."""
    from labcoat.cli.progress import counting
    from labcoat.sim import Cell, Failure, Grid, Row, markdown, results, run_all, run_cell, write

    grid = Grid.of(strategies=strategy or [], landscapes=landscape or [], seeds=seeds, steps=steps, runs=runs)
    rows: list[Row] = []
    failed: dict[Cell, Failure] = {}
    cells = grid.cells()
    ended = run_all(run_cell, cells, min(len(cells), processes or len(os.sched_getaffinity(0))))
    try:
        with ended_by_signals(), closing(ended), counting("runs", len(cells)) as count:
            for cell, result in ended:
                count()
                if isinstance(result, Failure):
                    failed[cell] = result
                else:
                    rows.append(result)
    except KeyboardInterrupt:
        say(f"stopped after {len(rows)} of {len(cells)} runs; the same command goes on from here", sys.stderr, 2)
        raise typer.Exit(130) from None
    found = results(grid, rows, failed)
    folder = out or runs / "sim"
    write(folder, found)
    if json:
        print_json(found)
    else:
        print_markdown(markdown(found))
        say(f"results: {folder}")
    for cell, failure in failed.items():
        say(f"{cell.strategy} on {cell.landscape}, seed {cell.seed}: {failure.error}", sys.stderr, 2)
    if failed:
        raise typer.Exit(max(failure.exit_code for failure in failed.values()))
