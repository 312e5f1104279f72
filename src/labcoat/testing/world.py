"""A world: where a strategy is tried, and the outcome of the i-th trial is given.

Lab, driver, editor, prompts and journal are the real ones, on the task ``sim/valley``. Only what a trial gives is made
up, whatever code is tried: so an implementation that takes the same decisions sees the same outcomes, which is how
the golden traces of other programs were recorded.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from labcoat import catalog, parameters
from labcoat.bench.outcome import Measure, Outcome, Status
from labcoat.bench.simulated import SimulatedBench
from labcoat.budget import Budget, Limits
from labcoat.driver import BASELINE, Driver, Scope
from labcoat.embedding import Embedder
from labcoat.embedding.tokens import HashedTokens
from labcoat.journal import Event, Journal, key_order
from labcoat.kept import Kept
from labcoat.lab import Params, Strategy, Trial
from labcoat.manifest import Metric
from labcoat.models import ROOM, Models
from labcoat.models.prices import Prices
from labcoat.task import Task
from labcoat.tree import Code

METRIC = "score"


def measured(value: float) -> Outcome:
    """A valid trial with that metric."""
    return Outcome("ok", metrics={METRIC: Measure([value], [None])})


def failed(error: str = "Traceback\nValueError: by the script", status: Status = "crash") -> Outcome:
    """A trial without a measurement."""
    return Outcome(status, error=error)


def violation(value: float) -> Outcome:
    """A trial with that metric that broke a constraint: it has a number, and the number does not count."""
    return Outcome("violation", metrics={METRIC: Measure([value], [None])}, error="a constraint is broken")


@dataclass(frozen=True)
class Decision:
    """What a strategy chose: the parent of a trial (None is the baseline), and what it noted about it."""

    step: int
    """Number of the trial, from 0."""
    parent: int | None
    action: str
    """The fact ``action``; empty where none was given."""
    facts: Mapping[str, Any] = field(compare=False)
    code: str = field(repr=False)
    """Hash of the code that was tried."""


@dataclass(frozen=True)
class Search:
    """A search that was carried out in a world."""

    reason: str
    """Why it ended: ``steps spent`` or ``strategy returned``."""
    trials: list[Trial]
    """In the order of their numbering."""
    best: Trial
    """The baseline where nothing beat it."""
    events: list[Event]
    """What the journal recorded, in the order of the keys."""
    rng: random.Random
    """The generator of the root lab, as the search left it."""

    @property
    def decisions(self) -> list[Decision]:
        """What the strategy chose, trial by trial."""
        number = {trial.key: n for n, trial in enumerate(self.trials)}
        return [
            Decision(
                step=n,
                parent=number.get(trial.parent.key) if trial.parent else None,
                action=str(trial.facts.get("action", "")),
                facts=trial.facts,
                code=trial.code.sha,
            )
            for n, trial in enumerate(self.trials)
        ]

    def asked(self, purpose: str) -> int:
        """How often a model was asked for ``purpose``."""
        return sum(e["request"].get("purpose") == purpose for e in self.events if e["kind"] in ("ask", "edit"))


@dataclass(frozen=True)
class World:
    """What a strategy meets.

    Args:
        outcomes: what the i-th trial gives, from 0, in the order in which trials are carried out; by default what
            sim/valley gives for the code.
        baseline: the metric of the untouched code.
        direction: which values of the metric are better.
        scale: what else the task says of its metric: ``best``, ``worst``, ``display``.
        embedder: who gives the vectors of codes.
        models: who answers; ``Models({"review": ScriptedModel(answer), "*": OfflineMutator()})`` scripts one purpose.
        room: tokens that a prompt may have.
        order: the order in which the jobs of a batch are carried out, from their number.
        drawn_from: seed of the root lab's generator itself, as a golden trace gives it; by default it is derived from
            the run's seed as in a real run.
        guard: entered each time that the strategy's own code runs, and left when it asks for something.
    """

    outcomes: Callable[[int], Outcome] | None = None
    baseline: float = 0.5
    direction: Literal["higher", "lower"] = "higher"
    scale: Mapping[str, Any] = field(default_factory=dict)
    embedder: Embedder = field(default_factory=HashedTokens)
    models: Models = field(default_factory=lambda: Models.parse("offline:mutate"))
    room: int = ROOM
    order: Callable[[int], Iterable[int]] = range
    drawn_from: int | None = None
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    def search(
        self, strategy: Strategy, params: Params | Mapping[str, Any] | None = None, *, steps: int, seed: int = 0,
        folder: Path | None = None,
    ) -> Search:  # fmt: skip
        """Carry out a search, or go on with the one whose journal lies in ``folder``.

        Raises:
            StrategyError: the strategy broke a rule, or failed itself.
        """
        if folder is None:
            with tempfile.TemporaryDirectory(prefix="labcoat-world-") as scratch:
                return self.search(strategy, params, steps=steps, seed=seed, folder=Path(scratch))
        checked = params if isinstance(params, Params) else parameters.resolve(strategy, params or {})
        self.models.check(["edit", *strategy.purposes])
        with Journal(folder, write=True) as journal:
            driver = self._driver(strategy, journal, steps, seed)
            reason = driver.search(checked)
            trials = [given for given in driver.issued.values() if isinstance(given, Trial) and given.key != BASELINE]
            finished = [event for event in journal.events if event["state"] == "finished" and event["key"] != BASELINE]
            return Search(
                reason=reason,
                trials=sorted(trials, key=lambda trial: key_order(trial.key)),
                best=driver.best,
                events=sorted(finished, key=lambda event: key_order(event["key"])),
                rng=driver.root.lab.rng,
            )

    def _driver(self, strategy: Strategy, journal: Journal, steps: int, seed: int) -> WorldDriver:
        valley = catalog.find("sim/valley")
        metric = Metric(name=METRIC, direction=self.direction, **self.scale)
        task = Task(valley.folder, valley.manifest.model_copy(update={"metric": metric}))
        bench = SimulatedBench(valley) if self.outcomes is None else ScriptedBench(valley, self, lambda: driver.tried)
        driver = WorldDriver(
            task=task, strategy=strategy, bench=bench, models=self.models, journal=journal,
            kept=Kept(journal.folder / "best"), budget=Budget(Limits()), prices=Prices({}), steps=steps,
            seed=seed, rooms=dict.fromkeys(["edit", *strategy.purposes], self.room), shared={},
            embedder=self.embedder,
        )  # fmt: skip
        driver.world = self
        return driver


class WorldDriver(Driver):
    """The driver, with what a world may set: the order of a batch, the root's generator, the guard."""

    world: World
    root: Scope

    def _scope(self, path: str, left: int) -> Scope:
        scope = super()._scope(path, left)
        if not path:
            self.root = scope
            if self.world.drawn_from is not None:
                scope.lab.rng = random.Random(self.world.drawn_from)
        return scope

    def _order(self, jobs: int) -> Iterable[int]:
        return self.world.order(jobs)

    def _advance(self, coroutine: Coroutine[Any, Any, Any], value: Any, error: Exception | None) -> Any:
        with self.world.guard():
            return super()._advance(coroutine, value, error)


