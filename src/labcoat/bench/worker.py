"""The bench of a task: runs candidates in a sandbox and has them scored by a process that never meets them.

It never parses a metric from what a candidate printed: the candidate leaves arrays, the scorer measures.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labcoat.bench import constraints, dataset, environment, gpus, home, machine, processors, sandbox, scratch
from labcoat.bench.dataset import Dataset, Problem
from labcoat.bench.environment import Environment
from labcoat.bench.outcome import Measure, Outcome, error_text
from labcoat.bench.phases import Failed, Phases, judged
from labcoat.bench.sandbox import Sandbox
from labcoat.bench.scorer import Scorer, ScorerFailed
from labcoat.bench.scratch import Scratch
from labcoat.errors import CannotRunHere
from labcoat.task import Task
from labcoat.tree import Code, sha256

Report = Callable[[str], None]
Metrics = dict[str, Measure]
Scores = dict[str, tuple[float, float | None]]
Score = Callable[[Problem, Mapping[str, bytes]], Scores]


class SandboxedBench:
    """Measures candidates of one task. Use it from the main thread, in a ``with`` block or with :meth:`close`."""

    def __init__(self, task: Task, sandbox: Sandbox, report: Report, scale: str = "cpu") -> None:
        """Nothing is built or started before :meth:`prepare`."""
        self.task, self.sandbox, self._report, self._scale = task, sandbox, report, scale
        self._open = ExitStack()
        self._val_scorer: Scorer | None = None
        self._baselines: dict[int, Outcome] = {}
        self._notes: list[str] = []

    def prepare(self) -> None:
        """Build or find environment and data.

        Raises:
            CannotRunHere: they cannot be made, or this machine has fewer GPUs than a phase needs.
        """
        manifest = self.task.manifest
        self._notes = asked(self.task)
        for note in self._notes:
            self._report(note)
        self.environment: Environment = environment.prepare(manifest.environment.requires, self._report)
        requires = manifest.score.requires
        self.scoring: Environment = self.environment
        if requires:
            self.scoring = environment.prepare(requires, self._report, "score.requires")
        self.dataset: Dataset = dataset.prepare(self.task, self.environment, self._scale, self._report)
        self._scratch = Scratch()
        self._open.callback(self._scratch.close)

    def baseline(self, seed: int) -> Outcome:
        """The unchanged code on the validation split: measured once per task, environment, machine, sandbox and seed.

        An outcome without metrics (a crash) is returned and not kept: the next call measures again.
        """
        if seed not in self._baselines:
            folder = self._baseline_folder(seed)
            with home.locked(folder.with_suffix(".lock"), self._report, "it measures the same baseline"):
                if not (folder / "outcome.json").exists():
                    self._report(f"measuring the baseline (seed {seed})")
                    with self._candidate(self.task.baseline, seed, None) as (outcome, kept):
                        if not outcome.metrics:
                            return outcome
                        store(folder, outcome, kept)
                self._baselines[seed] = load(folder / "outcome.json")
        return self._baselines[seed]

    @contextmanager
    def trial(self, code: Code, seed: int) -> Iterator[tuple[Outcome, Path | None]]:
        """Run and measure ``code`` on the validation split.

        Yields:
            The outcome, and the folder of the artefact (plain files, ours) for as long as the block lasts;
            None for a task without ``fit`` and for a trial that left none.

        Raises:
            CannotRunHere: the machine, the baseline or the scorer failed; that is no outcome.
        """
        against = self._measured(self.baseline(seed)) if self._relative else {}
        with self._candidate(code, seed, against) as found:
            yield found

    def test(self, artefact: Path | None, code: Code, seed: int) -> Outcome:
        """Measure a kept artefact with its code on the hidden split, which is open only meanwhile."""
        against = self._measured(self.baseline_test(seed)) if self._relative else {}
        return self._test(artefact, code, seed, against)

    def baseline_test(self, seed: int) -> Outcome:
        """The baseline on the hidden split, predicted from its kept artefact."""
        self._measured(self.baseline(seed))
        folder = self._baseline_folder(seed)
        record, kept = folder / "test.json", folder / "artefact"
        if not record.exists():
            outcome = self._test(kept if kept.exists() else None, self.task.baseline, seed, None)
            if not outcome.metrics:
                return outcome
            write(record, outcome)
        return load(record)

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says about the bench: sandbox, environment, data, machine, and whose salt."""
        return {
            "sandbox": sandbox.facts(self.sandbox),
            "environment": {"lock": self.environment.lock, "lock_hash": self.environment.lock_hash},
            "dataset": {"fingerprint": self.dataset.fingerprint, "scale": self._scale},
            "machine": machine.facts(),
            "notes": self._notes,
            "salt_hash": sha256(home.salt()),
        }

    def close(self) -> None:
        """End the scorer and remove the scratch folder."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def _relative(self) -> bool:
        return any(constraint.reference == "baseline" for constraint in self.task.manifest.constraint)

    def _measured(self, baseline: Outcome) -> Metrics:
        if not baseline.metrics:
            raise CannotRunHere(
                f"{self.task.id}: the unchanged code cannot be measured here, so no trial can be compared with it\n"
                + error_text(baseline)
            )
        return baseline.metrics

    def _baseline_folder(self, seed: int) -> Path:
        parts = [self.task.hash, self.environment.lock_hash, self.scoring.lock_hash, self.dataset.fingerprint]
        key = [*parts, json.dumps(machine.facts()), self.sandbox.level, str(seed)]
        return home.folder("baselines") / sha256("\n".join(key).encode())[:16]

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
        return Phases(self.task, self.environment, self.sandbox, code, seed, folder)

    @contextmanager
    def _candidate(self, code: Code, seed: int, against: Metrics | None) -> Iterator[tuple[Outcome, Path | None]]:
        """One trial; ``against`` are the baseline's metrics, None if this is the baseline itself."""
        self._scorer()  # it imports its libraries while the candidate trains
        with self._scratch.part("trial") as folder:
            phases = self._phases(code, seed, folder)
            outcome = self._outcome(phases, self.dataset.val, self._score, against, on_test=False)
            yield outcome, phases.artefact

    def _test(self, kept: Path | None, code: Code, seed: int, against: Metrics | None) -> Outcome:
        with self._scratch.part("test") as folder, self.dataset.test(folder) as problems:
            phases = self._phases(code, seed, folder)
            if kept is not None:
                phases.take(kept)
            place = scratch.own(folder / "scorer", None, 0o755)
            with Scorer(self.task, self.scoring, self.sandbox, problems, place) as scorer:
                return self._outcome(phases, problems, scorer.score, against, on_test=True)

    def _outcome(
        self, phases: Phases, problems: Sequence[Problem], score: Score, against: Metrics | None, on_test: bool
    ) -> Outcome:
        started = time.monotonic()
        try:
            phases.write_code()
            if not on_test:
                phases.fit(self.dataset.train)
            metrics = measure(phases, problems, score)
            reference = metrics if against is None else against
            status, slack, error = constraints.judge(self.task.manifest, metrics, reference, widened=on_test)
            outcome = Outcome(status, phases.seed, metrics, slack, error)
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
            artefact=phases.artefact_hash,
        )


