"""``labcoat show``, ``labcoat diff`` and ``labcoat log``: what a run did."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import typer

from labcoat.cli.output import (
    JsonFlag,
    money,
    number,
    print_json,
    print_line,
    print_tree,
    printable,
    say,
    short,
)
from labcoat.cli.table import print_table

if TYPE_CHECKING:
    from labcoat.bench.outcome import Outcome
    from labcoat.budget import Spent
    from labcoat.history import History, Step
    from labcoat.manifest import Manifest

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or one with a single run below it.")]
STEP_HELP = "Number of a step, `best` or `baseline` (0)."


def show(run: Run, json: JsonFlag = False) -> None:
    """Show a run: trials, tree, best, test, failures. The level of the sandbox, too, and what was spent."""
    from labcoat.history import History

    history = History.find(run)
    if json:
        print_json(history.to_json())
        return
    spec = history.spec
    models = ", ".join(f"{name}" if purpose == "*" else f"{purpose}={name}" for purpose, name in spec["models"].items())
    say(f"{history.manifest.id}, {spec['strategy']['name']}, {models}, seed {spec['seed']}: {history.status}")
    if history.steps:
        say(history.manifest.headline)
        print()
        _print_steps(history)
        print()
        if history.ledger.total.tokens:
            _print_spent(history)
    summary(history)


def _print_steps(history: History) -> None:
    """The steps as a table, and as a tree."""
    best = history.best
    rows = [
        [
            f"{step.number} *" if step is best else str(step.number),
            "-" if step.parent is None else str(step.parent),
            step.outcome.status,
            short(step.value(history.metric.name)),
            f"{step.seconds:.2f}",
            _what(step, history.manifest),
        ]
        for step in history.steps
    ]
    print_table(["step", "parent", "status", "value", "seconds", "what"], rows, cut=True)
    if best is not None:
        say("* best valid step; the first among equals")
    print()
    labels = {
        step.number: f"{step.number or 'baseline'}  "
        + (short(step.value(history.metric.name)) if step.outcome.ok else step.outcome.status)
        + (" *" if step is best else "")
        for step in history.steps
    }
    print_tree(labels, {step.number: step.parent for step in history.steps})


def _print_spent(history: History) -> None:
    """What calls took, by purpose and by step. The models of the purposes are in the heading."""
    ledger = history.ledger
    of = ledger.by_purpose.values()
    rows = [
        ["calls", *(f"{spent.calls:,}" for spent in of)],
        ["tokens in, not cached", *(f"{spent.input_uncached:,}" for spent in of)],
        ["read from a cache", *(f"{spent.cache_read:,}" for spent in of)],
        ["written to a cache", *(f"{spent.cache_write:,}" for spent in of)],
        ["tokens out", *(f"{spent.output:,}" for spent in of)],
        ["of which reasoning", *(f"{spent.of_which_reasoning:,}" for spent in of)],
        ["USD", *(money(spent.usd) for spent in of)],
        ["seconds", *(f"{spent.seconds:.2f}" for spent in of)],
    ]
    print_table(["spent", *ledger.by_purpose], rows)
    print()
    rows = [
        [
            "other" if step is None else str(step), str(spent.calls), f"{spent.input:,}", f"{spent.output:,}",
            money(spent.usd), f"{spent.seconds:.2f}",
        ]
        for step, spent in ledger.by_step.items()
    ]  # fmt: skip
    print_table(["step", "calls", "tokens in", "tokens out", "USD", "seconds"], rows)
    print()


def summary(history: History) -> None:
    """How the run stands: best, test, failures, money, sandbox, folder."""
    metric = history.metric
    statuses = Counter(step.outcome.status for step in history.trials)
    counted = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    print_line("trials", f"{len(history.trials)} of {history.spec['steps']}: {counted or 'none yet'}")
    if failed := _baseline_failure(history):
        print_line("baseline", f"fails here ({failed[0]}), so nothing can be compared with it:")
        print(printable(failed[1]))
    if history.baseline and history.best:
        base, best = history.baseline.value(metric.name), history.best.value(metric.name)
        what = "the baseline, nothing beat it" if history.best.number == 0 else f"step {history.best.number}"
        print_line(
            "validation",
            f"{history.manifest.headline}: baseline {number(base)}, best {number(best)} ({what})",
        )
    for step, outcomes in history.confirmed():
        what = "baseline" if step.number == 0 else f"step {step.number}"
        mean = f"mean {number(_mean_of(outcomes, metric.name))} of " if all(o.ok for o in outcomes) else ""
        print_line("confirm", f"{what}: {mean}{_list(outcomes, metric.name)}")
    test, base_test = history.test_outcome(), history.test_outcome("test/baseline")
    if test and base_test and history.chosen:
        what = "the baseline" if history.chosen.number == 0 else f"step {history.chosen.number}"
        print_line(
            "test",
            f"{metric.name}: baseline {number(base_test.mean(metric.name))}, "
            f"{what} {number(test.mean(metric.name))} ({test.status})" + _how_tested(history.manifest),
        )
        if not test.ok:
            print(printable(test.error))
        if again := history.tested_again():
            print_line("test again", f"{what}: {_list(again, metric.name)}")
    print_line("spent", _spent(history.ledger.total))
    if history.origin:
        shared = f"steps 0 to {history.origin['step']} with {history.origin['folder']}, which spent"
        print_line("shared", f"{shared} {_spent(history.ledger.shared)} on them")
    print_line("sandbox", history.sandbox)
    for warning in history.warnings:
        print_line("warning", warning)
    print_line("run", str(history.folder))


def _how_tested(manifest: Manifest) -> str:
    """What is not plain about a test score."""
    if manifest.integrity == "scored":
        return ""
    return ", self-reported" + ("" if manifest.has_test else "; no test command: measured again")


def _spent(spent: Spent) -> str:
    price = "USD unknown" if spent.usd is None else money(spent.usd)
    return f"{spent.calls} model calls, {spent.tokens:,} tokens, {price}, {spent.seconds:.1f} s"


def _baseline_failure(history: History) -> tuple[str, str] | None:
    """Status and error of a baseline that could not be measured."""
    if history.baseline:
        failed = history.baseline.outcome
        return None if failed.ok else (failed.status, failed.error)
    notes = [event["result"] for event in history.journal.events if event["kind"] == "baseline_failed"]
    return (notes[-1]["status"], notes[-1]["error"]) if notes else None


def _mean_of(outcomes: list[Outcome], metric: str) -> float:
    return fmean(outcome.metrics[metric].mean for outcome in outcomes)


def _list(outcomes: list[Outcome], metric: str) -> str:
    shown = [f"{number(o.mean(metric))} (seed {o.seed}{'' if o.ok else ', ' + o.status})" for o in outcomes]
    return ", ".join(shown)


def diff(
    run: Run,
    step: Annotated[str, typer.Argument(help=STEP_HELP)],
    other: Annotated[str | None, typer.Argument(help="A second step; default: the parent of the first.")] = None,
) -> None:
    """Show what a step changed. Against its parent, or from the first step to the second."""
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
    """Show how a step came about: prompts, replies, output, errors."""
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
    said = " (self-reported)" if history.manifest.integrity == "self-reported" else ""
    for name, measure in outcome.metrics.items():
        print(f"{name} = {measure.mean:.6g}{said}")
    if outcome.error:
        print(printable(outcome.error))


def _head(text: str, rule: str = "=") -> None:
    print(printable(f"{rule * 4} {text} {rule * max(4, 74 - len(text))}"))


def _what(step: Step, manifest: Manifest) -> str:
    """What was tried; before it, where it failed, why."""
    if step.number == 0:
        return "baseline"
    idea = " ".join(str(step.facts.get("idea", "")).split())
    action = str(step.facts.get("action", ""))
    tried = f"{action}: {idea}" if action and idea else action or idea
    return "; ".join(part for part in (_reason(step.outcome, manifest), tried) if part)


def _reason(outcome: Outcome, manifest: Manifest) -> str:
    """Why a step is not valid, in a few words."""
    if outcome.status == "violation":
        enforced = {manifest.name_of(bound) for bound in manifest.constraint if bound.kind == "enforced"}
        missed = [(name, -slack) for name, slack in outcome.slack.items() if name in enforced and slack < 0]
        return "; ".join(f"misses {name} by {by:.2g}" for name, by in missed)
    first, *others = outcome.error.strip().splitlines() or [""]
    # A traceback ends with what happened; whatever else we say begins with it.
    return others[-1].strip() if others and first.endswith("ended with exit code 1") else first
