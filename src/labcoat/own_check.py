"""The check of a self-reported task: does its command give a number, the same one again, and does the sandbox hold.

What holds is looked at from inside: our own program runs in place of the project's command, with all that it meets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from labcoat.bench import self_reported
from labcoat.bench.command import Command
from labcoat.bench.home import Report
from labcoat.bench.outcome import Outcome, error_text
from labcoat.bench.sandbox import Sandbox
from labcoat.bench.self_reported import SelfReportedBench
from labcoat.errors import CannotRunHere, InputError
from labcoat.task import Task

PROGRAM = Path(self_reported.__file__).with_name("look_around.py")
SEED = 0
LOOKS = {
    "files": "Looks for files of the project that were left out, and for those in your home folder.",
    "variables": "Looks for variables of yours, such as keys.",
    "network": "Looks for a network, and for a way out.",
    "read-only": "Writes to data and environment.",
    "leftovers": "Looks for what it left in an earlier trial: in the workspace, /tmp, /dev/shm, HOME.",
}


class Finding(NamedTuple):
    """What one look gave."""

    name: str
    attempts: str
    expected: str
    found: str
    holds: bool


def look_around(task: Task, sandbox: Sandbox, report: Report) -> Iterator[Finding]:
    """Run the project's command twice, then look around twice.

    Raises:
        InputError: the command gives no number.
        CannotRunHere: its environment cannot run a program of ours.
    """
    with SelfReportedBench(task, sandbox, report) as bench:
        bench.prepare()
        values = []
        for again in ("once", "again"):
            report(f"running the command {again}")
            with bench.trial(task.baseline, SEED) as (outcome, _):
                values.append(number(task, outcome))
        shown = f"{task.metric.line(values[0])}, {outcome.seconds:.1f} s"
        yield Finding("number", "Runs the command as it is.", "a number", shown, True)
        differs = f"{values[1]:.6g}: differences of {abs(values[1] - values[0]):.2g} are noise"
        said = "the same" if values[0] == values[1] else differs
        yield Finding("number again", "Runs it again with the same seed.", "a number", said, True)
        report("looking around from inside")
        seen = [*seen_inside(task, bench), *seen_inside(task, bench)]
        for name, attempts in LOOKS.items():
            what = list(dict.fromkeys(path for of, path in seen if of == name))
            yield Finding(name, attempts, "nothing", f"found {', '.join(what[:5])}" if what else "", not what)


def number(task: Task, outcome: Outcome) -> float:
    """The metric of the unchanged project."""
    if not outcome.ok:
        raise InputError(f"{task.folder}: the unchanged project gives no valid number\n{error_text(outcome)}")
    return outcome.metrics[task.metric.name].mean


def seen_inside(task: Task, bench: SelfReportedBench) -> list[tuple[str, str]]:
    """What our program finds that runs as a trial does: which look, and what.

    Raises:
        CannotRunHere: it did not come to its end.
    """
    with bench.aside() as command:
        argv = [*command.argv, "-I", "-c", PROGRAM.read_text(), json.dumps(setup(task, command))]
        done = bench.sandbox.run(replace(command, argv=argv))
    found = [(name, what) for name, what in map(json.loads, done.stdout.splitlines())]
    if done.exit or not found or found[-1][0] != "done":
        raise CannotRunHere(f"{task.folder}: a program of ours did not run in this environment: {done.stderr}")
    return found


def setup(task: Task, command: Command) -> dict[str, Any]:
    """What is the user's, for the program that looks for it. It tells where, and not what is there."""
    place, home = task.manifest.files.place or self_reported.WORKSPACE, os.path.expanduser("~")
    binds = [bind for bind in [*command.program, *command.binds] if not bind.writable]
    tops = {path.split("/")[0] for path in task.baseline}
    shown = [Path(bind.inside) for bind in binds]
    own = [Path(place, name) for name in names(place) if name not in tops]
    around = [path for path in (Path(home, name) for name in names(home)) if not Path(place).is_relative_to(path)]
    return {
        "hidden": [
            str(path)
            for path in [*own, *around]
            if not any(other.is_relative_to(path) or path.is_relative_to(other) for other in shown)
        ],
        "variables": list(command.env),
        "read_only": [bind.inside for bind in binds],
        "place": place,
    }


def names(folder: str) -> list[str]:
    """What lies in a folder of the user's."""
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
