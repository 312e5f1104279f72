"""``labcoat demo``: the main job, small: a strategy beside the random control on real data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from labcoat.cli.output import number, print_table

TASK = "fml/fairlearn-adult"


def demo(
    steps: Annotated[int, typer.Option(help="Trials of each strategy.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of both runs.")] = 0,
    runs: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    task: Annotated[str, typer.Option(help="The task.")] = TASK,
) -> None:
    """Autoresearch beside the random control on the Adult fairness task, offline."""
    from labcoat.cli.run import run_plan
    from labcoat.plan import Plan
    from labcoat.tree import diff

    histories = []
    for strategy in ("random", "autoresearch"):
        plan = Plan.of(task=task, strategy=strategy, params=None, model="offline:mutate", steps=steps, seed=seed)
        histories.append(run_plan(plan, runs, None))
        print(file=sys.stderr)
    metric = histories[0].metric
    rows = []
    for history in histories:
        data = history.to_json()
        value = {"value": None}
        rows.append(
            [
                data["strategy"],
                str(len(data["trials"])),
                str(sum(t["status"] == "ok" for t in data["trials"])),
                number(data["baseline"]["value"]),
                number((data["best"] or value)["value"]),
                number(data["test"]["baseline"]["value"]),
                number(data["test"]["value"]),
                data["test"]["status"],
                data["sandbox"],
            ]
        )
    print(f"{metric.name} ({metric.direction} is better), {task}")
    head = [
        "strategy",
        "trials",
        "valid",
        "val baseline",
        "val best",
        "test baseline",
        "test",
        "test status",
        "sandbox",
    ]
    print_table(head, rows)
    print(
        "Ten trials decide nothing: compare strategies over several seeds and more steps "
        f"(differences below {histories[0].manifest.references.noise_floor:g} are noise here).\n"
    )
    winner = histories[0]
    for history in histories[1:]:
        ours, best = (h.best.value(metric.name) for h in (history, winner))
        if ours is not None and (best is None or metric.better(ours, best)):
            winner = history
    name = winner.spec["strategy"]["name"]
    print(f"The winning code on validation: {name}, step {winner.best.number}\n")
    print(diff(winner.code(winner.baseline), winner.code(winner.best)) or "the baseline itself: nothing beat it")
    print("\nWhere everything lies:")
    for history in histories:
        print(f"  {history.folder}")
    print("\nNext:")
    for command in ("show", "log", "replay"):
        print(f"  {sys.argv[0]} {command} {winner.folder}{' best' if command == 'log' else ''}")
