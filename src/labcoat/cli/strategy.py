"""``labcoat strategy``: one strategy, explained."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labcoat.cli.output import JsonFlag, print_json, print_table, printable

app = typer.Typer(no_args_is_help=True, help="Explain a strategy.")


@app.callback()
def _main() -> None:
    pass  # or typer would make `show` the whole command


@app.command()
def show(
    strategy: Annotated[str, typer.Argument(help="A strategy (`labcoat strategies` lists them) or file.py:NAME.")],
    json: JsonFlag = False,
) -> None:
    """What it does, its parameters and presets, its prompts."""
    from labcoat import strategies

    found, _ = strategies.named(strategy)
    parameters, presets = found.parameters(), [*found.presets]
    if json:
        print_json(
            {
                "name": found.name,
                "summary": found.summary,
                "description": found.description,
                "file": str(found.path),
                "purposes": list(found.purposes),
                "presets": presets,
                "parameters": parameters,
                "prompts": found.prompts(),
            }
        )
        return
    print(f"{found.name}\n\n{printable(found.description)}\n")
    if parameters:
        rows = [
            [name, _said(p["default"]), *(_said(p["presets"][preset]) for preset in presets), p["description"] or ""]
            for name, p in parameters.items()
        ]
        print_table(["parameter", "default", *(f"@{preset}" for preset in presets), "meaning"], rows)
    else:
        print("It has no parameters.")
    print(f"\nA model is asked for: {', '.join([*found.purposes, 'edit'])}")
    print(f"Source: {', '.join(str(found.path.with_name(name)) for name in found.source() if name.endswith('.py'))}")
    for name, text in found.prompts().items():
        print(f"\n--- {name}\n{printable(text.strip())}")


def _said(value: Any) -> str:
    """A value as it is typed after ``-S NAME=``."""
    from json import dumps

    return value if isinstance(value, str) else dumps(value)
