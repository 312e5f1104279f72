"""The phases of a trial: fit, then predict for every problem, each in a sandbox, each leaving an Execution."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from labcoat.bench import artefact, command, home, outputs, scratch
from labcoat.bench.command import Bind, Command, Limits, Sandbox
from labcoat.bench.dataset import Problem, numbered
from labcoat.bench.environment import Environment
from labcoat.bench.outcome import Execution, Status
from labcoat.bench.outputs import BadOutput, Tampered
from labcoat.bench.process import Finished
from labcoat.manifest.phase import Phase
from labcoat.task import Task
from labcoat.tree import Code, sha256


class Failed(Exception):
    """The trial ends here, with a status of its own."""

    def __init__(self, status: Status, error: str) -> None:
        """``error`` is what the model will read."""
        super().__init__(error)
        self.status: Status = status


class Phases:
    """Runs the phases of one candidate in the scratch folder ``folder``."""

    def __init__(
        self,
        task: Task,
        environment: Environment,
        sandbox: Sandbox,
        code: Code,
        seed: int,
        folder: Path,
        assets: Path,
    ) -> None:
        """Nothing runs yet."""
        self.task, self.environment, self.sandbox = task, environment, sandbox
        self.code, self.seed, self.folder, self.assets = code, seed, folder, assets
        self.executions: list[Execution] = []
        self.artefact: Path | None = None
        self.artefact_hash: str | None = None

    def write_code(self) -> None:
        """Put the candidate's files, and the task's own program, where a worker can read but not change them.

        Raises:
            Failed: its paths cannot exist together.
        """
        with writing(self.folder):
            for name, code in self._programs.items():
                code.write(self.folder / name)
                scratch.set_modes(self.folder / name, 0o555, 0o444)

    def fit(self, train: Path) -> None:
        """Run ``fit``, if the task has it, and take the artefact that it leaves: of the last unit, or of each.

        Raises:
            Failed: with the trial's status.
        """
        phase = self.task.phase("fit")
        if phase is None:
            return
        units = numbered(train) * phase.passes if phase.feed == "units" else [train]
        left, files, state = scratch.own(self.folder / "left", None, 0o755), {}, self._empty
        for number, unit in enumerate(units):
            written, target = self._writable("fit"), left / str(number)
            before = [Bind(state, "/state")] if phase.feed == "units" else []
            self._run(phase, [Bind(unit, "/train"), *before, Bind(written, "/artefact", writable=True)])
            with judged(), home.named(self.folder):
                files[number] = artefact.keep(written, target, cap_of(phase), self._data_only)
            self.executions[-1] = replace(self.executions[-1], written=files[number])
            scratch.remove(written)
            if not self._each and number:
                scratch.remove(state)
            state = target
        if self._each:
            self._own(left, {f"{number}/{path}": sha for number, own in files.items() for path, sha in own.items()})
        else:
            self._own(state, files[len(units) - 1])

    def take(self, kept: Path) -> None:
        """Copy an artefact that was kept to where nobody can change it meanwhile."""
        target = self.folder / "left"
        with judged(), home.named(self.folder):
            self._own(target, artefact.keep(kept, target, None))

    def predict(self, problem: Problem) -> dict[str, bytes]:
        """Run ``predict`` on one problem; the verified bytes of its outputs, by file name.

        Raises:
            Failed: with the trial's status.
        """
        phase = self.task.phase("predict")
        assert phase is not None, "the manifest has this phase"
        out = self._writable(f"out-{problem.name}")
        kept = self._empty if self.artefact is None else self.artefact / (problem.name if self._each else "")
        self._run(phase, [Bind(problem.inputs, "/inputs"), Bind(kept, "/artefact"), Bind(out, "/out", writable=True)])
        with judged(), home.named(self.folder):
            found = outputs.collect(out, self.task.manifest.output, problem.dims)
        written = {name: sha256(content) for name, content in found.items()}
        self.executions[-1] = replace(self.executions[-1], written=written)
        scratch.remove(out)
        return found

    def _own(self, folder: Path, files: dict[str, str]) -> None:
        self.artefact, self.artefact_hash = folder, artefact.hash_of(files)

    @property
    def _programs(self) -> dict[str, Code]:
        return {"candidate": self.code} | ({"harness": self.task.harness} if self.task.harness else {})

    @property
    def _empty(self) -> Path:
        return home.make(home.folder("etc") / "empty")

    @property
    def _each(self) -> bool:
        """Whether the artefact is a folder with one for each unit."""
        predict = self.task.phase("predict")
        return predict is not None and predict.after == "each"

    @property
    def _data_only(self) -> bool:
        predict = self.task.phase("predict")
        return predict is not None and predict.code == "harness"

    def _writable(self, name: str) -> Path:
        with home.named(self.folder):
            return scratch.own(self.folder / name, command.user_of("worker"), 0o700)

    def _run(self, phase: Phase, binds: Sequence[Bind]) -> None:
        at = self.sandbox.path
        assets = [Bind(self.assets, "/assets")] if self.task.manifest.data.asset else []
        binds = [Bind(self.folder / phase.code, "/ws"), *assets, *binds]
        resources = phase.resources
        argv = fill(phase.argv, {bind.inside[1:]: at(bind) for bind in binds}, self.seed)
        if argv[0] == "python":
            argv[0] = self.environment.interpreter(at)
        request = Command(
            argv=argv,
            binds=binds,
            program=self.environment.binds,
            env=command.variables(resources.cpus, self.seed) | self.environment.variables(at),
            limits=Limits(phase.timeout, **resources.model_dump()),
            cwd="/ws",
        )
        done = self.sandbox.run(request)
        shown = fill(phase.argv, {bind.inside[1:]: bind.inside for bind in binds}, self.seed)
        self.executions.append(execution(phase.name, shown, self._programs[phase.code].sha, done))
        if done.ended or done.exit:
            home.check_space(self.folder)
            raise failure(phase, done)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn paths of a candidate that cannot be written below ``folder`` into its trial's status."""
    try:
        with home.named(folder):
            yield
    except OSError as error:  # a file where a folder must be, a name that is too long
        raise Failed("crash", f"the files cannot be written: {error.strerror}") from None


