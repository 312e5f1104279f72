"""``labcoat show``, ``labcoat diff`` and ``labcoat log``: what a run did."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labcoat.cli.output import JsonFlag, console, number, print_json, print_table, printable

if TYPE_CHECKING:
    from labcoat.bench.outcome import Outcome
    from labcoat.history import History, Step

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or one with a single run below it.")]
STEP_HELP = "Number of a step, `best` or `baseline` (0)."


def show(run: Run, json: JsonFlag = False) -> None:
    """Show a run: its trials as a table and as a tree, best, test, failures, sandbox level."""
    from labcoat.history import History

    history = History.find(run)
    if json:
        print_json(history.to_json())
        return
    spec = history.spec
    models = ", ".join(f"{name}" if purpose == "*" else f"{purpose}={name}" for purpose, name in spec["models"].items())
    out = console()
    out.print(f"{history.manifest.id} · {spec['strategy']['name']} · {models} · seed {spec['seed']} · {history.status}")
    rows = [
        [
            str(step.number) + (" *" if step is history.best else ""),
            "-" if step.parent is None else str(step.parent),
            step.outcome.status,
            number(step.value(history.metric.name)),
            f"{step.seconds:.2f}",
            _what(step),
        ]
        for step in history.steps
    ]
    print_table(["step", "parent", "status", history.metric.name, "seconds", "what"], rows)
    out.print("* the best: strictly better than every step before it\n")
    _print_tree(history)
    summary(history)


def summary(history: History) -> None:
    """How the run stands: best, test, failures, money, sandbox, folder."""
    metric, out = history.metric, console()
    statuses = Counter(step.outcome.status for step in history.trials)
    counted = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    out.print(f"trials      {len(history.trials)} of {history.spec['steps']}: {counted or 'none yet'}")
    if history.baseline and history.best:
        base, best = history.baseline.value(metric.name), history.best.value(metric.name)
        what = "the baseline, nothing beat it" if history.best.number == 0 else f"step {history.best.number}"
        out.print(
            f"validation  {metric.name} ({metric.direction} is better): "
            f"baseline {number(base)}, best {number(best)} ({what})"
        )
    for step, outcomes in history.confirmed():
        what = "baseline" if step.number == 0 else f"step {step.number}"
        out.print(f"confirm     {what}: {_list(outcomes, metric.name)}", markup=False)
    test, base_test = history.test_outcome(), history.test_outcome("test/baseline")
    if test and base_test and history.chosen:
        what = "the baseline" if history.chosen.number == 0 else f"step {history.chosen.number}"
        out.print(
            f"test        {metric.name}: baseline {number(_mean(base_test, metric.name))}, "
            f"{what} {number(_mean(test, metric.name))} ({test.status})"
        )
        if not test.ok:
            out.print(printable(f"            {test.error}"), markup=False)
        if again := history.tested_again():
            out.print(f"test again  {what}: {_list(again, metric.name)}", markup=False)
    spent = history.spent()
    money = "unknown" if spent["usd"] is None else f"${spent['usd']:.4g}"
    out.print(f"spent       {spent['calls']} model calls, {spent['tokens']} tokens, {money}, {spent['seconds']:.1f} s")
    out.print(f"sandbox     {history.sandbox}")
    for warning in history.warnings:
        out.print(f"warning     {warning}", markup=False)
    out.print(f"run         {history.folder}", soft_wrap=True)


def _mean(outcome: Outcome, metric: str) -> float | None:
    return outcome.metrics[metric].mean if metric in outcome.metrics else None


def _list(outcomes: list[Outcome], metric: str) -> str:
    shown = [f"{number(_mean(o, metric))} (seed {o.seed}{'' if o.ok else ', ' + o.status})" for o in outcomes]
    return ", ".join(shown)


def diff(
    run: Run,
    step: Annotated[str, typer.Argument(help=STEP_HELP)],
    other: Annotated[str | None, typer.Argument(help="A second step; default: the parent of the first.")] = None,
) -> None:
    """Show what a step changed: against its parent, or from the first step to the second."""
    from labcoat.history import History
    from labcoat.tree import diff as code_diff

    history = History.find(run)
    first = history.step(step)
    if other is None:
        old, new = history.steps[first.parent or 0], first
    else:
        old, new = first, history.step(other)
    text = code_diff(history.code(old), history.code(new))
    print(printable(text) or f"steps {old.number} and {new.number} have the same code")


def log(run: Run, step: Annotated[str, typer.Argument(help=STEP_HELP)]) -> None:
    """Show how a step came about: prompts, replies, output of its processes, errors."""
    from labcoat.history import History

    history = History.find(run)
    chosen = history.step(step)
    blobs = history.journal.blobs
    for event in history.events_of(chosen):
        request, result = event["request"], event["result"]
        _head(f"{event['kind']} {event['key']}  {request.get('purpose', '')}  {event['seconds']:.3f} s")
        for name, path, sha in request.get("parts", []):
            _head(f"prompt: {name} {path}".rstrip(), "-")
            print(printable(blobs.text(sha)))
        if "reply" in result:
            _head(f"reply ({result['reply']['finish']})", "-")
            print(printable(blobs.text(result["reply"]["text"])))
        if result.get("reason"):
            _head("rejected", "-")
            print(printable(result["reason"]))
    outcome = chosen.outcome
    for execution in outcome.executions:
        ended = "ended by labcoat" if execution.exit is None else f"exit {execution.exit}"
        _head(f"{execution.phase}: {ended}, {execution.seconds:.2f} s: {' '.join(execution.argv)}", "-")
        for name, text in (("stdout", execution.stdout), ("stderr", execution.stderr)):
            if text:
                _head(name, ".")
                print(printable(text))
    _head(f"outcome: {outcome.status}", "-")
    for name, measure in outcome.metrics.items():
        print(f"{name} = {measure.mean:.6g}")
    if outcome.error:
        print(printable(outcome.error))


def _head(text: str, rule: str = "=") -> None:
    print(f"{rule * 4} {text} {rule * max(4, 90 - len(text))}")


def _what(step: Step) -> str:
    if step.number == 0:
        return "baseline"
    idea = " ".join(str(step.facts.get("idea", "")).split())
    action = str(step.facts.get("action", ""))
    text = f"{action}: {idea}" if idea else action
    if step.outcome.error:
        text = f"{step.outcome.error.strip().splitlines()[-1]} | {text}"
    return text if len(text) <= 110 else text[:107] + "..."


def _print_tree(history: History) -> None:
    from rich.text import Text
    from rich.tree import Tree

    nodes: dict[int, Tree] = {}
    for step in history.steps:
        mark = " *" if step is history.best else ""
        shown = number(step.value(history.metric.name)) if step.outcome.ok else step.outcome.status
        label = Text(f"{step.number or 'baseline'}  {shown}{mark}")
        parent = nodes.get(step.parent) if step.parent is not None else None
        nodes[step.number] = parent.add(label) if parent else Tree(label)
    if nodes:
        console().print(nodes[0])
