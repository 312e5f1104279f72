"""Lab: what a strategy sees, and all it sees.

A strategy is one coroutine ``async def search(lab, params)``. Each verb of the lab yields a request object to our
driver and gets the result sent back; there is no event loop, and awaiting anything else is an error. So a strategy can
touch nothing but the lab, and everything it did can be played again from the journal.
"""

from __future__ import annotations

import inspect
import random
import re
import string
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from labcoat.errors import InputError, of_field
from labcoat.manifest import Metric
from labcoat.models.chat import Part, Prompt, Reply
from labcoat.tree import Code, diff, matches, sha256

__all__ = [
    "Brief", "Code", "Edit", "Lab", "Metric", "OutOfSteps", "Params", "Part", "Prompt", "Reply", "Strategy", "Template",
    "Trial", "diff", "record",
]  # fmt: skip

T = TypeVar("T")
Vector = list[float]
Job = Callable[["Lab"], Awaitable[T]]


class OutOfSteps(Exception):
    """No trial is left in this scope. A strategy need not catch it: it ends the search."""


@dataclass(frozen=True, eq=False)
class Edit:
    """A proposed change: the parent it was made from, and the code it gives. ``reason`` says why it was rejected."""

    key: str
    base: Trial = field(repr=False)
    code: Code = field(repr=False)
    instruction: str
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether the edit gave new code."""
        return not self.reason


@dataclass(frozen=True, eq=False)
class Trial:
    """One validation execution as an agent may see it. The baseline is one too, with no parent."""

    key: str
    code: Code = field(repr=False)
    ok: bool
    status: str
    value: float | None
    """The task's metric; None where there is no valid measurement."""
    line: str
    """The metric line: name, value, direction, constraints."""
    error: str
    """Why it is not ok, clipped; empty if it is."""
    parent: Trial | None = field(default=None, repr=False)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def result(self) -> str:
        """How it ended, in a line: the metric line, or the status and the last line of the error."""
        last = self.error.removeprefix(f"{self.status}: ").rpartition("\n")[2]
        return self.line if self.ok else f"{self.status}: {last}"


@dataclass(frozen=True)
class Brief:
    """All that an agent may know of its task before the first trial."""

    prompt: str
    metric: Metric
    editable: tuple[str, ...]
    """Globs of the files that may be changed."""
    baseline: Trial

    def better(self, a: Trial, b: Trial) -> bool:
        """Whether ``a`` is a valid measurement and strictly better than ``b``."""
        return a.value is not None and (b.value is None or self.metric.better(a.value, b.value))

    def files(self, code: Code) -> list[Part]:
        """The editable files of ``code`` as parts of a prompt."""
        return [Part("file", code.text(path), path) for path in code if matches(path, self.editable)]


class Template:
    """A prompt template in a text file beside its strategy: ``autoresearch.idea.md`` for ``autoresearch.py``."""

    def __init__(self, beside: str, name: str) -> None:
        """Read the template ``name`` that lies beside the file ``beside``."""
        module = Path(beside)
        self.path = module.with_name(f"{module.stem}.{name}.md")
        self._template = string.Template(self.path.read_text(encoding="utf-8").strip())

    def __call__(self, **values: object) -> str:
        """Fill in the ``$names``; a missing one is an error."""
        return self._template.substitute({k: str(v) for k, v in values.items()})