class ScriptedBench(SimulatedBench):
    """A bench whose i-th trial gives what the world says."""

    def __init__(self, task: Task, world: World, tried: Callable[[], int]) -> None:
        """``tried`` says how many trials there were, so that a search that is resumed goes on with the right one."""
        super().__init__(task)
        self.world = world
        self.tried = tried

    def baseline(self, seed: int) -> Outcome:
        """The world's baseline."""
        return measured(self.world.baseline)

    @contextmanager
    def trial(self, code: Code, seed: int) -> Iterator[tuple[Outcome, Path | None]]:
        """What the world has for this trial."""
        assert self.world.outcomes is not None
        yield self.world.outcomes(self.tried()), None


def traced(trace: Mapping[str, Any], *, models: Models | None = None) -> World:
    """The world of a golden trace: its outcomes, baseline, direction and generator.

    A trace whose baseline failed has one here that anything beats.
    """
    outcomes = [failed() if row["buggy"] else measured(row["metric"]) for row in trace["outcomes"]]
    direction: Literal["higher", "lower"] = trace["direction"]
    baseline = trace["params"].get("baseline")
    worst = -1e300 if direction == "higher" else 1e300
    return World(
        outcomes=outcomes.__getitem__,
        baseline=worst if baseline is None else baseline,
        direction=direction,
        models=models or Models.parse("offline:mutate"),
        drawn_from=trace["seed"],
    )
