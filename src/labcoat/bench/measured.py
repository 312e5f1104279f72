"""What every bench that runs code shares: its scratch folder, and a baseline that is measured once per machine."""

from __future__ import annotations

import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labcoat.bench import constraints, gpus, home, machine, processors, sandbox, scratch
from labcoat.bench.environment import Environment
from labcoat.bench.home import Report
from labcoat.bench.outcome import Measure, Outcome, error_text
from labcoat.bench.own_environment import OwnEnvironment
from labcoat.bench.sandbox import Sandbox
from labcoat.bench.scratch import Scratch
from labcoat.errors import CannotRunHere
from labcoat.task import Task
from labcoat.tree import Code, sha256

Metrics = dict[str, Measure]


class MeasuredBench(ABC):
    """Measures candidates of one task. Use it from the main thread, in a ``with`` block or with :meth:`close`."""

    environment: Environment | OwnEnvironment

    def __init__(self, task: Task, sandbox: Sandbox, report: Report) -> None:
        """Nothing is built or started before :meth:`prepare`."""
        self.task, self.sandbox, self._report = task, sandbox, report
        self._open = ExitStack()
        self._baselines: dict[int, Outcome] = {}

    def prepare(self) -> None:
        """Build or find what a trial needs.

        Raises:
            CannotRunHere: it cannot be made, or this machine has fewer GPUs than a phase needs.
        """
        self._notes = asked(self.task)
        for note in self._notes:
            self._report(note)
        self._prepare()
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
            None for a task whose test needs none, and for a trial that left none.

        Raises:
            CannotRunHere: the machine, the baseline or the scorer failed; that is no outcome.
        """
        against = self._measured(self.baseline(seed)) if self._relative else {}
        with self._candidate(code, seed, against) as found:
            yield found

    def test(self, artefact: Path | None, code: Code, seed: int) -> Outcome:
        """Measure ``code``, with its kept artefact where there is one, on the hidden split, open only meanwhile."""
        against = self._measured(self.baseline_test(seed)) if self._relative else {}
        return self._test(artefact, code, seed, against)

    def baseline_test(self, seed: int) -> Outcome:
        """The baseline on the hidden split."""
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
        """What ``run.json`` says about the bench: sandbox, environment, machine."""
        return {
            "sandbox": sandbox.facts(self.sandbox),
            "environment": {"lock": self.environment.lock, "lock_hash": self.environment.lock_hash},
            "machine": machine.facts(),
            "notes": self._notes,
        }

    def close(self) -> None:
        """End what runs and remove the scratch folder."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @abstractmethod
    def _prepare(self) -> None:
        """Build or find the environment and whatever else a trial needs."""

    @abstractmethod
    def _candidate(
        self, code: Code, seed: int, against: Metrics | None
    ) -> AbstractContextManager[tuple[Outcome, Path | None]]:
        """One trial; ``against`` are the baseline's metrics, None if this is the baseline itself."""

    @abstractmethod
    def _test(self, kept: Path | None, code: Code, seed: int, against: Metrics | None) -> Outcome:
        """One measurement on the hidden split."""

    @abstractmethod
    def _measured_on(self) -> list[str]:
        """What a kept baseline depends on, besides the task, the machine, the sandbox and the seed."""

    def _verdict(self, metrics: Metrics, seed: int, against: Metrics | None, on_test: bool) -> Outcome:
        """The outcome of code with these metrics: do its constraints hold; the baseline is held against itself."""
        reference = metrics if against is None else against
        status, slack, error = constraints.judge(self.task.manifest, metrics, reference, widened=on_test)
        return Outcome(status, seed, metrics, slack, error)

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
        on = [self.task.hash, *self._measured_on(), json.dumps(machine.facts()), self.sandbox.level, str(seed)]
        return home.folder("baselines") / sha256("\n".join(on).encode())[:16]


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
