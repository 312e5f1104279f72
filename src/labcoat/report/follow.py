"""Embedding while runs go on: when the last of them ends, its codes have their vectors."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from labcoat.embedding import Embedder
from labcoat.journal.lock import elsewhere, holder, working
from labcoat.report.counting import Count, Counting
from labcoat.report.facts import embedded
from labcoat.report.gather import UNSOUND, find
from labcoat.report.index import stamp
from labcoat.report.opened import opened

EVERY = 2.0
"""Seconds between two looks."""
QUIET = 5
"""Looks in a row without a run at work, after which none is waited for: a loop over seeds has gaps."""


def follow(
    places: Iterable[Path],
    embedder: Embedder | None,
    counting: Counting,
    report: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Embed the codes of the runs at or below some folders, and of those that appear, until none goes on.

    A model's vectors are in its cache then; without an embedder runs are waited for only. A run that cannot be read is
    left to scoring. One that may be dead, on another machine, is waited for as well, which is told to ``report``.

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
                if seen[folder].catch_up(embedder, count, report):
                    quiet = 0
            if quiet < QUIET:
                pause(EVERY)


class _Seen:
    """How much of a run is embedded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stamp = ""
        self.steps = 0
        self.reported = False

    def catch_up(self, embedder: Embedder | None, count: Count, report: Callable[[str], None]) -> bool:
        """Embed what is new; whether the run goes on."""
        stamped = stamp(self.folder)
        if stamped == self.stamp:
            return self._goes_on(report)
        self.stamp = stamped
        with contextlib.suppress(*UNSOUND):
            with opened(self.folder) as history:
                texts = [history.text(step) for step in history.steps[self.steps :]]
            self.steps += len(texts)
            if embedder:
                count(0, more=len(texts))
                embedded(texts, embedder, count)
        return True

    def _goes_on(self, report: Callable[[str], None]) -> bool:
        lock = self.folder / "lock"
        held = holder(lock)
        if held and elsewhere(held) and not self.reported:
            self.reported = True
            report(
                f"waiting for {self.folder}: process {held.get('pid', '?')} on {held.get('host', '?')} holds it, which "
                f"cannot be seen from here; if it is dead, remove {lock}"
            )
        return working(lock)
