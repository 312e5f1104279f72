"""``labcoat strategy``: one strategy, explained."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labcoat.cli.output import JsonFlag, print_json, print_text, say

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
    print(f"{found.name}\n")
    print_text(found.description)
    print()
    for name, about in parameters.items():
        default = _said(about["default"])
        others = [f"@{preset}: {_said(value)}" for preset, value in about["presets"].items() if _said(value) != default]
        say(f"{name}={default}" + (f"  ({', '.join(others)})" if others else ""), indent=4)
        say(f"    {about['description'] or ''}", indent=4)
    if not parameters:
        print("It has no parameters.")
    print(f"\nA model is asked for: {', '.join([*found.purposes, 'edit'])}")
    files = [str(found.path.with_name(name)) for name in found.source() if name.endswith(".py")]
    say(f"Source: {', '.join(files)}", indent=2)
    for name, text in found.prompts().items():
        print(f"\n--- {name}")
        for line in text.strip().splitlines():
            say(line)


def _said(value: Any) -> str:
    """A value as it is typed after ``-S NAME=``."""
    from json import dumps

    return value if isinstance(value, str) else dumps(value)
