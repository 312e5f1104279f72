"""``labcoat task``: what is for those who write tasks."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from labcoat.cli.output import JsonFlag, print_json, print_line, program, say
from labcoat.cli.run import SandboxName
from labcoat.cli.table import print_table

if TYPE_CHECKING:
    from labcoat.new_task import Made

app = typer.Typer(no_args_is_help=True, help="Make a task of your own project, and check a task.")


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


@app.command()
def new(
    project: Annotated[Path, typer.Argument(metavar="PATH", help="Folder of your project. Nothing in it is changed.")],
    edit: Annotated[list[str], typer.Option(metavar="GLOB", help="Files that may be changed, such as 'src/*.py'.")],
    command: Annotated[str, typer.Option(help="What a trial runs: 'python train.py --seed {seed}'. No shell.")],
    metric: Annotated[str, typer.Option(metavar="NAME", help="Name of the number, as the command prints it.")],
    direction: Annotated[Literal["higher", "lower"], typer.Option(help="Which is better.")],
    test_command: Annotated[str, typer.Option(help="What measures the final result, after the command.")] = "",
    metric_file: Annotated[str, typer.Option(metavar="FILE.json", help="Read the number from this file.")] = "",
    data: Annotated[list[Path] | None, typer.Option(metavar="FOLDER", help="Mounted read-only, not copied.")] = None,
    python: Annotated[Path | None, typer.Option(metavar="PATH", help="The environment to run in.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that a command may take.")] = 600,
    memory_mb: Annotated[int, typer.Option(help="MiB of memory that it may use.")] = 4096,
    cpus: Annotated[int, typer.Option(help="Threads of numerical libraries.")] = 1,
    prompt: Annotated[str, typer.Option(metavar="TEXT|@FILE", help="What a model is told of the task.")] = "",
    id: Annotated[str, typer.Option(metavar="own/NAME", help="Default: the name of the folder.")] = "",
    title: Annotated[str, typer.Option(help="Default: the name of the folder.")] = "",
    to: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Default: ./NAME-task.")] = None,
    no_try: Annotated[bool, typer.Option("--no-try", help="Do not run the command once.")] = False,
) -> None:
    """Make a task of a project of your own. Its number is what the project's own code says: self-reported."""
    from labcoat.new_task import Wishes, attempt, make

    made = make(
        Wishes(
            project=project,
            edit=edit,
            command=command,
            metric=metric,
            direction=direction,
            test_command=test_command,
            metric_file=metric_file,
            data=data or [],
            python=python,
            timeout=timeout,
            memory_mb=memory_mb,
            cpus=cpus,
            prompt=prompt,
            id=id,
            title=title,
            to=to,
        )
    )  # fmt: skip
    _made(made)
    if not no_try:
        say("running the command once, as a trial will", sys.stderr, 2)
        print_line("number", attempt(made.task, lambda text: say(text, sys.stderr, 2)))
    for paragraph in MEANS:
        print()
        say(paragraph)
    print("\nNext:")
    folder = shlex.quote(str(made.task.folder))
    for line in (f"task check {folder}", f"run {folder} --steps 10"):
        print(f"  {program()} {line}")


def _made(made: Made) -> None:
    """What was made of what."""
    print_line("task", f"{made.task.folder}: {made.task.id}")
    print_line("taken", _some(list(made.snapshot.files)))
    for reason, paths in made.snapshot.by_reason.items():
        print_line("left out", f"{_some(paths)} ({reason})")
    print_line("environment", made.environment)


def _some(paths: list[str], most: int = 12) -> str:
    """The first of many paths, and how many more there are."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    shown = [path if path.isprintable() else ascii(path) for path in paths[:most]]
    return ", ".join(shown) + more


MEANS = (
    "Self-reported means: the number is what the project's own code says. A candidate can print anything, so a result "
    "is as honest as its code, and every table marks it. Leave the code that computes the number out of --edit, and "
    "read the winning change before you believe it.",
    "The sandbox holds all the same: a trial works on a copy of its own, without network, and sees no other file of "
    "yours than data and environment, which it cannot change.",
    "To have labcoat measure the number, let the code leave predictions, and write data.py and scorer.py: see "
    "docs/add-a-task.md.",
)
