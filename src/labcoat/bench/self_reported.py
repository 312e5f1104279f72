"""The bench of a user's own project: its command runs on a copy of its own, and the number is what the command says.

A trial's workspace is fresh and writable. It is seen at ``/ws`` and at the project's real place, so that absolute paths
and editable installs meet the candidate's files; the user's own folder is not mounted anywhere. What a command leaves
in it (caches, checkpoints) is gone after the trial.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from labcoat.bench import command, home, numbers, own_environment, scratch
from labcoat.bench.command import Bind, Command, Limits
from labcoat.bench.measured import MeasuredBench, Metrics
from labcoat.bench.outcome import Execution, Measure, Outcome
from labcoat.bench.outputs import BadOutput
from labcoat.bench.own_environment import OwnEnvironment
from labcoat.bench.phases import Failed, execution, failure, fill, judged, writing
from labcoat.bench.process import Finished
from labcoat.errors import InputError
from labcoat.manifest.phase import Phase
from labcoat.manifest.reported import Mount
from labcoat.tree import Code, sha256

WORKSPACE = "/ws"


class SelfReportedBench(MeasuredBench):
    """The bench of a self-reported task. Its sandbox must be bubblewrap, which shows a copy at the project's place."""

    environment: OwnEnvironment

    def _prepare(self) -> None:
        manifest = self.task.manifest
        assert manifest.environment.path is not None, "the manifest has it"
        self.environment = own_environment.find(Path(manifest.environment.path))
        self._places = own_environment.spelled(manifest.files.place) if manifest.files.place else []
        for number, mount in enumerate(manifest.data.mounts):
            if not os.path.exists(mount.source):
                path = self.task.folder / "task.toml"
                raise InputError(f"{path}: data.mounts.{number}.from: {mount.source}: no such folder or file")
        for bind in [*self.environment.binds(self._places), *self._data()]:
            own_environment.check_reachable(bind.host)
        self._data_hash = fingerprint(manifest.data.mounts)

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says about the bench: also the state of the mounted data."""
        return super().facts() | {"dataset": {"fingerprint": self._data_hash, "scale": "own"}}

    def _measured_on(self) -> list[str]:
        return [self.environment.lock_hash, self._data_hash]

    @contextmanager
    def _candidate(self, code: Code, seed: int, against: Metrics | None) -> Iterator[tuple[Outcome, Path | None]]:
        yield self._outcome(code, seed, against, on_test=False), None

    def _test(self, kept: Path | None, code: Code, seed: int, against: Metrics | None) -> Outcome:
        return self._outcome(code, seed, against, on_test=True)

    def _outcome(self, code: Code, seed: int, against: Metrics | None, on_test: bool) -> Outcome:
        """Run the command in a fresh workspace, then for the test the test command, if there is one, in the same."""
        started = time.monotonic()
        executions: list[Execution] = []
        phases = self.task.manifest.phase if on_test else self.task.manifest.phase[:1]
        with self._scratch.part("trial") as folder:
            try:
                workspace = write(code, folder / "ws")
                for phase in phases:
                    done = self._run(phase, workspace, code, seed, executions)
                outcome = self._verdict(self._numbers(workspace, done), seed, against, on_test)
            except Failed as failed:
                outcome = Outcome(failed.status, seed, error=str(failed))
        return replace(outcome, seconds=time.monotonic() - started, executions=executions)

    def _run(self, phase: Phase, workspace: Path, code: Code, seed: int, executions: list[Execution]) -> Finished:
        """Run the command of a phase; what it reports is written by itself and not left from before.

        Raises:
            Failed: with the trial's status.
        """
        if report := self.task.manifest.report:
            numbers.forget(workspace, report.file)
        argv = fill(phase.argv, {}, seed)
        done = self.sandbox.run(self._command(argv, workspace, phase, seed))
        executions.append(execution(phase.name, argv, code.sha, done))
        if done.ended or done.exit:
            home.check_space(workspace)
            raise failure(phase, done)
        return done

    @contextmanager
    def aside(self) -> Iterator[Command]:
        """The environment's ``python`` as a command that meets what a trial of the unchanged project meets."""
        with self._scratch.part("aside") as folder:
            code = self.task.baseline
            yield self._command(["python"], write(code, folder / "ws"), self.task.manifest.phase[0], seed=0)

    def _command(self, argv: Sequence[str], workspace: Path, phase: Phase, seed: int) -> Command:
        """A command on ``workspace``, within the limits of ``phase``."""
        resources = phase.resources
        program = self.environment.binds(self._places)
        places = [Bind(workspace, str(place), writable=True) for place in self._places]
        # Outer folders first: the environment may lie in the project, or the project in the environment's folder.
        shown = sorted([*program, *places], key=lambda bind: bind.inside.count("/"))
        within = [replace(bind, inside=path) for bind in program for path in self._in_workspace(Path(bind.inside))]
        return Command(
            argv=[self.environment.python if argv[0] == "python" else argv[0], *argv[1:]],
            binds=[Bind(workspace, WORKSPACE, writable=True), *within, *self._data()],
            program=shown,
            env=command.variables(resources.cpus, seed) | self.environment.variables,
            limits=Limits(phase.timeout, **resources.model_dump()),
            cwd=WORKSPACE,
        )

    def _data(self) -> list[Bind]:
        """The data of the user's: at their real place, or in the workspace, wherever it is seen."""
        found = []
        for mount in self.task.manifest.data.mounts:
            tops = [WORKSPACE, *map(str, self._places)] if mount.at else []
            inside = [f"{top}/{mount.at}" for top in tops] or [mount.source]
            found += [Bind(Path(mount.source).resolve(), path) for path in inside]
        return found

    def _in_workspace(self, path: Path) -> list[str]:
        """Where ``path``, if it lies in the project, is seen in the workspace."""
        return [f"{WORKSPACE}/{path.relative_to(place)}" for place in self._places if path.is_relative_to(place)]

    def _numbers(self, workspace: Path, done: Finished) -> Metrics:
        """The metric, and what constraints are about, as the command reported them.

        Raises:
            Failed: one is missing or not finite.
        """
        manifest = self.task.manifest
        optional = {bound.metric for bound in manifest.constraint if bound.kind == "declared"}
        names = [manifest.metric.name, *(bound.metric for bound in manifest.constraint)]
        found: Metrics = {}
        with judged():
            for name in dict.fromkeys(names):
                try:
                    value = (
                        numbers.written(name, workspace, manifest.report.file)
                        if manifest.report
                        else numbers.printed(name, done.stdout, done.stderr)
                    )
                except BadOutput:
                    if name in optional - {manifest.metric.name}:
                        continue
                    raise
                if not math.isfinite(value):
                    raise BadOutput(f"{name} is {value}: a result is a finite number")
                found[name] = Measure([value], [None])
        return found


def write(code: Code, workspace: Path) -> Path:
    """Write the candidate's files where a worker may change them; scripts can be executed.

    Raises:
        Failed: its paths cannot exist together.
    """
    with writing(workspace.parent):
        code.write(workspace)
        for path, file in code.items():
            if file.read()[:2] == b"#!":
                (workspace / path).chmod(0o755)
        scratch.set_modes(workspace, 0o755, 0o644, command.user_of("worker"))
    return workspace


def fingerprint(mounts: Sequence[Mount]) -> str:
    """Hash of names, sizes and times of all mounted files: a change is noticed without reading gigabytes."""
    lines = []
    for mount in mounts:
        top = os.path.realpath(mount.source)
        files = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names] or [top]
        for file in sorted(files):
            state = os.lstat(file)
            lines.append(f"{mount.at} {file} {state.st_size} {state.st_mtime_ns}")
    return sha256("\n".join(lines).encode("utf-8", "surrogateescape"))
