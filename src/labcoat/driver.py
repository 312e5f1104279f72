"""The driver: our side of the Lab.

It steps a strategy's coroutine, performs each request through the journal, numbers what it does, charges the budget,
and keeps the best trial's artefact.
"""

from __future__ import annotations

import contextlib
import json
import random
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from labcoat import editor
from labcoat.asking import Asking
from labcoat.bench import Bench
from labcoat.bench.outcome import Outcome, error_text, metric_line
from labcoat.budget import SPENT, Budget
from labcoat.embedding import Embedder, text_of
from labcoat.errors import CannotRunHere, Diverged, LabcoatError, StrategyError
from labcoat.journal import Journal, key_order
from labcoat.kept import Kept
from labcoat.lab import (
    AskRequest,
    Brief,
    Edit,
    EditRequest,
    EmbedRequest,
    Lab,
    OutOfSteps,
    ParallelRequest,
    Request,
    Strategy,
    Trial,
    TrialRequest,
)
from labcoat.models import Models, Reply
from labcoat.models.prices import Prices
from labcoat.packing import pack_changes, pack_outcome, unpack_changes, unpack_outcome
from labcoat.task import Task
from labcoat.tree import Code, sha256

BASELINE = "baseline"
MOST_IDLE = 1000
"""Requests between two trials."""


@dataclass(frozen=True)
class Leader:
    """One of the best trials, with what it gave."""

    trial: Trial
    outcome: Outcome


@dataclass(eq=False)
class Scope:
    """A lab with its numbering and its steps: the root of a search, or one child of a batch."""

    path: str
    lab: Lab
    left: int
    count: int = 0
    idle: int = 0
    """Requests since the last trial."""

    def next_key(self) -> str:
        """Key of the next effect of this scope."""
        key = f"{self.path}/{self.count}"
        self.count += 1
        return key

    def spend(self) -> None:
        """Take a step.

        Raises:
            OutOfSteps: none is left.
        """
        if self.left < 1:
            raise OutOfSteps
        self.left -= 1


