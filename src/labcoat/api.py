"""The Python API: ``labcoat.run(...)`` does what ``labcoat run`` does, ``labcoat.open_run`` reads a run folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from labcoat.bench import Bench
from labcoat.bench.simulated import SimulatedBench
from labcoat.budget import Limits
from labcoat.errors import InputError
from labcoat.fork import Origin
from labcoat.history import History
from labcoat.journal import Observer
from labcoat.lab import Strategy
from labcoat.models import Models
from labcoat.models import prices as money
from labcoat.plan import Confirm, Plan
from labcoat.replaying import Verified
from labcoat.replaying import replay as verify
from labcoat.running import execute, unfinished_before
from labcoat.task import Task

Report = Callable[[str], None]


def run(
    *,
    task: str | Task,
    strategy: str | Strategy = "autoresearch",
    model: str | Models = "offline:mutate",
    steps: int = 100,
    seed: int = 0,
    params: dict[str, Any] | None = None,
    params_file: str | os.PathLike[str] | None = None,
    confirm: tuple[int, int] = (1, 0),
    retest: int = 0,
    runs: str | os.PathLike[str] = "runs",
    sandbox: Literal["bwrap", "none"] | None = None,
    limits: Limits | None = None,
    prices: Sequence[str] = (),
    fork: str | None = None,
    report: Report = lambda text: None,
    observers: list[Observer] | None = None,
) -> History:
    """Run a strategy on a task, or go on where that run stopped; a finished run returns at once.

    Args:
        task: id of a task, its folder, or a Task.
        strategy: name of a strategy, ``path/to/file.py:NAME``, either with ``@PRESET``, or a Strategy.
        model: a model, ``offline:mutate``, or one for each purpose, ``idea=A,edit=B``.
        steps: the budget: validation executions.
        seed: seed of the run: of the strategy's randomness, the offline model's, and the training.
        params: parameters of the strategy by name, over those of the file and of the preset.
        params_file: file of parameters, lines of TOML.
        confirm: (k, s): measure the best k candidates again on s further training seeds and choose by the mean.
        retest: further trainings of the chosen code that are tested beside the kept artefact.
        runs: folder of all runs.
        sandbox: ``bwrap``, ``none`` (marked in the result), or None for bwrap where it works.
        limits: further limits; not part of the run's identity.
        prices: prices given by hand, ``MODEL=IN,OUT`` in USD per million tokens.
        fork: ``RUN:STEP``: take over that run up to that step, and go live from there.
        report: called with a line of text when something takes time.
        observers: called with each event as it is recorded; one that fails is switched off.

    Returns:
        The finished run.

    Raises:
        LabcoatError: says what is wrong and what to do next; what was reached is kept.
    """
    plan = Plan.of(
        task=task, strategy=strategy, params=params, params_file=None if params_file is None else Path(params_file),
        model=model, steps=steps, seed=seed, confirm=Confirm(*confirm), retest=retest, limits=limits,
        given=money.given(prices), origin=origin_of(fork),
    )  # fmt: skip
    if earlier := unfinished_before(plan, Path(runs)):
        report(earlier)
    return History(execute(plan, Path(runs), lambda: make_bench(plan, sandbox, report), observers or [], sandbox))


def open_run(folder: str | os.PathLike[str]) -> History:
    """Read the run in ``folder`` (or the only one below it)."""
    return History.find(Path(folder))


def replay(run: History, *, task: str | None = None, strategy: str | Strategy | None = None) -> Verified:
    """Re-execute every decision of a run from its journal, and verify it; ``task`` and ``strategy`` if not shipped."""
    return verify(run, task, strategy)


def export_git(run: History, to: str | os.PathLike[str] | None = None) -> Path:
    """Write a run's search tree as a bare git repository, by default ``git`` in its folder; return where."""
    from labcoat.git_export import export

    return export(run, None if to is None else Path(to))


def origin_of(fork: str | None) -> Origin | None:
    """The run and the step that ``RUN:STEP`` names; None for None.

    Raises:
        InputError: it is not written so, or there is no such run or step.
    """
    if fork is None:
        return None
    run, _, name = fork.rpartition(":")
    if not (run and name):
        raise InputError(f"--fork {fork}: write it as RUN:STEP, the folder of a run and the last step to share")
    history = History.find(Path(run))
    step = history.step(name)
    return Origin.of(history.journal, history.record, step.number, step.key)


def make_bench(plan: Plan, sandbox: Literal["bwrap", "none"] | None, report: Report) -> Bench:
    """The bench that a plan's task needs.

    Raises:
        CannotRunHere: the sandbox does not work here, with the remedy.
    """
    if plan.task.manifest.simulation:
        return SimulatedBench(plan.task)
    from labcoat.bench.sandbox import choose, probe, required
    from labcoat.bench.self_reported import SelfReportedBench
    from labcoat.bench.worker import SandboxedBench

    if plan.task.manifest.integrity == "self-reported":
        return SelfReportedBench(plan.task, required(sandbox), report)
    # What a fork shares was written by the model of its origin.
    chosen = choose(sandbox, plan.models.constants_only and plan.origin is None)
    if chosen.level == "none" and sandbox is None:
        report(f"NO SANDBOX: {probe()}")
        report("going on without one only because this model can change nothing but constants; the result is marked")
    return SandboxedBench(plan.task, chosen, report)
