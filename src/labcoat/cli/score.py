"""``labcoat score``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from labcoat.cli.output import print_json, say
from labcoat.cli.run import ended_by_signals
from labcoat.cli.table import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labcoat.embedding import Embedder
    from labcoat.report.index import Index
    from labcoat.report.sheets import Sheet

IDLE = 19
"""Priority beside runs: the lowest, so that it takes what they leave."""


def score(
    runs: Annotated[list[Path], typer.Argument(metavar="RUNS...", help="Folders of runs, or with runs below them.")],
    mode: Annotated[
        Literal["paper", "released"],
        typer.Option(help="Where FML-bench's paper and its released code differ: which one to follow."),
    ] = "paper",
    embedder: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Of the exploration metrics: `tokens`, `graphcodebert`, `graphcodebert:mean` or `none`.",
        ),
    ] = "tokens",
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Embed codes on a processor that is idle while runs go on; score when none does any more."
        ),
    ] = False,
    format: Annotated[
        Literal["text", "markdown", "csv", "json"], typer.Option(help="What to print; `csv` is the table of runs.")
    ] = "text",
    out: Annotated[Path | None, typer.Option(help="Also write every table, as CSV, Markdown and JSON, there.")] = None,
) -> None:
    """Score runs: improvement, win rates, process metrics."""
    from labcoat.cli.progress import counting
    from labcoat.report import scored
    from labcoat.report.formats import as_csv, markdown, place, write
    from labcoat.report.gather import find, gather
    from labcoat.report.sheets import sheets

    if out:
        place(out)
    chosen = _embedder(embedder, follow)
    try:
        with ended_by_signals():
            if follow:
                from labcoat.report.follow import follow as wait

                os.nice(IDLE)
                wait(runs, chosen, counting, lambda text: say(text, sys.stderr, 2))
            folders = find(runs)
            with _index() as index:
                gathered = gather(folders, chosen, index, counting)
    except KeyboardInterrupt:
        say("interrupted; what was read and embedded is kept, the same command goes on from here", sys.stderr, 2)
        raise typer.Exit(130) from None
    if index.lost:
        say(f"not all is kept for the next time: {index.lost}", sys.stderr, 2)
    found = scored(gathered, mode, embedder)
    several = sheets(found)
    if out:
        write(out, found, _heading(found), several)
    if format == "json":
        print_json(found)
    elif format == "markdown":
        print(markdown(_heading(found), several), end="")
    elif format == "csv":
        print("".join(as_csv(sheet) for sheet in several if sheet.name == "runs"), end="")
    else:
        _print(_heading(found), several)


def _embedder(name: str, beside_runs: bool) -> Embedder | None:
    """The embedder; beside runs it leaves the GPUs to them."""
    from labcoat import embedding
    from labcoat.bench import home

    if name == "none":
        return None
    return embedding.load(name, lambda: home.folder("embeddings"), "cpu" if beside_runs else None)


def _index() -> Index:
    """What was read before; where nothing can be kept, everything is read anew."""
    from labcoat.bench import home
    from labcoat.errors import CannotRunHere
    from labcoat.report.index import Index

    try:
        return Index(home.folder("score") / "index.sqlite")
    except CannotRunHere as error:
        say(f"nothing is kept for the next time: {error}", sys.stderr, 2)
        return Index(None)


def _heading(found: dict[str, Any]) -> str:
    spoken = "no exploration metrics" if found["embedder"] == "none" else f"codes embedded by `{found['embedder']}`"
    return (
        f"{len(found['runs'])} runs, {len(found['arms'])} arms, {len(found['tasks'])} tasks; "
        f"mode `{found['mode']}`, {spoken}."
    )


def _print(heading: str, several: Sequence[Sheet]) -> None:
    from labcoat.report.formats import for_pages, legend, shown

    say(heading)
    for sheet in for_pages(several):
        print(f"\n{sheet.title}\n")
        rows = [[shown(cell) for cell in row] for row in sheet.rows]
        print_table([label.signed for label in sheet.head], rows, keys=sheet.keys)
        for line in filter(None, [sheet.note, legend(sheet)]):
            say(line)
