"""One run: search, confirm, test, in a folder that identifies and records it."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from labcoat.bench import Bench, home
from labcoat.bench.outcome import Outcome
from labcoat.budget import Budget, LimitReached, Limits
from labcoat.driver import BASELINE, Driver, lost_for
from labcoat.errors import CannotRunHere, InputError
from labcoat.fork import shared
from labcoat.journal import Differs, Journal, Observer, Unrecorded
from labcoat.journal.lock import Lock
from labcoat.kept import Kept
from labcoat.lab import Trial
from labcoat.models.prices import Prices
from labcoat.models.queue import queued
from labcoat.packing import pack_code, pack_outcome, unpack_outcome
from labcoat.plan import Confirm, Plan
from labcoat.record import RECORD, compare_bench, compare_record, flat, read_record, write_record

Report = Callable[[str], None]


def silent(text: str) -> None:
    """Say nothing."""


def execute(
    plan: Plan, runs: Path, make_bench: Callable[[], Bench], observers: list[Observer], sandbox: str | None = None,
    report: Report = silent,
) -> Path:  # fmt: skip
    """Run ``plan`` to its end, or go on where it stopped; return its folder. A finished run returns at once.

    Args:
        plan: what to run.
        runs: folder of all runs.
        make_bench: called once there is something to run.
        observers: get each event as it is recorded.
        sandbox: the level that is asked for; a run of another level is refused.
        report: called with a line of text when a call waits for its endpoint.

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
            write_record(folder, plan.record(bench.facts(), prices))
            _record_limits(journal, plan.limits)
            live = replace(plan, models=queued(plan.models, lambda: home.folder("queues")))
            try:
                stages(make_driver(live, journal, bench, Kept(folder / "best"), prices, report), plan)
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
    for purpose, model in plan.models.spec.items():
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
            origin.write(folder, {purpose: plan.models.of(purpose).room(purpose) for purpose in plan.purposes})
            driver = make_driver(replace(plan, limits=Limits()), Journal(folder), bench, kept, verify=True)
            _replay(driver, plan)
            for leader in driver.leaders:
                _take_over(leader.trial, leader.outcome, kept, plan, bench)
            write_record(folder, plan.record(bench.facts(), prices))
        except BaseException:
            shutil.rmtree(folder)
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


def make_driver(
    plan: Plan, journal: Journal, bench: Bench, kept: Kept, prices: Prices | None = None, report: Report = silent,
    *, verify: bool = False,
) -> Driver:  # fmt: skip
    """What drives the search of a plan, begun in ``journal``."""
    task = plan.task
    journal.perform(
        "begin", "begin", {"task": task.hash},
        lambda: {
            "code": pack_code(task.baseline, journal.blobs),
            "rooms": {purpose: plan.models.of(purpose).room(purpose) for purpose in plan.purposes},
        },
    )  # fmt: skip
    taken, rooms = shared(journal)
    return Driver(
        task=task, strategy=plan.strategy, bench=bench, models=plan.models, journal=journal, kept=kept,
        budget=Budget(plan.limits), prices=prices or Prices({}), steps=plan.steps, seed=plan.seed,
        leaders=plan.confirm.best, rooms=rooms, shared=taken, report=report, verify=verify,
    )  # fmt: skip


def stages(driver: Driver, plan: Plan) -> None:
    """Search, confirm, test: everything of a run that the journal records as an effect."""
    bench, journal = driver.bench, driver.journal
    reason = driver.search(plan.params)
    request = {"reason": reason, "best": driver.best.key, "trials": len(driver.trials)}
    journal.perform("search", "search", request, lambda: None)
    chosen = confirm(driver, bench, journal, plan.confirm)
    test(driver, chosen, bench, journal, driver.kept)
    retest(driver, chosen, bench, journal, plan.retest)
    journal.perform("end", "end", {}, lambda: None)