def asked(task: Task) -> list[str]:
    """What this machine lacks of what the task asks for and can do without.

    Raises:
        CannotRunHere: it lacks GPUs.
    """
    notes, here = [], len(processors.usable())
    for phase in task.manifest.phase:
        resources = phase.resources
        if resources.gpus:
            gpus.check(gpus.here(), resources.gpus, resources.gpu_memory_mb, f"{task.id}: phase {phase.name}")
        if resources.cpus > here:
            notes.append(f"{phase.name} asks for {resources.cpus} processors, here are {here}: it runs on those")
    return notes


def measure(phases: Phases, problems: Sequence[Problem], score: Score) -> Metrics:
    """Predict and score every problem; values in the order of the problems."""
    found: list[Scores] = []
    for problem in problems:
        outputs = phases.predict(problem)
        with judged():
            found.append(score(problem, outputs))
    names = [name for name in found[0] if all(name in scores for scores in found)]
    return {name: Measure([s[name][0] for s in found], [s[name][1] for s in found]) for name in names}


def store(folder: Path, outcome: Outcome, kept: Path | None) -> None:
    """Keep a baseline and its artefact, whole or not at all."""
    new = folder.with_suffix(".new")
    scratch.remove(new)  # of one who was killed: we hold the lock
    with home.named(folder):
        scratch.own(new, None, 0o700)
        if kept is not None:
            shutil.copytree(kept, new / "artefact")
        write(new / "outcome.json", outcome)
        new.rename(folder)


def write(path: Path, outcome: Outcome) -> None:
    """Write an outcome whole or not at all."""
    new = path.with_suffix(f".{os.getpid()}")
    with home.named(path):
        new.write_text(json.dumps(outcome.to_json()))
        new.rename(path)


def load(path: Path) -> Outcome:
    """Read what :func:`write` wrote."""
    return Outcome.from_json(json.loads(path.read_text()))
