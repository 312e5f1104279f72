"""One run: search, confirm, test, in a folder that identifies and records it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from labcoat import catalog, editor, strategies
from labcoat.bench.outcome import Outcome
from labcoat.budget import Budget, LimitReached, Limits
from labcoat.driver import BASELINE, Bench, Driver
from labcoat.errors import CannotRunHere, InputError
from labcoat.journal import Journal, Observer, canonical
from labcoat.lab import Params, Strategy, Trial, source_hash
from labcoat.models import Models
from labcoat.packing import pack_code, pack_outcome, unpack_outcome
from labcoat.record import compare_record, flat, read_record, write_record
from labcoat.task import Task
from labcoat.tree import sha256

Report = Callable[[str], None]


class RunBench(Bench, Protocol):
    """A bench over the whole life of a run."""

    def prepare(self) -> None:
        """Make ready what is missing (environment, data)."""
        ...

    def facts(self) -> dict[str, Any]:
        """What ran where and what was enforced, for run.json."""
        ...

    def baseline_test(self, seed: int) -> Outcome:
        """Outcome of the untouched code on the hidden split."""
        ...

    def close(self) -> None:
        """End what is still open."""
        ...


@dataclass(frozen=True)
class Plan:
    """What identifies a run, with the parts that it names. Limits, sandbox and folder are not identity."""

    task: Task
    strategy: Strategy
    params: Params
    models: Models
    steps: int
    seed: int
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(
        cls, *, task: str | Task, strategy: str | Strategy, params: dict[str, Any] | None, model: str | Models,
        steps: int, seed: int, limits: Limits | None = None,
    ) -> Plan:  # fmt: skip
        """Look up and check everything that is named.

        Raises:
            InputError: naming what is unknown or out of range.
        """
        if steps < 1:
            raise InputError(f"--steps {steps}: a run has at least one step")
        if seed < 0:
            raise InputError(f"--seed {seed}: a seed is 0 or more")
        found = strategies.find(strategy) if isinstance(strategy, str) else strategy
        try:
            checked = found.params.model_validate(params or {})
        except ValidationError as error:
            lines = [f"  {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
            raise InputError(f"parameters of strategy {found.name}:\n" + "\n".join(lines)) from None
        return cls(
            catalog.find(task) if isinstance(task, str) else task,
            found,
            checked,
            Models.parse(model) if isinstance(model, str) else model,
            steps,
            seed,
            limits or Limits(),
        )

    def spec(self) -> dict[str, Any]:
        """The run's identity as plain data."""
        return {
            "task": {"id": self.task.id, "version": self.task.manifest.version, "hash": self.task.hash},
            "strategy": {
                "name": self.strategy.name,
                "params": self.params.model_dump(mode="json"),
                "source": source_hash(self.strategy.source()),
            },
            "models": self.models.spec,
            "steps": self.steps,
            "seed": self.seed,
        }

    def record(self) -> dict[str, Any]:
        """What run.json says beside the bench's facts: spec, manifest, sources."""
        source = self.strategy.source()
        return {
            "spec": self.spec(),
            "task": self.task.manifest.model_dump(mode="json"),
            "strategy_source": source,
            "prompts": {
                name: sha256(text.encode())
                for name, text in (source | {editor.TEMPLATE: editor.template()}).items()
                if name.endswith(".md")
            },
            "prices": None,
        }

    def folder(self, runs: Path) -> Path:
        """``runs/single/<task>/<strategy>-<hash of the spec without seed>/<seed>``."""
        spec = self.spec()
        del spec["seed"]
        short = sha256(canonical(spec).encode())[:8]
        return runs / "single" / self.task.id / f"{self.strategy.name}-{short}" / str(self.seed)