def confirm(driver: Driver, bench: Bench, journal: Journal, how: Confirm) -> Trial:
    """Choose what is tested: the best candidate by its mean over further training seeds.

    The value that made a candidate one of the best is left out of its mean, as it was selected for being good. A
    candidate that fails on a seed is out; among equals the better one of the search; if no candidate is better than
    the baseline on the same seeds, the baseline is chosen. Without further seeds the best of the search is chosen.
    """
    metric = driver.task.metric
    candidates = [leader.trial for leader in driver.leaders] or [driver.brief.baseline]
    seeds = [driver.derive("confirm", number) % 2**31 for number in range(how.seeds)]

    def measured(rank: str, trial: Trial) -> float | None:
        """Mean over the seeds; None if a measurement is not valid."""
        values = []
        for number, seed in enumerate(seeds):
            outcome = measure(driver, bench, journal, f"confirm/{rank}/{number}", trial, seed)
            if not outcome.ok:
                return None
            values.append(outcome.metrics[metric.name].mean)
        return math.fsum(values) / len(values)

    chosen = candidates[0]
    if seeds:
        chosen, best = driver.brief.baseline, measured("baseline", driver.brief.baseline)
        for rank, trial in enumerate(candidates):
            value = measured(str(rank), trial) if trial is not driver.brief.baseline else None
            if value is not None and (best is None or metric.better(value, best)):
                chosen, best = trial, value
    request = {"candidates": [trial.key for trial in candidates], "seeds": seeds, "chosen": chosen.key}
    journal.perform("confirm", "confirm", request, lambda: None)
    return chosen


def measure(driver: Driver, bench: Bench, journal: Journal, key: str, trial: Trial, seed: int) -> Outcome:
    """One further validation of a trial's code, with another training seed."""

    def live() -> Any:
        if trial.key == BASELINE:
            return pack_outcome(bench.baseline(seed), journal.blobs)
        with bench.trial(trial.code, seed) as (outcome, _):
            return pack_outcome(outcome, journal.blobs)

    request = {"trial": trial.key, "code": trial.code.sha, "seed": seed}
    return unpack_outcome(journal.perform(key, "measure", request, live, lost=lost_for(seed, journal)), journal.blobs)


def test(driver: Driver, chosen: Trial, bench: Bench, journal: Journal, kept: Kept) -> None:
    """Measure the chosen code once on the hidden split, beside the baseline. A recorded score is final."""
    seed = driver.seed
    base_request = {"trial": BASELINE, "code": driver.task.baseline.sha, "seed": seed}
    baseline = journal.perform(
        "test/baseline", "test", base_request, lambda: pack_outcome(bench.baseline_test(seed), journal.blobs)
    )
    trial = journal.finished(chosen.key)
    assert trial is not None, "the chosen trial is recorded"
    validated = unpack_outcome(trial["result"], journal.blobs)

    def live() -> Any:
        if chosen.key == BASELINE:
            return baseline
        outcome = bench.test(kept.take(validated), chosen.code, seed)
        if outcome.artefact != validated.artefact:
            raise CannotRunHere(
                f"{kept.path(validated)}: was changed since it was validated; restore the folder and resume"
            )
        return pack_outcome(outcome, journal.blobs)

    journal.perform("test", "test", {"trial": chosen.key, "code": chosen.code.sha, "seed": seed}, live)
    kept.only([validated])


def retest(driver: Driver, chosen: Trial, bench: Bench, journal: Journal, times: int) -> None:
    """Train the chosen code again with other seeds, and measure each on the hidden split."""
    for number in range(times):
        seed = driver.derive("retest", number) % 2**31

        def live(seed: int = seed) -> Any:
            if chosen.key == BASELINE:
                return pack_outcome(bench.baseline_test(seed), journal.blobs)
            with bench.trial(chosen.code, seed) as (outcome, artefact):
                if outcome.metrics:
                    outcome = bench.test(artefact, chosen.code, seed)
                return pack_outcome(outcome, journal.blobs)

        request = {"trial": chosen.key, "code": chosen.code.sha, "seed": seed}
        journal.perform(f"test/again/{number}", "test", request, live, lost=lost_for(seed, journal))


def changed_since(plan: Plan, runs: Path) -> list[tuple[Path, list[str]]]:
    """Runs that the same command began, before the strategy or the task changed; with the fields that changed."""
    wanted = flat(plan.spec())
    found = []
    for record in sorted((runs / "single" / plan.task.id).glob(f"{plan.strategy.name}-*/{plan.seed}/run.json")):
        try:
            begun = flat((read_record(record.parent) or {"spec": {}})["spec"])
        except InputError:  # a broken neighbour is no reason not to run
            continue
        fields = [name for name in wanted if begun.get(name) != wanted[name]]
        if fields and set(fields) <= {"strategy.source", "task.hash", "task.version"}:
            found.append((record.parent, fields))
    return found


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
