"""``labcoat demo``: the main job, small: a strategy beside the random control on real data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from labcoat.cli.output import printable, program, say, short
from labcoat.cli.table import print_table

TASK = "fml/fairlearn-adult"


def demo(
    steps: Annotated[int, typer.Option(help="Trials of each strategy.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of both runs.")] = 0,
    runs: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    task: Annotated[str, typer.Option(help="The task.")] = TASK,
) -> None:
    """A strategy beside the random control on real data, offline."""
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
        test = data["test"]
        rows.append(
            [
                data["strategy"],
                str(len(data["trials"])),
                str(sum(t["status"] == "ok" for t in data["trials"])),
                short(data["baseline"]["value"]),
                short(data["best"]["value"]),
                short(test["baseline"]["value"]),
                short(test["value"]) + ("" if test["status"] == "ok" else f" ({test['status']})"),
                data["sandbox"],
            ]
        )
    say(f"{histories[0].manifest.headline}, {task}")
    print()
    print_table(["strategy", "trials", "valid", "val base", "val best", "test base", "test", "sandbox"], rows)
    print()
    floor = histories[0].manifest.references.noise_floor
    noise = f" (differences below {floor:g} are noise here)" if floor else ""
    trials = f"{steps} trial" if steps == 1 else f"{steps} trials"
    say(f"One seed and {trials} decide nothing: compare strategies over several seeds and more steps{noise}.")
    print()
    winner = histories[0]
    for history in histories[1:]:
        if metric.better(history.best.value(metric.name), winner.best.value(metric.name)):
            winner = history
    if winner.best.number == 0:
        say("Nothing beat the baseline on validation, so the baseline itself was tested.")
    else:
        print(f"The winning code on validation: {winner.spec['strategy']['name']}, step {winner.best.number}\n")
        print(printable(diff(winner.code(winner.baseline), winner.code(winner.best))).rstrip())
    print("\nWhere everything lies:")
    for history in histories:
        print(f"  {history.folder}")
    print("\nNext:")
    for command in ("show", "log", "replay"):
        print(f"  {program()} {command} {winner.folder}{' best' if command == 'log' else ''}")