class Kept:
    """``best/``: the artefact of the best trial, stored before its trial is recorded, alone after."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is ``best/`` of a run."""
        self.folder = folder

    def path(self, outcome: Outcome) -> Path | None:
        """Where the artefact of an outcome is kept, if it has one."""
        return self.folder / outcome.artefact if outcome.artefact else None

    def store(self, outcome: Outcome, folder: Path | None) -> None:
        """Copy an artefact here, whole or not at all."""
        target = self.path(outcome)
        if target is None or folder is None or target.exists():
            return
        half = self.folder / f"{target.name}.part"
        try:
            shutil.rmtree(half, ignore_errors=True)
            shutil.copytree(folder, half)
            half.rename(target)
        except OSError as error:
            shutil.rmtree(half, ignore_errors=True)
            raise CannotRunHere(
                f"{half}: cannot keep the artefact: {error.strerror}; free some space and give the same command again"
            ) from None

    def only(self, outcome: Outcome) -> None:
        """Remove every artefact but that of ``outcome``."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.name != outcome.artefact:
                    shutil.rmtree(path, ignore_errors=True)


def execute(plan: Plan, runs: Path, make_bench: Callable[[], RunBench], observers: list[Observer]) -> Path:
    """Run ``plan`` to its end, or go on where it stopped; return its folder. A finished run returns at once.

    Raises:
        LabcoatError: with what to do next; whatever was reached is kept and the same call resumes.
    """
    folder = plan.folder(runs)
    compare_record(folder, plan.spec())
    if is_finished(folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRunHere(f"{folder}: cannot be made: {error.strerror}; choose another place with --runs") from None
    with Journal(folder, write=True, observers=observers) as journal:
        compare_record(folder, plan.spec())
        bench = make_bench()
        try:
            bench.prepare()
            write_record(folder, plan.record() | {"bench": bench.facts()})
            _record_limits(journal, plan.limits)
            try:
                stages(plan, journal, bench, Kept(folder / "best"))
            except LimitReached as reached:
                journal.note("limit", {"name": reached.name, "limit": reached.limit})
                raise
        finally:
            bench.close()
    return folder


def stages(plan: Plan, journal: Journal, bench: RunBench, kept: Kept, *, verify: bool = False) -> None:
    """Search, confirm, test: everything of a run that the journal records as an effect."""
    task = plan.task
    journal.perform("begin", "begin", {"task": task.hash}, lambda: {"code": pack_code(task.baseline, journal.blobs)})
    driver = Driver(
        task=task, strategy=plan.strategy, bench=bench, models=plan.models, journal=journal, keeper=kept,
        budget=Budget(plan.limits), steps=plan.steps, seed=plan.seed, verify=verify,
    )  # fmt: skip
    search(driver, plan.params, journal)
    chosen = confirm(driver, journal)
    test(driver, chosen, bench, journal, kept)
    journal.perform("end", "end", {}, lambda: None)


def search(driver: Driver, params: Params, journal: Journal) -> None:
    """The search: the strategy spends its steps; the best valid trial is known at the end."""
    reason = driver.search(params)
    request = {"reason": reason, "best": driver.best.key, "trials": len(driver.trials)}
    journal.perform("search", "search", request, lambda: None)


def confirm(driver: Driver, journal: Journal) -> Trial:
    """Choose what is tested. With one candidate and no further seeds, the defaults, that is the best of the search."""
    request = {"candidates": [driver.best.key], "seeds": []}
    journal.perform("confirm", "confirm", request, lambda: {"chosen": driver.best.key})
    return driver.best


def test(driver: Driver, chosen: Trial, bench: RunBench, journal: Journal, kept: Kept) -> None:
    """Measure the chosen code once on the hidden split, beside the baseline. A recorded score is final."""
    seed = driver.seed
    base_request = {"trial": BASELINE, "code": driver.task.baseline.sha, "seed": seed}
    baseline = journal.perform(
        "test/baseline", "test", base_request, lambda: pack_outcome(bench.baseline_test(seed), journal.blobs)
    )
    trial = journal.finished(chosen.key)
    assert trial is not None, "the chosen trial is recorded"
    validated = unpack_outcome(trial["result"], journal.blobs)
    request = {"trial": chosen.key, "code": chosen.code.sha, "seed": seed}

    def live() -> Any:
        if chosen.key == BASELINE:
            return baseline
        kept.only(validated)
        artefact = kept.path(validated)
        if artefact and not artefact.is_dir():
            raise CannotRunHere(f"{artefact}: missing, and only what was validated may be tested; restore the folder")
        outcome = bench.test(artefact, chosen.code, seed)
        if outcome.artefact != validated.artefact:
            raise CannotRunHere(f"{artefact}: was changed since it was validated; restore the folder")
        return pack_outcome(outcome, journal.blobs)

    journal.perform("test", "test", request, live)


def changed_since(plan: Plan, runs: Path) -> list[tuple[Path, list[str]]]:
    """Runs that the same command began, before the strategy or the task changed; with the fields that changed."""
    wanted = flat(plan.spec())
    found = []
    for record in sorted((runs / "single" / plan.task.id).glob(f"{plan.strategy.name}-*/{plan.seed}/run.json")):
        begun = flat((read_record(record.parent) or {"spec": {}})["spec"])
        fields = [name for name in wanted if begun.get(name) != wanted[name]]
        if fields and set(fields) <= {"strategy.source", "task.hash", "task.version"}:
            found.append((record.parent, fields))
    return found


def is_finished(folder: Path) -> bool:
    """Whether the run came to its end."""
    return (folder / "events.jsonl").exists() and Journal(folder).finished("end") is not None


def _record_limits(journal: Journal, limits: Limits) -> None:
    notes = [e["result"] for e in journal.events if e["kind"] == "limits"]
    if (notes[-1] if notes else {}) != limits.to_json():
        journal.note("limits", limits.to_json())
