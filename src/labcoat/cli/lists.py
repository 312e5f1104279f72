"""``labcoat tasks`` and ``labcoat strategies``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from labcoat.cli.output import JsonFlag, print_json, say
from labcoat.cli.table import print_table
from labcoat.errors import InputError


def tasks(json: JsonFlag = False) -> None:
    """List the tasks."""
    from labcoat import catalog

    found = catalog.shipped()
    if json:
        print_json(
            [
                {
                    "id": task.id,
                    "title": task.manifest.title,
                    "domain": task.manifest.domain,
                    "suites": task.manifest.suites,
                    "version": task.manifest.version,
                    "metric": {"name": task.metric.name, "direction": task.metric.direction},
                    "simulated": task.manifest.simulation is not None,
                    "integrity": task.manifest.integrity,
                    "hash": task.hash,
                }
                for task in found
            ]
        )
        return
    rows = [[t.id, t.metric.name, t.metric.direction, f"{t.manifest.title} ({t.manifest.domain})"] for t in found]
    print_table(["task", "metric", "better", "what it is"], rows)


def strategies(
    json: JsonFlag = False,
    parameters: Annotated[bool, typer.Option("--parameters", help="Also list the parameters.")] = False,
) -> None:
    """List the strategies, installed ones too."""
    from labcoat import strategies as package

    found = []
    for name in package.names() + package.plugins():
        try:
            found.append(package.find(name))
        except InputError as error:  # a plug-in that fails takes nothing but itself away
            say(f"labcoat: {error}", sys.stderr)
    if json:
        print_json([{"name": s.name, "summary": s.summary, "parameters": s.parameters()} for s in found])
        return
    print_table(["strategy", "what it does"], [[s.name, s.summary] for s in found])
    if parameters:
        rows = [
            [s.name, name, str(parameter["default"]), parameter["description"] or ""]
            for s in found
            for name, parameter in s.parameters().items()
        ]
        print()
        print_table(["strategy", "parameter", "default", "meaning"], rows)
