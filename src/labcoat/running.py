"""One run in a folder that identifies and records it: begun, forked, gone on with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from labcoat.bench import Bench, home
from labcoat.bench.outcome import Outcome
from labcoat.budget import LimitReached, Limits
from labcoat.driver import Driver
from labcoat.errors import CannotRunHere, InputError
from labcoat.journal import Differs, Journal, Observer, Unrecorded
from labcoat.journal.lock import Lock
from labcoat.kept import Kept
from labcoat.lab import Trial
from labcoat.models.prices import Prices, plain
from labcoat.models.queue import queued
from labcoat.plan import Plan
from labcoat.record import RECORD, compare_bench, compare_record, flat, read_record, write_record
from labcoat.stages import make_driver, stages

CHANGING = ("strategy.source", "task.hash", "task.version")
"""Fields of a spec that change though the command stays the same."""


def execute(
    plan: Plan, runs: Path, make_bench: Callable[[], Bench], observers: list[Observer], sandbox: str | None = None
) -> Path:
    """Run ``plan`` to its end, or go on where it stopped; return its folder. A finished run returns at once.

    Args:
        plan: what to run.
        runs: folder of all runs.
        make_bench: called once there is something to run.
        observers: get each event as it is recorded.
        sandbox: the level that is asked for; a run of another level is refused.

    Raises:
        LabcoatError: with what to do next; whatever was reached is kept and the same call resumes.
    """
    folder = plan.folder(runs)
    compare_record(folder, plan.spec(), sandbox)
    if is_finished(folder):
        return folder
    prices = pinned(plan, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRunHere(f"{folder}: cannot be made: {error.strerror}; choose another place with --runs") from None
    bench = make_bench()
    try:
        forked = plan.origin is not None and not (folder / RECORD).exists()
        if forked:
            bench.prepare()
            begin_fork(plan, folder, bench, prices)
        with Journal(folder, write=True, observers=observers) as journal:
            compare_record(folder, plan.spec(), sandbox)
            if not forked:
                bench.prepare()
            # A simulated run costs less than the disk's word that it is written.
            durable = plan.task.manifest.simulation is None
            write_record(folder, plan.record(bench.facts(), prices), durable=durable)
            _record_limits(journal, plan.limits)
            live = replace(plan, models=queued(plan.models, lambda: home.folder("queues")))
            try:
                stages(make_driver(live, journal, bench, Kept(folder / "best"), prices), plan)
            except LimitReached as reached:
                journal.note("limit", {"name": reached.name, "limit": reached.limit})
                raise
    finally:
        bench.close()
    return folder


def pinned(plan: Plan, folder: Path) -> Prices:
    """The prices that the run in ``folder`` began with, or begins with now.

    Raises:
        InputError: money is limited and a price is unknown, or a price is given that the run did not begin with.
    """
    record = read_record(folder)
    begun = record["prices"] if record else None
    prices = plan.prices() if begun is None else Prices.from_json(begun)
    for purpose, name in plan.models.spec.items():
        model = plain(name)
        price, given = prices.of(purpose), plan.given.get(model)
        if given and (price is None or price.rates != given.rates):
            raise InputError(
                f"{folder / RECORD}: prices.{purpose}: --price {model}: a run keeps the prices that it began with; "
                "leave the option out, or begin anew elsewhere with --runs"
            )
        if price is None and plan.limits.usd is not None:
            raise InputError(
                f"--max-usd: the price of {model} is unknown, so money cannot be limited; "
                + (
                    f"give it with --price {model}=IN,OUT (USD per million tokens), or limit --max-tokens instead"
                    if begun is None
                    else f"this run began without one ({folder / RECORD}): limit --max-tokens instead"
                )
            )
    return prices


def begin_fork(plan: Plan, folder: Path, bench: Bench, prices: Prices) -> None:
    """Begin ``folder`` with what it shares with its origin: whole, or there is no run.

    The record is written last: a folder without one is no run and is begun afresh.

    Raises:
        InputError: what is asked for cannot share that part, with what differs.
    """
    origin = plan.origin
    assert origin is not None
    with Lock(folder / "lock"):
        if (folder / RECORD).exists():  # another process was quicker
            return
        try:
            compare_bench(origin.folder / RECORD, origin.record, bench.facts())
            kept = Kept(folder / "best")
            shutil.rmtree(kept.folder, ignore_errors=True)  # of a process that was killed here
            origin.write(folder, plan.rooms())
            with Journal(folder) as journal:
                driver = make_driver(replace(plan, limits=Limits()), journal, bench, kept, verify=True)
                _replay(driver, plan)
            for leader in driver.leaders:
                _take_over(leader.trial, leader.outcome, kept, plan, bench)
            write_record(folder, plan.record(bench.facts(), prices))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _replay(driver: Driver, plan: Plan) -> None:
    """Drive the strategy through the shared part of a fork, to where it would go live."""
    assert plan.origin is not None
    try:
        driver.search(plan.params)
    except Unrecorded:
        pass
    except Differs as differs:
        raise InputError(
            f"{plan.origin.name}: what it shares is not what this strategy asks for with these parameters and steps, "
            f"from {differs.key} on; fork at a step before that, or begin a run of its own\n{differs.changes}"
        ) from None
    left = sorted(driver.shared.keys() - driver.journal.performed)
    if left:
        raise InputError(
            f"{plan.origin.name}: with these parameters and steps this strategy never asks for {left[0]}, which it "
            "shares; fork at a step before that, or give it more --steps"
        )


def _take_over(trial: Trial, outcome: Outcome, kept: Kept, plan: Plan, bench: Bench) -> None:
    """Keep the artefact of a shared trial, as the test may need it; made again where the origin kept a better one."""
    assert plan.origin is not None
    theirs = Kept(plan.origin.folder / "best").path(outcome)
    if theirs is None or theirs.is_dir():
        kept.store(outcome, theirs)
        return
    with bench.trial(trial.code, outcome.seed) as (again, artefact):
        if again.artefact != outcome.artefact:
            raise CannotRunHere(
                f"{plan.origin.name}: the artefact of trial {trial.key} is not kept any more, and training its code "
                "again gives another one; fork at a step where another trial is the best"
            )
        kept.store(outcome, artefact)


def changed_since(plan: Plan, runs: Path) -> list[tuple[Path, list[str]]]:
    """Runs that the same command began, before strategy, task or the models' parameters changed; with what changed."""
    wanted = flat(plan.spec())
    found = []
    for record in sorted((runs / "single" / plan.task.id).glob(f"{plan.strategy.name}-*/{plan.seed}/run.json")):
        try:
            begun = flat((read_record(record.parent) or {"spec": {}})["spec"])
        except InputError:  # a broken neighbour is no reason not to run
            continue
        fields = [name for name in {**wanted, **begun} if begun.get(name) != wanted.get(name)]
        if fields and all(name in CHANGING or _same_model(begun.get(name), wanted.get(name)) for name in fields):
            found.append((record.parent, fields))
    return found


def _same_model(begun: Any, wanted: Any) -> bool:
    """Whether the command line names them alike: their parameters are those of labcoat.toml."""
    return isinstance(begun, str) and isinstance(wanted, str) and plain(begun) == plain(wanted)


def unfinished_before(plan: Plan, runs: Path) -> str:
    """A sentence about the last run that was begun like this one and not finished before something changed.

    Nothing where this run has begun itself, or where there is none.
    """
    if (plan.folder(runs) / RECORD).exists():
        return ""
    try:
        left = [(other, fields) for other, fields in changed_since(plan, runs) if not is_finished(other)]
    except InputError:  # what is wrong with another run is no concern of this one
        return ""
    if not left:
        return ""
    other, fields = max(left, key=lambda found: found[0].stat().st_mtime)
    return f"note: a new run, as {' and '.join(fields)} changed since the same command began {other}"


def is_finished(folder: Path) -> bool:
    """Whether the run came to its end."""
    return (folder / "events.jsonl").exists() and Journal(folder).finished("end") is not None


def _record_limits(journal: Journal, limits: Limits) -> None:
    notes = [e["result"] for e in journal.events if e["kind"] == "limits"]
    if (notes[-1] if notes else {}) != limits.to_json():
        journal.note("limits", limits.to_json())
