"""``labcoat replay`` and ``labcoat git``: a run played again, and a run as a git repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labcoat.cli.look import Run


def replay(
    run: Run,
    task: Annotated[str | None, typer.Option(help="Folder of the task, if it is not a shipped one.")] = None,
    strategy: Annotated[str | None, typer.Option(help="The strategy as path/to/file.py:NAME, if it is in one.")] = None,
) -> None:
    """Re-execute and verify every decision of a run. Needs no model, no key and no sandbox."""
    from labcoat.history import History
    from labcoat.replaying import replay as verify

    history = History.find(run)
    verified = verify(history, task, strategy)
    print(f"{history.folder}: {verified.text}")


def git(
    run: Run, to: Annotated[Path | None, typer.Option(help="Folder of the new repository; default: RUN/git.")] = None
) -> None:
    """Write the search tree as a git repository. It is bare: a commit a trial, its parent the parent trial."""
    from labcoat.git_export import export
    from labcoat.history import History

    history = History.find(run)
    target = export(history, to)
    print(f"{target}: {len(history.steps)} commits; try: git --git-dir {target} log --graph --oneline --all")