class Driver:
    """Runs one search. Everything that it does is a function of the journal and of what goes live."""

    def __init__(
        self, *, task: Task, strategy: Strategy, bench: Bench, models: Models, journal: Journal, kept: Kept,
        budget: Budget, prices: Prices, steps: int, seed: int, leaders: int = 1, rooms: Mapping[str, int],
        shared: Mapping[str, Mapping[str, int]], embedder: Embedder, verify: bool = False,
    ) -> None:  # fmt: skip
        """Wire the parts together; :meth:`search` runs.

        The artefacts of the best ``leaders`` trials are kept. ``rooms`` says how many tokens a prompt of each purpose
        may have; ``shared`` names the effects that a fork took over, with the rooms that held for them. ``verify``
        also applies every recorded reply again.
        """
        self.task = task
        self.strategy = strategy
        self.bench = bench
        self.journal = journal
        self.kept = kept
        self.budget = budget
        self.steps = steps
        self.seed = seed
        self.most_leaders = leaders
        self.shared = shared
        self.asking = Asking(models, journal, prices, rooms, shared, lambda key: self.derive("model", key))
        self.verify = verify
        self.embedder = embedder
        self.tried = 0
        self.brief: Brief
        self.issued: dict[str, Edit | Trial] = {}
        """What the strategy was given, by key: it can edit and try nothing else."""
        self.leaders: list[Leader] = []
        """The best trials that are better than the baseline, best first, each code once; among equals the first key."""
        self.superseded = False
        """Whether an artefact is kept that none of the leaders left."""

    def search(self, params: Any) -> str:
        """Run the strategy until its budget is spent or it returns; return why it ended.

        Raises:
            StrategyError: the strategy broke a rule or failed itself.
        """
        manifest = self.task.manifest
        baseline = self._baseline()
        self.brief = Brief(self.task.statement, manifest.metric, tuple(manifest.files.editable), baseline)
        scope = self._scope("", self.steps)
        for event in self.journal.events:
            if event["kind"] == SPENT:
                self.budget.spent.add(event)
        try:
            self._drive(scope, self.strategy.search(scope.lab, params))
        except OutOfSteps:
            return "steps spent"
        return "steps spent" if scope.left == 0 else "strategy returned"

    @property
    def best(self) -> Trial:
        """The best trial so far; the baseline if nothing beat it."""
        return self.leaders[0].trial if self.leaders else self.brief.baseline

    # --- stepping a coroutine -------------------------------------------------------------------------------------

    def _drive(self, scope: Scope, coroutine: Awaitable[Any]) -> Any:
        if not isinstance(coroutine, Coroutine):
            raise StrategyError(f"strategy {self.strategy.name}: not an `async def` function that returns")
        value: Any = None
        error: Exception | None = None
        try:
            while True:
                try:
                    request = self._advance(coroutine, value, error)
                except StopIteration as stop:
                    return stop.value
                except (LabcoatError, OutOfSteps):
                    raise
                except (Exception, SystemExit) as failure:
                    raise self._failed(failure) from failure
                value, error = None, None
                if not isinstance(request, Request):
                    raise StrategyError(
                        f"strategy {self.strategy.name}: awaited {type(request).__name__}; "
                        "a strategy may await the verbs of its lab only (ask, edit, trial, parallel, embed)"
                    )
                if request.lab is not scope.lab:
                    raise StrategyError(
                        f"strategy {self.strategy.name}: used the lab of another scope; "
                        "a job of `parallel` must use the lab that it is given"
                    )
                try:
                    value = self._perform(scope, request)
                except OutOfSteps as out:
                    error = out
        finally:
            with contextlib.suppress(RuntimeError):  # one that catches everything may not want to end
                coroutine.close()

    def _advance(self, coroutine: Coroutine[Any, Any, Any], value: Any, error: Exception | None) -> Any:
        """Run the strategy's own code up to its next request."""
        return coroutine.throw(error) if error else coroutine.send(value)

    def _failed(self, failure: BaseException) -> StrategyError:
        last = traceback.extract_tb(failure.__traceback__)[-1]
        return StrategyError(
            f"strategy {self.strategy.name} failed at {last.filename}:{last.lineno}: "
            f"{type(failure).__name__}: {failure}\nThe run is kept as it is; a corrected strategy begins a new one."
        )

    def _perform(self, scope: Scope, request: Request[Any]) -> Any:
        if scope.idle >= MOST_IDLE:  # one that only talks, or never takes no for an answer, would not end
            raise StrategyError(f"strategy {self.strategy.name}: {MOST_IDLE} requests without a trial")
        scope.idle += 1
        match request:
            case AskRequest():
                return self._ask(scope.next_key(), request)
            case EditRequest():
                return self._edit(scope.next_key(), request)
            case TrialRequest():
                scope.spend()
                trial = self._trial(scope.next_key(), request)
                scope.idle = 0
                self._forget(scope)
                return trial
            case ParallelRequest():
                results = self._parallel(scope, request)
                self._forget(scope)
                return results
            case EmbedRequest():
                return self._embed(scope.next_key(), request)
            case _:
                raise StrategyError(f"strategy {self.strategy.name}: unknown request {type(request).__name__}")

    # --- the effects ----------------------------------------------------------------------------------------------

    def _ask(self, key: str, request: AskRequest) -> Reply:
        purpose, prompt = request.purpose, self.asking.packed(key, request.purpose, request.prompt)
        result = self._perform_effect(
            key,
            "ask",
            self.asking.request(key, purpose, prompt) | {"schema": request.schema},
            lambda: {"reply": self.asking.live(key, purpose, prompt, request.schema)},
            call=lambda: self.asking.coming(purpose, prompt),
        )
        return self.asking.told(result["reply"])

    def _edit(self, key: str, request: EditRequest) -> Edit:
        base = request.base
        self._own(base, "a base")
        prompt = editor.edit_prompt(
            task=self.task.statement,
            metric=base.line,
            files={path: base.code.text(path) for path in self.task.editable_files(base.code)},
            instruction=request.instruction,
            error=request.error,
            patterns=self.task.manifest.files.editable,
        )

        def live() -> dict[str, Any]:
            reply = self.asking.live(key, "edit", prompt)
            code, reason = self._apply(reply["finish"], self.journal.blobs.text(reply["text"]), base.code)
            changes = pack_changes(self.task.baseline, code, self.journal.blobs)
            return {"reply": reply, "reason": reason, "changes": changes}

        request_json = self.asking.request(key, "edit", prompt) | {"base": base.key, "code": base.code.sha}
        result = self._perform_effect(key, "edit", request_json, live, call=lambda: self.asking.coming("edit", prompt))
        reply = self.asking.reply(result["reply"])
        code = unpack_changes(self.task.baseline, result["changes"], self.journal.blobs)
        if self.verify and self._apply(reply.finish, reply.text, base.code) != (code, result["reason"]):
            raise Diverged(f"{self.journal.path}: edit {key}: the recorded reply gives another code than was recorded")
        edit = Edit(key, base, code, request.instruction, result["reason"])
        self.issued[key] = edit
        return edit

    def _apply(self, finish: str, reply: str, base: Code) -> tuple[Code, str]:
        if finish not in ("stop", "length"):
            return base, f"the model gave no edit ({finish.replace('_', ' ')})"
        edited = editor.apply_reply(reply, base, self.task.is_editable)
        return edited.code, edited.reason

    def _trial(self, key: str, request: TrialRequest) -> Trial:
        edit = request.edit
        self._own(edit, "an edit")
        if self.tried >= self.steps:
            raise StrategyError(f"strategy {self.strategy.name}: more trials than the budget of {self.steps}")
        try:
            facts = json.loads(json.dumps(request.facts, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise StrategyError(
                f"strategy {self.strategy.name}: trial {key}: facts must be plain data: {error}"
            ) from None

        def live() -> dict[str, Any]:
            if not edit.ok:
                return pack_outcome(Outcome("edit_failed", self.seed, error=edit.reason), self.journal.blobs)
            with self.bench.trial(edit.code, self.seed) as (outcome, artefact):
                seen = self._seen(key, edit.code, outcome, edit.base, facts)
                if self._ranked(seen, outcome) != self.leaders:
                    self.kept.store(outcome, artefact)
                return pack_outcome(outcome, self.journal.blobs)

        request_json = {
            "edit": edit.key, "parent": edit.base.key, "code": edit.code.sha, "seed": self.seed, "facts": facts,
        }  # fmt: skip
        fresh = self.journal.finished(key) is None
        result = self._perform_effect(key, "trial", request_json, live, lost=lost_for(self.seed, self.journal))
        outcome = unpack_outcome(result, self.journal.blobs)
        trial = self._seen(key, edit.code, outcome, edit.base, facts)
        self.tried += 1
        self.issued[key] = trial
        with_it = self._ranked(trial, outcome)
        if with_it != self.leaders:
            self.leaders = with_it
            self.superseded |= fresh  # what is replayed was superseded long ago, and its artefact is gone
        return trial

    def _forget(self, scope: Scope) -> None:
        """Remove superseded artefacts; a batch's once it is over, as a later job of it may be recorded and lead."""
        if self.superseded and not scope.path:
            self.kept.only([leader.outcome for leader in self.leaders])
            self.superseded = False

    def _ranked(self, trial: Trial, outcome: Outcome) -> list[Leader]:
        """The leaders with ``trial`` in its place, if it has one among them."""
        if not self.brief.better(trial, self.brief.baseline):
            return self.leaders
        above = sum(self._ahead(leader.trial, trial) for leader in self.leaders)
        merged = [*self.leaders[:above], Leader(trial, outcome), *self.leaders[above:]]
        by_code: dict[Code, Leader] = {}
        for leader in merged:
            by_code.setdefault(leader.trial.code, leader)
        return list(by_code.values())[: self.most_leaders]

    def _ahead(self, a: Trial, b: Trial) -> bool:
        """Whether ``a`` ranks before ``b``: it is better, or equal and first by its number, whichever ran first."""
        if self.brief.better(a, b) or self.brief.better(b, a):
            return self.brief.better(a, b)
        return key_order(a.key) < key_order(b.key)

    def _parallel(self, scope: Scope, request: ParallelRequest) -> list[Any]:
        if request.jobs and not scope.left:
            raise OutOfSteps
        jobs = list(request.jobs)[: scope.left]
        batch = scope.next_key()
        self.journal.perform(batch, "parallel", {"jobs": len(jobs)}, lambda: None)
        children = [self._scope(f"{batch}.{number}", 1) for number in range(len(jobs))]
        scope.left -= len(jobs)
        results: list[Any] = [None] * len(jobs)
        for number in self._order(len(jobs)):
            child = children[number]
            try:
                results[number] = self._drive(child, jobs[number](child.lab))
            except OutOfSteps:
                raise StrategyError(
                    f"strategy {self.strategy.name}: job {child.path} of `parallel` asked for a second trial; "
                    "a job has one"
                ) from None
        scope.left += sum(child.left for child in children)
        tried = any(not child.left for child in children)
        scope.idle = 0 if tried else scope.idle + sum(child.idle for child in children)
        return results

    def _order(self, jobs: int) -> Iterable[int]:
        """The order in which the jobs of a batch are carried out. Nothing that is recorded depends on it."""
        return range(jobs)

    def _embed(self, key: str, request: EmbedRequest) -> list[float]:
        text = text_of(request.code, self.task.editable_files(request.code))
        result: list[float] = self.journal.perform(
            key, "embed", {"code": request.code.sha, "by": self.embedder.name}, lambda: self.embedder.embed([text])[0]
        )
        return result

    def _baseline(self) -> Trial:
        code = self.task.baseline

        def live() -> dict[str, Any]:
            outcome = self.bench.baseline(self.seed)
            if not outcome.ok:  # only noted: it is measured again when the run is resumed
                why = {"status": outcome.status, "error": error_text(outcome)}
                self.journal.note("baseline_failed", why, key=BASELINE)
                raise CannotRunHere(
                    f"task {self.task.id}: its baseline fails here ({outcome.status}), nothing can be compared to it\n"
                    f"{error_text(outcome)}"
                )
            packed = pack_outcome(outcome, self.journal.blobs)
            drift = self.task.drift(outcome.metrics[self.task.metric.name].mean)
            return packed | ({"warning": drift} if drift else {})

        result = self.journal.perform(BASELINE, "baseline", {"code": code.sha, "seed": self.seed}, live)
        baseline = self._seen(BASELINE, code, unpack_outcome(result, self.journal.blobs), None, {})
        self.issued[BASELINE] = baseline
        return baseline

    def _own(self, given: Edit | Trial, what: str) -> None:
        """A strategy may hand back only what it was given, or its score would be that of another code."""
        if self.issued.get(given.key) is not given:
            raise StrategyError(f"strategy {self.strategy.name}: gave {what} that did not come from its lab")

    # --- shared by the effects ------------------------------------------------------------------------------------

    def _perform_effect(
        self, key: str, kind: str, request: Any, live: Callable[[], Any], lost: Callable[[], Any] | None = None,
        call: Callable[[], Mapping[str, float | None]] | None = None,
    ) -> Any:  # fmt: skip
        if self.journal.finished(key) is None:
            self.budget.check(call and call())
        result = self.journal.perform(key, kind, request, live, lost=lost)
        event = self.journal.finished(key)
        assert event is not None
        if key not in self.shared:  # its origin paid for it
            self.budget.spent.add(event)
        return result

    def _seen(self, key: str, code: Code, outcome: Outcome, parent: Trial | None, facts: dict[str, Any]) -> Trial:
        metric = self.task.metric.name
        value = outcome.metrics[metric].mean if outcome.ok else None
        line = metric_line(self.task.manifest, outcome)
        error = "" if outcome.ok else error_text(outcome)
        return Trial(key, code, outcome.ok, outcome.status, value, line, error, parent, facts)

    def _scope(self, path: str, left: int) -> Scope:
        lab = Lab(self.brief, random.Random(self.derive("scope", path)), lambda: scope.left)
        scope = Scope(path, lab, left)
        return scope

    def derive(self, *of: object) -> int:
        """A seed for a purpose: a hash of the run's seed and of what it is for."""
        return int(sha256(json.dumps([self.seed, *of]).encode())[:15], 16)


def lost_for(seed: int, journal: Journal) -> Callable[[], dict[str, Any]]:
    """What is recorded for code that took labcoat itself down each time that it ran."""
    text = "labcoat itself died each time that this code ran; it is not run again"
    return lambda: pack_outcome(Outcome("crash", seed, error=text), journal.blobs)
