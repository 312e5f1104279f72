"""The stages of a run: search, confirm, test. Everything that its journal records as an effect."""

from __future__ import annotations

import math
from typing import Any

from labcoat.bench import Bench
from labcoat.bench.outcome import Outcome
from labcoat.budget import Budget
from labcoat.driver import BASELINE, Driver, lost_for
from labcoat.errors import CannotRunHere
from labcoat.fork import shared
from labcoat.journal import Journal
from labcoat.kept import Kept
from labcoat.lab import Trial
from labcoat.models.prices import Prices
from labcoat.packing import pack_code, pack_outcome, unpack_outcome
from labcoat.plan import Confirm, Plan


def make_driver(
    plan: Plan, journal: Journal, bench: Bench, kept: Kept, prices: Prices | None = None, *, verify: bool = False
) -> Driver:
    """What drives the search of a plan, begun in ``journal``."""
    task = plan.task
    journal.perform(
        "begin", "begin", {"task": task.hash},
        lambda: {"code": pack_code(task.baseline, journal.blobs), "rooms": plan.rooms()},
    )  # fmt: skip
    taken, rooms = shared(journal)
    return Driver(
        task=task, strategy=plan.strategy, bench=bench, models=plan.models, journal=journal, kept=kept,
        budget=Budget(plan.limits), prices=prices or Prices({}), steps=plan.steps, seed=plan.seed,
        leaders=plan.confirm.best, rooms=rooms, shared=taken, verify=verify,
    )  # fmt: skip


def stages(driver: Driver, plan: Plan) -> None:
    """Search, confirm, test: everything of a run that the journal records as an effect."""
    bench, journal = driver.bench, driver.journal
    reason = driver.search(plan.params)
    request = {"reason": reason, "best": driver.best.key, "trials": driver.tried}
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
