"""Embedding while runs go on: when the last of them ends, its codes have their vectors."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from labcoat.embedding import Embedder, in_portions
from labcoat.history import History
from labcoat.journal.lock import working
from labcoat.report.counting import Count, Counting
from labcoat.report.gather import UNSOUND, find
from labcoat.report.index import stamp

EVERY = 2.0
"""Seconds between two looks."""
QUIET = 5
"""Looks in a row without a run at work, after which none is waited for: a loop over seeds has gaps."""


def follow(
    places: Iterable[Path], embedder: Embedder | None, counting: Counting, pause: Callable[[float], None] = time.sleep
) -> None:
    """Embed the codes of the runs at or below some folders, and of those that appear, until none goes on.

    Vectors are kept by the embedder; without one, runs are waited for. A run that cannot be read is left to scoring.

    Raises:
        InputError: there is no run.
    """
    places = list(places)
    seen: dict[Path, _Seen] = {}
    quiet = 0
    with counting("codes embedded", 0) as count:
        while quiet < QUIET:
            quiet += 1
            for folder in find(places):
                if folder not in seen:
                    seen[folder] = _Seen(folder)
                if seen[folder].catch_up(embedder, count):
                    quiet = 0
            if quiet < QUIET:
                pause(EVERY)


class _Seen:
    """How much of a run is embedded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stamp = ""
        self.steps = 0

    def catch_up(self, embedder: Embedder | None, count: Count) -> bool:
        """Embed what is new; whether the run goes on."""
        stamped = stamp(self.folder)
        if stamped == self.stamp:
            return working(self.folder / "lock")
        self.stamp = stamped
        with contextlib.suppress(*UNSOUND):
            history = History(self.folder)
            fresh = history.steps[self.steps :]
            count(0, more=len(fresh))
            texts = [history.text(step) for step in fresh]
            for portion in in_portions(texts, embedder) if embedder else ():
                count(len(portion))
            count(len(fresh) - len(set(texts)))
            self.steps += len(fresh)
        return True