def record(**fields: str | Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with these fields, all required: each the name of a type, or a schema."""
    properties = {name: {"type": of} if isinstance(of, str) else dict(of) for name, of in fields.items()}
    return {"type": "object", "properties": properties, "required": [*fields], "additionalProperties": False}


class Params(BaseModel):
    """Base of a strategy's parameters: checked, frozen, a line of documentation under each field."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


@dataclass(frozen=True)
class Strategy:
    """How a strategy is registered: its name, its coroutine and its parameters; a run can name and rebuild it."""

    name: str
    search: Callable[[Lab, Any], Awaitable[None]]
    params: type[Params] = Params
    purposes: tuple[str, ...] = ()
    """What it asks a model for, besides edits."""
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    """Named sets of parameter values that differ from the defaults: ``original``, ``released``."""

    def __post_init__(self) -> None:
        """Check the name, and that the defaults and the presets are values that the parameters allow.

        Raises:
            InputError: naming the strategy, the preset and the parameter.
        """
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", self.name):
            raise InputError(f"strategy {self.name!r}: a name has small letters, digits, and . _ - between them")
        for preset, values in {"": {}, **self.presets}.items():
            try:
                self.params.model_validate(values)
            except ValidationError as error:
                of = f"preset {preset!r}" if preset else "defaults"
                wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {of_field(e)}" for e in error.errors())
                raise InputError(f"strategy {self.name}: {of}: {wrong}") from None

    @property
    def summary(self) -> str:
        """First line of the coroutine's documentation."""
        return (inspect.getdoc(self.search) or "").partition("\n")[0]

    @property
    def description(self) -> str:
        """Documentation of the module that holds it."""
        return inspect.getdoc(inspect.getmodule(self.search)) or ""

    def parameters(self) -> dict[str, dict[str, Any]]:
        """Each parameter by name: its default, its value in every preset, and its meaning, as plain data."""
        sets = [{}, *self.presets.values()]
        default, *presets = (self.params.model_validate(values).model_dump(mode="json") for values in sets)
        return {
            name: {
                "default": default[name],
                "presets": {preset: values[name] for preset, values in zip(self.presets, presets, strict=True)},
                "description": field.description,
            }
            for name, field in self.params.model_fields.items()
        }

    @property
    def path(self) -> Path:
        """The file that holds it.

        Raises:
            InputError: it was typed in and is in no file.
        """
        code = getattr(inspect.unwrap(self.search), "__code__", None)
        path = Path(code.co_filename if code else "")
        if not path.is_file():
            raise InputError(f"strategy {self.name}: its source is part of a run's record; define it in a file")
        return path

    def source(self) -> dict[str, str]:
        """Its file, its rules and the templates beside it, by name: part of the run's record."""
        path = self.path
        rules, templates = (sorted(path.parent.glob(f"{path.stem}{beside}")) for beside in ("_rules.py", ".*.md"))
        return {p.name: p.read_text(encoding="utf-8") for p in [path, *rules, *templates]}

    def prompts(self) -> dict[str, str]:
        """The templates among its source."""
        return {name: text for name, text in self.source().items() if name.endswith(".md")}


def source_hash(source: dict[str, str]) -> str:
    """Identity of a strategy's source."""
    return sha256("\0".join(f"{name}\0{text}" for name, text in sorted(source.items())).encode())


@dataclass(frozen=True)
class Request(Generic[T]):
    """What a verb of the lab asks of the driver. Awaiting it yields it; the driver sends the result back."""

    lab: Lab

    def __await__(self) -> Generator[Request[T], T, T]:
        return (yield self)


@dataclass(frozen=True)
class AskRequest(Request[Reply]):
    """A question to a model."""

    purpose: str
    prompt: Prompt
    schema: dict[str, Any] | None


@dataclass(frozen=True)
class EditRequest(Request[Edit]):
    """A change of code by the shared editor."""

    base: Trial
    instruction: str
    error: str


@dataclass(frozen=True)
class TrialRequest(Request[Trial]):
    """A validation execution."""

    edit: Edit
    facts: dict[str, Any]


@dataclass(frozen=True)
class ParallelRequest(Request[list[Any]]):
    """A batch of jobs, each with a child lab that owns one step."""

    jobs: Sequence[Job[Any]]


@dataclass(frozen=True)
class EmbedRequest(Request[Vector]):
    """A vector for a code."""

    code: Code


class Lab:
    """The verbs of a strategy. Only :meth:`trial` spends a step; thinking is free but metered."""

    def __init__(self, brief: Brief, rng: random.Random, left: Callable[[], int]) -> None:
        """Made by the driver, one per scope."""
        self.brief = brief
        self.rng = rng
        """Seeded per scope; the only randomness a strategy may use."""
        self._left = left

    @property
    def left(self) -> int:
        """Trials still available to this scope."""
        return self._left()

    async def ask(self, purpose: str, prompt: Prompt, schema: dict[str, Any] | None = None) -> Reply:
        """Ask the model. Free of steps; metered in tokens and money.

        Of a text with more than 8,000 characters head and tail come back.
        """
        return await AskRequest(self, purpose, prompt, schema)

    async def edit(self, base: Trial, instruction: str, error: str = "") -> Edit:
        """Have the shared editor change the code of ``base``, which becomes the parent of what comes out."""
        return await EditRequest(self, base, instruction, error)

    async def trial(self, edit: Edit, **facts: Any) -> Trial:
        """Validate an edit: ONE step, also if the edit was rejected (then nothing runs). ``facts`` are annotations.

        Raises:
            OutOfSteps: no trial is left in this scope.
        """
        return await TrialRequest(self, edit, facts)

    async def parallel(self, jobs: Sequence[Job[T]]) -> list[T]:
        """Run jobs with a child lab of one step each: cut to ``left``, numbered and returned in list order.

        A job that gets no step is not begun, so the list that comes back may be shorter. A child that ends without
        a trial gives its step back.

        Raises:
            OutOfSteps: no trial is left in this scope.
        """
        return await ParallelRequest(self, jobs)

    async def embed(self, code: Code) -> Vector:
        """A vector for ``code``. Recorded, free."""
        return await EmbedRequest(self, code)
