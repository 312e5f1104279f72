"""``labcoat task``: what is for those who write tasks."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from labcoat.cli.output import JsonFlag, print_json, print_table, say
from labcoat.cli.run import SandboxName

app = typer.Typer(no_args_is_help=True, help="Check a task.")


@app.callback()
def _main() -> None:
    pass  # or typer would make `check` the whole command


@app.command()
def check(
    task: Annotated[str, typer.Argument(help="A task (`labcoat tasks` lists them) or the folder of one.")],
    sandbox: Annotated[SandboxName | None, typer.Option(help="Default: bwrap, or refuse.")] = None,
    json: JsonFlag = False,
) -> None:
    """Try every adversary and the task's trivial solutions on a task. Exit code 6 if one gets what it must not."""
    from labcoat import catalog
    from labcoat.checking import check as try_all
    from labcoat.errors import Diverged

    checked = try_all(catalog.find(task), sandbox.value if sandbox else None, lambda text: say(text, sys.stderr, 2))
    if json:
        print_json(checked.to_json())
    else:
        rows = [[row.adversary, row.kind, row.expected, row.verdict, row.found] for row in checked.rows]
        if rows:
            print_table(["adversary", "class", "expected", "verdict", "found"], rows)
            print()
        counts = [(verdict, sum(row.verdict == verdict for row in checked.rows)) for verdict in VERDICTS]
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts if count) or "nothing to try"
        say(f"{checked.task}, sandbox {checked.sandbox}: {said} ({checked.seconds:.0f} s)")
        if checked.note:
            say(checked.note)
    if not checked.holds:
        raise typer.Exit(Diverged.exit_code)


VERDICTS = ("holds", "broken", "not run")
