"""All runs below some folders, with the geometry of their codes: from the index, or else from their journals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labcoat.embedding import Embedder
from labcoat.errors import Diverged, InputError
from labcoat.record import RECORD
from labcoat.report.counting import Count, Counting
from labcoat.report.index import Index, stamp
from labcoat.scoring.runs import Geometry, Run
from labcoat.scoring.table import Missing, distinct

UNSOUND = (InputError, Diverged)
"""What a run folder that was damaged raises; anything else is no matter of one run."""


@dataclass
class Gathered:
    """What was found."""

    runs: list[Run] = field(default_factory=list)
    geometry: dict[str, Geometry] = field(default_factory=dict)
    """By folder."""
    left_out: list[Missing] = field(default_factory=list)


def find(places: Iterable[Path]) -> list[Path]:
    """Folders of runs at or below some folders, each once.

    Raises:
        InputError: there is none.
    """
    places = list(places)
    found = {folder.resolve(): folder for place in places for folder in _below(place)}
    if not found:
        raise InputError(f"{', '.join(map(str, places))}: no run there; `labcoat run` says where it puts one")
    return sorted(found.values())


def _below(place: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(place):
        if RECORD in names:
            folders.clear()
            yield Path(folder)
        folders.sort()


def gather(folders: Sequence[Path], embedder: Embedder | None, index: Index, counting: Counting) -> Gathered:
    """Read runs; one that cannot be read is left out and said.

    Args:
        folders: of the runs.
        embedder: gives the geometry; None for none.
        index: what was folded before.
        counting: shows the progress of many things.
    """
    found = Gathered()
    with counting("runs read", len(folders)) as count:
        for folder in folders:
            try:
                found.runs.append(_facts(folder, index))
            except UNSOUND as error:
                found.left_out.append(Missing(str(folder), f"left out: {error}"))
            count()
    found.runs, copies = distinct(found.runs)
    found.left_out += copies
    if embedder is None:
        return found
    kind = f"geometry {space(embedder)}"
    embedded = [run for run in found.runs if run.baseline]
    with counting("codes embedded", sum(1 + len(run.trials) for run in embedded)) as count:
        for run in embedded:
            try:
                found.geometry[run.folder] = _geometry(run, embedder, kind, index, count)
            except UNSOUND as error:
                found.left_out.append(Missing(run.folder, f"no exploration metrics: {error}"))
    return found


def _facts(folder: Path, index: Index) -> Run:
    stamped = stamp(folder)
    entry = index.get(folder, "facts", stamped)
    if entry is None:
        from labcoat.report.facts import facts

        entry = facts(folder).to_json()
        index.put(folder, "facts", stamped, entry)
    return Run.from_json(entry | {"folder": str(folder)})


def _geometry(run: Run, embedder: Embedder, kind: str, index: Index, count: Count) -> Geometry:
    folder = Path(run.folder)
    stamped = stamp(folder)
    entry: dict[str, Any] | None = index.get(folder, kind, stamped)
    if entry is None or len(entry["distances"]) != len(run.trials):
        from labcoat.report.facts import geometry

        entry = vars(geometry(folder, embedder, len(run.trials), count))
        index.put(folder, kind, stamped, entry)
    else:
        count(1 + len(run.trials))
    return Geometry(entry["shape"], tuple(entry["distances"]))


def space(embedder: Embedder) -> str:
    """What tells vectors apart: the embedder, and of a model its weights."""
    from labcoat.embedding.windows import Windowed

    return f"{embedder.name} {embedder.encoder.name}" if isinstance(embedder, Windowed) else embedder.name
