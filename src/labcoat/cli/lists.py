"""``labcoat tasks`` and ``labcoat strategies``."""

from __future__ import annotations

from typing import Annotated

import typer

from labcoat.cli.output import JsonFlag, print_json, print_table


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
    """List the strategies."""
    from labcoat import strategies as package

    found = [package.find(name) for name in package.names()]
    if json:
        print_json(
            [
                {
                    "name": strategy.name,
                    "summary": strategy.summary,
                    "parameters": {
                        name: {"default": field.default, "description": field.description}
                        for name, field in strategy.params.model_fields.items()
                    },
                }
                for strategy in found
            ]
        )
        return
    print_table(["strategy", "what it does"], [[s.name, s.summary] for s in found])
    if parameters:
        rows = [
            [s.name, name, str(field.default), field.description or ""]
            for s in found
            for name, field in s.params.model_fields.items()
        ]
        print()
        print_table(["strategy", "parameter", "default", "meaning"], rows)
