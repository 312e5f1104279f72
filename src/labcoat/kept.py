"""The artefacts that a run keeps: those of its best trials."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from labcoat.bench.home import reason
from labcoat.bench.outcome import Outcome
from labcoat.errors import CannotRunHere
from labcoat.record import sync_folder


class Kept:
    """``best/``: artefacts of the best trials, stored before their trial is recorded; superseded ones go after it."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is ``best/`` of a run."""
        self.folder = folder

    def path(self, outcome: Outcome) -> Path | None:
        """Where the artefact of an outcome is kept, if it has one."""
        return self.folder / outcome.artefact if outcome.artefact else None

    def store(self, outcome: Outcome, folder: Path | None) -> None:
        """Copy an artefact here, whole or not at all."""
        target = self.path(outcome)
        if target is None or folder is None or target.exists():
            return
        half = self.folder / f"{target.name}.part"
        try:
            shutil.rmtree(half, ignore_errors=True)
            shutil.copytree(folder, half, copy_function=copy_durably)
            half.rename(target)
            sync_folder(self.folder)
        except OSError as error:
            shutil.rmtree(half, ignore_errors=True)
            raise CannotRunHere(
                f"{half}: cannot keep the artefact: {reason(error)}; free some space and give the same command again"
            ) from None

    def only(self, outcomes: list[Outcome]) -> None:
        """Remove every artefact but those of ``outcomes``."""
        wanted = {outcome.artefact for outcome in outcomes}
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.name not in wanted:
                    shutil.rmtree(path, ignore_errors=True)

    def take(self, outcome: Outcome) -> Path | None:
        """The kept artefact of an outcome, None if it has none.

        Raises:
            CannotRunHere: it is gone.
        """
        path = self.path(outcome)
        if path and not path.is_dir():
            raise CannotRunHere(f"{path}: missing, and only what was validated may be tested; restore the folder")
        return path


def copy_durably(source: str, target: str) -> None:
    """Copy a file to the disk itself: an event that names it will follow."""
    shutil.copyfile(source, target)
    with open(target, "rb") as copy:
        os.fsync(copy.fileno())
