"""The bench of a task: runs candidates in a sandbox and has them scored by a process that never meets them.

It never parses a metric from what a candidate printed: the candidate leaves arrays, the scorer measures.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from labcoat.bench import dataset, environment, home, scratch
from labcoat.bench.dataset import Dataset, Problem
from labcoat.bench.environment import Environment
from labcoat.bench.home import Report
from labcoat.bench.measured import MeasuredBench, Metrics
from labcoat.bench.outcome import Measure, Outcome
from labcoat.bench.phases import Failed, Phases, judged
from labcoat.bench.sandbox import Sandbox
from labcoat.bench.scorer import Scorer, ScorerFailed
from labcoat.task import Task
from labcoat.tree import Code, sha256

Scores = dict[str, tuple[float, float | None]]
Score = Callable[[Problem, Mapping[str, bytes]], Scores]


class SandboxedBench(MeasuredBench):
    """The bench of a task that labcoat scores: candidates leave arrays, and the scorer measures them."""

    environment: Environment

    def __init__(self, task: Task, sandbox: Sandbox, report: Report, scale: str = "cpu") -> None:
        """Nothing is built or started before :meth:`prepare`."""
        super().__init__(task, sandbox, report)
        self._scale = scale
        self._val_scorer: Scorer | None = None

    def _prepare(self) -> None:
        manifest = self.task.manifest
        self.environment = environment.prepare(manifest.environment.requires, self._report)
        requires = manifest.score.requires
        self.scoring: Environment = self.environment
        if requires:
            self.scoring = environment.prepare(requires, self._report, "score.requires")
        self.dataset: Dataset = dataset.prepare(self.task, self.environment, self._scale, self._report)

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says about the bench: also data, and whose salt."""
        return super().facts() | {
            "dataset": {"fingerprint": self.dataset.fingerprint, "scale": self._scale},
            "salt_hash": sha256(home.salt()),
        }

    def _measured_on(self) -> list[str]:
        return [self.environment.lock_hash, self.scoring.lock_hash, self.dataset.fingerprint]

    def _score(self, problem: Problem, outputs: Mapping[str, bytes]) -> Scores:
        """Score on validation; a scorer that fails is replaced once, as something else may have ended it.

        Raises:
            ScorerFailed: two scorers failed on these outputs.
        """
        try:
            return self._scorer().score(problem, outputs)
        except ScorerFailed:
            self._drop_scorer()
        try:
            return self._scorer().score(problem, outputs)
        except ScorerFailed:
            self._drop_scorer()
            raise

    def _scorer(self) -> Scorer:
        if self._val_scorer is None:
            folder = Path(tempfile.mkdtemp(prefix="scorer-", dir=self._scratch.folder))
            folder.chmod(0o755)
            self._val_scorer = Scorer(self.task, self.scoring, self.sandbox, self.dataset.val, folder)
            self._open.callback(self._drop_scorer)
        return self._val_scorer

    def _drop_scorer(self) -> None:
        if self._val_scorer is not None:
            self._val_scorer.close()
            self._val_scorer = None

    def _phases(self, code: Code, seed: int, folder: Path) -> Phases:
        return Phases(self.task, self.environment, self.sandbox, code, seed, folder, self.dataset.assets)

    @contextmanager
    def _candidate(self, code: Code, seed: int, against: Metrics | None) -> Iterator[tuple[Outcome, Path | None]]:
        self._scorer()  # it imports its libraries while the candidate trains
        with self._scratch.part("trial") as folder:
            phases = self._phases(code, seed, folder)
            outcome = self._outcome(phases, self.dataset.val, self.dataset.train, self._score, against, on_test=False)
            yield outcome, None if self._refit else phases.artefact

    def _test(self, kept: Path | None, code: Code, seed: int, against: Metrics | None) -> Outcome:
        with self._scratch.part("test") as folder, self.dataset.test(folder) as hidden:
            phases = self._phases(code, seed, folder)
            if kept is not None:
                phases.take(kept)
            place = scratch.own(folder / "scorer", None, 0o755)
            train = hidden.refit if self._refit else None
            with Scorer(self.task, self.scoring, self.sandbox, hidden.problems, place) as scorer:
                return self._outcome(phases, hidden.problems, train, scorer.score, against, on_test=True)

    @property
    def _refit(self) -> bool:
        """Whether the test needs no artefact, as fit runs again for it."""
        return self.task.manifest.test.refit

    def _outcome(
        self,
        phases: Phases,
        problems: Sequence[Problem],
        train: Path | None,
        score: Score,
        against: Metrics | None,
        on_test: bool,
    ) -> Outcome:
        """Fit on ``train``, if there is one, predict ``problems`` and score them."""
        started = time.monotonic()
        try:
            phases.write_code()
            if train is not None:
                phases.fit(train)
            outcome = self._verdict(measure(phases, problems, score), phases.seed, against, on_test)
        except Failed as failed:
            outcome = Outcome(failed.status, phases.seed, error=str(failed))
        except ScorerFailed as failure:
            if against is None or on_test:
                raise
            # It has measured the baseline, so it is these outputs that it fails on: no score, and the run goes on.
            outcome = Outcome("crash", phases.seed, error=f"the scorer failed on what this code left\n{failure}")
        return replace(
            outcome,
            seconds=time.monotonic() - started,
            executions=phases.executions,
            artefact=None if self._refit else phases.artefact_hash,
        )


def measure(phases: Phases, problems: Sequence[Problem], score: Score) -> Metrics:
    """Predict and score every problem; values in the order of the problems."""
    found: list[Scores] = []
    for problem in problems:
        outputs = phases.predict(problem)
        with judged():
            found.append(score(problem, outputs))
    names = [name for name in found[0] if all(name in scores for scores in found)]
    return {name: Measure([s[name][0] for s in found], [s[name][1] for s in found]) for name in names}
