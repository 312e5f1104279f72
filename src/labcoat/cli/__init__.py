"""The command line: one file per command group, no logic.

Exit codes: 0 done · 1 unforeseen · 2 bad input · 3 cannot run on this machine · 4 another process works on the run ·
5 stopped before the end, resumable · 6 replay differs · 7 the strategy failed · 130 interrupted, resumable.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from labcoat import __version__
from labcoat.cli import demo, lists, look, rerun, run
from labcoat.errors import LabcoatError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Controlled experiments on AI research agents.",
)


def _version(show: bool) -> None:
    if show:
        print(f"labcoat {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


for command in (
    run.run, demo.demo, look.show, look.diff, look.log, rerun.replay, rerun.git, lists.tasks, lists.strategies,
):  # fmt: skip
    app.command()(command)


def main() -> None:
    """Entry point: our own errors become one message and their exit code."""
    try:
        app()
    except LabcoatError as error:
        print(f"labcoat: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:  # `labcoat show RUN | head`
        sys.stderr.close()
        sys.exit(0)
