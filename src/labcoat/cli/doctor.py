"""``labcoat doctor``: what holds on this machine, or what works of a model."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from labcoat.cli.output import JsonFlag, print_json, printable, say
from labcoat.cli.table import print_table


def doctor(
    model: Annotated[str | None, typer.Option(help="Examine this model instead, with one tiny call.")] = None,
    json: JsonFlag = False,
) -> None:
    """Try what holds on this machine, or what works of a model."""
    from labcoat.errors import CannotRunHere

    if not (_model(model, json) if model else _machine(json)):
        raise typer.Exit(CannotRunHere.exit_code)


def _model(name: str, json: bool) -> bool:
    """Whether a run can go on with the model of that name."""
    from labcoat.models import load
    from labcoat.models.examine import examine, works

    model = load(name)
    found = examine(model)
    if json:
        findings = [vars(finding) for finding in found]
        print_json({"model": model.name, "works": works(found), "findings": findings})
    else:
        print_table(["of the model", "state", "what was seen"], [[f.what, f.state, f.says] for f in found])
        print()
        say(f"{model.name} {'works' if works(found) else 'does not work'}")
    return works(found)


def _machine(json: bool) -> bool:
    """Whether labcoat can run here."""
    from labcoat.bench.doctor import examine

    found = examine(lambda text: say(text, sys.stderr, 2))
    if json:
        print_json(found.to_json())
    else:
        rows = [[row.what, row.state, f"{row.how}. Tried: {row.seen}"] for row in found.rows]
        print_table(["protection", "state", "by what, and what came of an attempt"], rows)
        remedies: dict[str, list[str]] = {}
        for row in found.rows:
            if row.remedy:
                remedies.setdefault(row.remedy, []).append(row.what)
        for remedy, names in remedies.items():
            print()
            print(printable(f"{', '.join(names)}: {remedy}"))  # not folded: it holds a command to copy
        print()
        can = f"cannot run here, it lacks: {', '.join(found.lacking)}" if found.lacking else "can run here"
        say(f"sandbox {found.sandbox}, labcoat {can} ({found.seconds:.1f} s)")
    return not found.lacking
