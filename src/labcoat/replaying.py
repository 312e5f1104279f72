"""Replay: every decision of a run re-executed from its journal, and verified."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never

from labcoat import catalog, strategies
from labcoat.bench.constraints import judge
from labcoat.bench.outcome import Outcome
from labcoat.budget import Limits
from labcoat.errors import Diverged, InputError
from labcoat.history import History
from labcoat.journal import Unrecorded, request_hash
from labcoat.kept import Kept
from labcoat.lab import Strategy, source_hash
from labcoat.models import Call, Models, Prompt
from labcoat.models.prices import Prices
from labcoat.plan import Confirm, Plan
from labcoat.stages import make_driver, stages
from labcoat.tree import Code


@dataclass(frozen=True)
class Verified:
    """What a replay found to be as recorded."""

    decisions: int
    trials: int
    contents: int
    finished: bool
    text: str


class _Recorded:
    """A model and a bench that must not be asked: everything is in the journal."""

    constants_only = True

    def __init__(self, name: str = "") -> None:
        self.name = name

    def room(self, purpose: str) -> Never:
        self._never()

    def chat(self, prompt: Prompt, call: Call) -> Never:
        self._never()

    def prepare(self) -> None:
        """Nothing to prepare."""

    def facts(self) -> dict[str, Any]:
        """Nothing ran."""
        return {}

    def close(self) -> None:
        """Nothing is open."""

    def baseline(self, seed: int) -> Outcome:
        self._never()

    def baseline_test(self, seed: int) -> Outcome:
        self._never()

    def trial(self, code: Code, seed: int) -> AbstractContextManager[tuple[Outcome, Path | None]]:
        self._never()

    def test(self, artefact: Path | None, code: Code, seed: int) -> Outcome:
        self._never()

    def _never(self) -> Never:
        raise Diverged("replay asked for something live")  # the journal refuses first


class _Untouched(Kept):
    """Replay only reads: nothing is stored or removed."""

    def store(self, outcome: Outcome, folder: Path | None) -> None:
        pass

    def only(self, outcomes: list[Outcome]) -> None:
        pass


def replay(history: History, task: str | None = None, strategy: str | Strategy | None = None) -> Verified:
    """Drive the strategy again from the journal alone.

    Verified are: every request of the strategy (prompts included), the code that each recorded reply gives, each
    trial's verdict on its constraints, the best, what was chosen for the test, manifest and sources in run.json, and
    the hash of every content. What only a new run could verify: measured metrics and the sandbox level.

    Args:
        history: the run.
        task: folder of the task where it is not a shipped one.
        strategy: the strategy, or ``path/to/file.py:NAME``, where it is not a shipped or installed one.

    Raises:
        InputError: the task or the strategy is not the one of the run any more.
        Diverged: something recomputed differs from what was recorded, or was recorded and is never asked for.
    """
    plan = _plan(history, task, strategy)
    journal = history.journal
    recorded = _Recorded()
    try:
        stages(make_driver(plan, journal, recorded, _Untouched(history.folder / "best"), verify=True), plan)
    except Unrecorded:
        if history.status == "finished":
            raise
    left = [e["key"] for e in journal.events if e["state"] == "finished" and e["key"] not in journal.performed]
    if left:
        raise Diverged(f"{journal.path}: recorded, but the strategy never asks for it: {', '.join(left[:5])}")
    _verify_requests(history, plan)
    _verify_verdicts(history)
    contents = journal.blobs.verify()
    best = history.best.number if history.best else 0
    text = (
        f"{len(journal.performed)} decisions re-executed and equal to the journal, {len(history.trials)} trials, "
        f"{contents} contents intact; best is step {best}"
    )
    if history.status != "finished":
        text += f"; the run is not finished ({history.status})"
    return Verified(len(journal.performed), len(history.trials), contents, history.status == "finished", text)


def _plan(history: History, task: str | None, given: str | Strategy | None) -> Plan:
    spec, record = history.spec, history.folder / "run.json"
    found = catalog.find(task or spec["task"]["id"])
    if found.hash != spec["task"]["hash"]:
        raise InputError(
            f"{record}: spec.task.hash: the task {found.id} in {found.folder} is not the one of this run "
            f"(version {spec['task']['version']}); replay with labcoat {history.record['labcoat']}, "
            "or name the folder of the recorded task with --task"
        )
    strategy = _strategy(history, given or spec["strategy"]["name"])
    return Plan(
        found,
        strategy,
        strategy.params.model_validate(spec["strategy"]["params"]),
        Models({purpose: _Recorded(name) for purpose, name in spec["models"].items()}),
        spec["steps"],
        spec["seed"],
        Confirm(**spec["confirm"]),
        spec["retest"],
        Limits(),
    )


def _strategy(history: History, given: str | Strategy) -> Strategy:
    """The strategy of the run, by its source."""
    record, source = history.folder / "run.json", next(iter(history.record["strategy_source"]))
    kept = "its source as it was is kept in the field strategy_source"
    try:
        strategy = strategies.find(given) if isinstance(given, str) else given
    except InputError as error:
        raise InputError(
            f"{record}: spec.strategy.name: {error}\nThe run's strategy was in a file {source}; {kept}. "
            f"Name the file: --strategy path/to/{source}:NAME"
        ) from None
    if source_hash(strategy.source()) != history.spec["strategy"]["source"]:
        raise InputError(
            f"{record}: spec.strategy.source: {strategy.path} is not what the run began with; {kept}: restore it, "
            f"name another file with --strategy, or replay with labcoat {history.record['labcoat']}"
        )
    return strategy


def _verify_requests(history: History, plan: Plan) -> None:
    """What is shown is what was hashed, and the record says what the run's parts are."""
    path = history.journal.path
    for event in history.journal.events:
        if event["state"] == "finished" and request_hash(event["kind"], event["request"]) != event["hash"]:
            raise Diverged(f"{path}: {event['kind']} {event['key']}: its request is not the one that was performed")
    begin = history.journal.finished("begin")
    if begin and begin["result"]["code"] != {name: file.sha for name, file in plan.task.baseline.items()}:
        raise Diverged(f"{path}: begin: the recorded baseline is not that of task {plan.task.id}")
    record, wanted = history.record, plan.record({}, Prices({}))
    for name in ("task", "strategy_source", "prompts"):
        if record[name] != wanted[name]:
            raise Diverged(f"{history.folder / 'run.json'}: {name}: not that of the task and strategy of this run")


def _verify_verdicts(history: History) -> None:
    """The constraints are judged again from the recorded metrics, and the best is found again."""
    ended = history.journal.finished("search")
    if ended and history.best and ended["request"]["best"] != history.best.key:
        raise Diverged(f"{history.folder}: recorded as the best: {ended['request']['best']}, found: {history.best.key}")
    outcomes = [(f"step {s.number}", s.outcome, history.steps[0].outcome, False) for s in history.steps]
    test, baseline = history.test_outcome(), history.test_outcome("test/baseline")
    if test and baseline:
        outcomes.append(("test", test, baseline, True))
    for name, outcome, reference, widened in outcomes:
        if outcome.status in ("ok", "violation"):
            status, _, _ = judge(history.manifest, outcome.metrics, reference.metrics, widened)
            if status != outcome.status:
                raise Diverged(f"{history.folder}: {name}: recorded as {outcome.status}, its metrics give {status}")
