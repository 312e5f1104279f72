"""``labcoat doctor``: what holds on this machine."""

from __future__ import annotations

import sys

import typer

from labcoat.cli.output import JsonFlag, print_json, print_table, printable, say


def doctor(json: JsonFlag = False) -> None:
    """Try what holds a candidate back on this machine."""
    from labcoat.bench.doctor import examine
    from labcoat.errors import CannotRunHere

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
    if found.lacking:
        raise typer.Exit(CannotRunHere.exit_code)