@contextmanager
def judged() -> Iterator[None]:
    """Turn what is wrong with the files that a worker left into the trial's status."""
    try:
        yield
    except BadOutput as error:
        raise Failed("bad_output", str(error)) from None
    except Tampered as error:
        raise Failed("tampered", str(error)) from None


def fill(argv: Sequence[str], paths: Mapping[str, str], seed: int) -> list[str]:
    """``argv`` with its placeholders filled in."""
    return [part.format(**paths, seed=seed) for part in argv]


def cap_of(phase: Phase) -> int:
    """Bytes that the artefact of one process may have."""
    return (phase.artefact_mb or phase.resources.disk_mb) << 20


def execution(name: str, argv: list[str], tree: str, done: Finished) -> Execution:
    """The record of a finished process."""
    return Execution(name, argv, tree, done.exit, done.seconds, done.stdout, done.stderr, {}, done.peak_memory)


def failure(phase: Phase, done: Finished) -> Failed:
    """Status and text for a process that did not end well."""
    said = (done.stderr.strip() or done.stdout.strip()).strip()
    if done.ended == "timeout":
        return Failed("timeout", f"{phase.name} ran longer than {phase.timeout:g} s and was ended\n{said}")
    if done.ended == "memory":
        limit = phase.resources.memory_mb
        return Failed("out_of_memory", f"{phase.name} used more than {limit} MiB of memory and was ended\n{said}")
    if done.ended == "disk":
        limit = phase.resources.disk_mb
        return Failed("crash", f"{phase.name} wrote more than {limit} MiB and was ended\n{said}")
    if done.ended == "tampered":
        return Failed("tampered", f"{phase.name} changed files that it may only read")
    return Failed("crash", f"{phase.name} ended with {ending(done.exit or 0)}\n{said}")


def ending(code: int) -> str:
    """What an exit code means; a sandbox gives 128 + n for signal n."""
    number = -code if code < 0 else code - 128
    try:
        return f"exit code {code} (signal {signal.Signals(number).name})" if number > 0 else f"exit code {code}"
    except ValueError:
        return f"exit code {code}"
