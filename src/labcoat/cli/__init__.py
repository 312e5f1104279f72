"""The command line: one file per command group, no logic.

Exit codes: 0 done · 1 unforeseen · 2 bad input · 3 cannot run on this machine · 4 another process works on the run ·
5 stopped before the end, resumable · 6 replay differs, or a check is broken · 7 the strategy failed ·
130 interrupted, resumable.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import sys
from typing import Annotated, TextIO

import typer

from labcoat import __version__
from labcoat.cli import demo, doctor, lists, look, paper, rerun, run, score, sim, strategy, task
from labcoat.cli.output import say
from labcoat.errors import CannotRunHere, LabcoatError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Controlled experiments on AI research agents.",
)

REFUSED = {  # what a file system says of a path that cannot be used; anything else is a defect of ours
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOSPC,
    errno.EDQUOT,
}  # fmt: skip


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
    run.run, demo.demo, sim.sim, score.score, look.show, look.diff, look.log, rerun.replay, rerun.git, lists.tasks,
    lists.strategies, doctor.doctor, paper.paper_check,
):  # fmt: skip
    app.command()(command)
app.add_typer(strategy.app, name="strategy")
app.add_typer(task.app, name="task")


def main() -> None:
    """Entry point: an error that a user can act on becomes one message and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an encoding without our characters gets their numbers
    code = _call()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # or Python would complain about it when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _call() -> str | int | None:
    try:
        app()
    except LabcoatError as error:
        return _complain(str(error), error.exit_code)
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        place = f"{error.filename}: " if error.filename else ""
        says = f"{place}{error.strerror}; choose another place, or put this right"
        return _complain(says, CannotRunHere.exit_code)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # the parser makes exit code 1 of it
            if not any(map(_has_no_reader, (sys.stdout, sys.stderr))):
                raise ended.__context__ from None
            return 0  # `labcoat show RUN | head`: the reader has what it wanted
        return ended.code
    return 0


def _complain(text: str, code: int) -> int:
    with contextlib.suppress(BrokenPipeError):
        for line in f"labcoat: {text}".splitlines():
            say(line, sys.stderr, len(line) - len(line.lstrip()) + 2)
    return code


def _has_no_reader(stream: TextIO) -> bool:
    """Whether ``stream`` is a pipe whose other end is closed."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(found & select.POLLERR for _, found in poll.poll(0))
