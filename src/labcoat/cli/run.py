"""``labcoat run``."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from labcoat.errors import InputError


class SandboxName(StrEnum):
    """Values of ``--sandbox``."""

    bwrap = "bwrap"
    none = "none"


def run(
    task: Annotated[str, typer.Argument(help="A task (`labcoat tasks` lists them) or the folder of one.")],
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME[@PRESET]",
            help="A strategy (`labcoat strategies` lists them) or path/to/file.py:NAME; @PRESET sets its parameters.",
        ),
    ] = "autoresearch",
    model: Annotated[str, typer.Option(help="A model, or one for each purpose: idea=A,edit=B.")] = "offline:mutate",
    steps: Annotated[int, typer.Option(help="How many trials the strategy may spend.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    param: Annotated[
        list[str] | None,
        typer.Option("-S", metavar="NAME=VALUE", help="A strategy's parameter, over --params and the preset."),
    ] = None,
    params: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The strategy's parameters, lines of TOML: NAME = VALUE.")
    ] = None,
    confirm: Annotated[
        str, typer.Option(metavar="K,S", help="Measure the best K again on S further seeds; choose by the mean.")
    ] = "1,0",
    retest: Annotated[int, typer.Option(help="Train the chosen code this often again, and test each.")] = 0,
    embedder: Annotated[
        str, typer.Option(help="Who gives vectors of code to a strategy that asks: tokens, graphcodebert[:mean].")
    ] = "tokens",
    runs: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    sandbox: Annotated[
        SandboxName | None,
        typer.Option(help="Default: bwrap, or refuse (unless the model can only change constants)."),
    ] = None,
    max_calls: Annotated[int | None, typer.Option(help="Stop before more model calls than this.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Stop once this many tokens are used.")] = None,
    max_usd: Annotated[float | None, typer.Option(help="Stop once this much money is spent.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Stop once calls and trials took this long.")] = None,
    price: Annotated[
        list[str] | None, typer.Option(metavar="MODEL=IN,OUT", help="What a model costs, in USD per million tokens.")
    ] = None,
    fork: Annotated[
        str | None, typer.Option(metavar="RUN:STEP", help="Take over a run up to that step; go live from there.")
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only say what tokens and money it would take.")] = False,
) -> None:
    """Run a strategy on a task. The same command again goes on where it stopped; a finished run exits at once."""
    from labcoat.api import origin_of
    from labcoat.budget import Limits
    from labcoat.models import prices
    from labcoat.plan import Confirm, Plan

    limits = Limits(calls=max_calls, tokens=max_tokens, usd=max_usd, seconds=max_seconds)
    plan = Plan.of(
        task=task, strategy=strategy, params=_params(param or []), params_file=params, model=model, steps=steps,
        seed=seed, confirm=Confirm.parse(confirm), retest=retest, limits=limits, given=prices.given(price or []),
        origin=origin_of(fork), embedder=embedder,
    )  # fmt: skip
    if estimate:
        print_estimate(plan)
        return
    run_plan(plan, runs, sandbox.value if sandbox else None)


def run_plan(plan: Any, runs: Path, sandbox: Any) -> Any:
    """Run with live progress; print where it lies and how it ended. Ctrl-C, SIGTERM and SIGHUP stop it cleanly."""
    from labcoat.api import make_bench
    from labcoat.cli.look import summary
    from labcoat.cli.progress import Progress
    from labcoat.history import History
    from labcoat.running import execute, is_finished, unfinished_before

    folder = plan.folder(runs)
    _tell(f"{plan.strategy.name} on {plan.task.id}, seed {plan.seed}: {folder}")
    if is_finished(folder):
        execute(plan, runs, lambda: make_bench(plan, sandbox, _tell), [], sandbox)
        _tell("already finished; nothing to do")
    else:
        with Progress(plan, folder) as progress:
            if progress.begun:
                progress.report(f"going on {progress.reached}")
            elif plan.origin:
                progress.report(f"going on {progress.reached} of {plan.origin.folder}")
            elif earlier := unfinished_before(plan, runs):
                progress.report(earlier)
            try:
                with ended_by_signals():
                    execute(plan, runs, lambda: make_bench(plan, sandbox, progress.report), [progress], sandbox)
            except KeyboardInterrupt:
                progress.report(f"stopped {progress.reached}; the same command goes on from here")
                raise typer.Exit(130) from None
    history = History(folder)
    summary(history)
    return history


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end what is inside as Ctrl-C does. Under `nohup` a hang-up is ignored, and stays so."""
    heard = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_estimate(plan: Any) -> None:
    """What a run would take, as a table."""
    from labcoat.budget import Spent
    from labcoat.cli.output import money, say
    from labcoat.cli.table import print_table
    from labcoat.estimating import GUESSES, estimate

    guesses = estimate(plan)
    models = plan.models.spec
    rows = []
    for purpose in [*plan.purposes, "all"]:
        for name, guessed in guesses.items():
            of = Spent.sum(guessed.values()) if purpose == "all" else guessed.get(purpose, Spent())
            rows.append([purpose, name, f"{of.calls:,}", f"{of.input:,}", f"{of.output:,}", money(of.usd)])
    say(f"{plan.strategy.name} on {plan.task.id}, {plan.steps} steps: an estimate; nothing was spent")
    for purpose in plan.purposes:
        say(f"{purpose}: {models.get(purpose, models.get('*', ''))}", indent=2)
    print()
    print_table(["purpose", "estimate", "calls", "tokens in", "tokens out", "USD"], rows)
    print()
    say("All suppose that every trial is valid and none is better than the baseline. Assumed are")
    for name, guess in GUESSES.items():
        files = " and the editable files" if guess.whole_files else ""
        thought = f", {guess.reasoning:,} tokens of reasoning before each" if guess.reasoning else ""
        say(
            f"  {name}: {guess.bytes_per_token:g} bytes a token, {guess.answer:,} tokens for an answer, {guess.edit:,}"
            f"{files} for an edit{thought}",
            indent=4,
        )
    say("No part of a prompt is taken as cached. Trials take time, which is not estimated.")


def _tell(text: str) -> None:
    from labcoat.cli.output import say

    with contextlib.suppress(BrokenPipeError):  # `labcoat run ... 2>&1 | head`: nobody listens; the run goes on
        say(text, sys.stderr, 2)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _params(given: list[str]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"-S {text}: write it as NAME=VALUE")
        try:
            named[name.strip()] = json.loads(value) if value.startswith("[") else value
        except ValueError:
            raise InputError(f"-S {text}: write a list as [1, 2, 3]") from None
    return named
