"""One run: search, confirm, test, in a folder that identifies and records it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labcoat.bench import Bench
from labcoat.bench.outcome import Outcome
from labcoat.budget import Budget, LimitReached, Limits
from labcoat.driver import BASELINE, Driver, lost_for
from labcoat.errors import CannotRunHere, InputError
from labcoat.journal import Journal, Observer
from labcoat.kept import Kept
from labcoat.lab import Trial
from labcoat.packing import pack_code, pack_outcome, unpack_outcome
from labcoat.plan import Confirm, Plan
from labcoat.record import RECORD, compare_record, flat, read_record, write_record


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRunHere(f"{folder}: cannot be made: {error.strerror}; choose another place with --runs") from None
    with Journal(folder, write=True, observers=observers) as journal:
        compare_record(folder, plan.spec(), sandbox)
        bench = make_bench()
        try:
            bench.prepare()
            # A simulated run costs less than the disk's word that it is written.
            durable = plan.task.manifest.simulation is None
            write_record(folder, plan.record() | {"bench": bench.facts()}, durable=durable)
            _record_limits(journal, plan.limits)
            try:
                stages(plan, journal, bench, Kept(folder / "best"))
            except LimitReached as reached:
                journal.note("limit", {"name": reached.name, "limit": reached.limit})
                raise
        finally:
            bench.close()
    return folder


def stages(plan: Plan, journal: Journal, bench: Bench, kept: Kept, *, verify: bool = False) -> None:
    """Search, confirm, test: everything of a run that the journal records as an effect."""
    task = plan.task
    purposes = ["edit", *plan.strategy.purposes]
    begun = journal.perform(
        "begin", "begin", {"task": task.hash},
        lambda: {
            "code": pack_code(task.baseline, journal.blobs),
            "rooms": {purpose: plan.models.of(purpose).room(purpose) for purpose in purposes},
        },
    )  # fmt: skip
    driver = Driver(
        task=task, strategy=plan.strategy, bench=bench, models=plan.models, journal=journal, kept=kept,
        budget=Budget(plan.limits), steps=plan.steps, seed=plan.seed, leaders=plan.confirm.best,
        rooms=begun.get("rooms", {}), verify=verify,
    )  # fmt: skip
    reason = driver.search(plan.params)
    request = {"reason": reason, "best": driver.best.key, "trials": driver.tried}
    journal.perform("search", "search", request, lambda: None)
    chosen = confirm(driver, bench, journal, plan.confirm)
    test(driver, chosen, bench, journal, kept)
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
