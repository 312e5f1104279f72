"""Outcome: what a trial gave, and the one formatter of what a model may see of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from labcoat.manifest import Manifest

Status = Literal[
    "ok", "edit_failed", "crash", "timeout", "out_of_memory", "bad_output", "violation", "tampered"
]  # fmt: skip

ERROR_CAP = 1500  # characters of error text that a model may see (one rule for all strategies)


@dataclass(frozen=True)
class Execution:
    """One process that labcoat started for a candidate: what ran, on what, how it ended, what it left."""

    phase: str
    argv: list[str]
    tree: str  # hash of the code it ran
    exit: int | None  # None when we ended it
    seconds: float
    stdout: str  # head and tail, capped
    stderr: str
    written: dict[str, str] = field(default_factory=dict)  # path -> SHA-256 of what it left
    peak_memory: int = 0  # bytes, largest sum over the process tree that was seen


@dataclass(frozen=True)
class Measure:
    """One metric on one split: a value per problem, in order, and its standard error where the scorer has one."""

    values: list[float]
    errors: list[float | None]

    @property
    def mean(self) -> float:
        """Mean over problems."""
        return math.fsum(self.values) / len(self.values)

    @property
    def error(self) -> float | None:
        """Standard error of the mean over problems, from the problems' own errors; None if one is unknown."""
        if any(e is None for e in self.errors):
            return None
        return math.sqrt(math.fsum((e or 0.0) ** 2 for e in self.errors)) / len(self.errors)


@dataclass(frozen=True)
class Outcome:
    """What one trial gave. ``ok`` is true for status ``ok`` only."""

    status: Status
    seed: int = 0
    metrics: dict[str, Measure] = field(default_factory=dict)
    slack: dict[str, float] = field(default_factory=dict)  # constraint -> distance to its bound; negative = violated
    error: str = ""  # full error text (traceback, reason); models see it through `error_text`
    seconds: float = 0.0
    executions: list[Execution] = field(default_factory=list)
    artefact: str | None = None  # hash of the kept artefact

    @property
    def ok(self) -> bool:
        """Whether the trial counts as a valid measurement."""
        return self.status == "ok"

    def mean(self, metric: str) -> float | None:
        """A metric's mean over problems, None where it was not measured."""
        return self.metrics[metric].mean if metric in self.metrics else None

    def to_json(self) -> dict[str, Any]:
        """Plain data for the journal."""
        metrics = {name: {"values": m.values, "errors": m.errors} for name, m in self.metrics.items()}
        return {**vars(self), "metrics": metrics, "executions": [asdict(execution) for execution in self.executions]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Outcome:
        """The inverse of :meth:`to_json`; unknown fields of later versions are passed over."""
        known = {k: v for k, v in data.items() if k in cls.__dataclass_fields__}
        known["metrics"] = {k: Measure(**m) for k, m in data.get("metrics", {}).items()}
        known["executions"] = [
            Execution(**{k: v for k, v in e.items() if k in Execution.__dataclass_fields__})
            for e in data.get("executions", [])
        ]
        return cls(**known)


def clip(text: str, cap: int) -> str:
    """Keep head and tail of ``text`` within ``cap`` characters, three quarters of them for the tail."""
    if len(text) <= cap:
        return text
    mark = f"\n... [{len(text) - cap} characters left out] ...\n"
    head = max(0, (cap - len(mark)) // 4)
    tail = max(0, cap - len(mark) - head)
    return text[:head] + mark + text[len(text) - tail :]


def error_text(outcome: Outcome, cap: int = ERROR_CAP) -> str:
    """The error as a model may see it: status, then the traceback with its last lines always kept."""
    return clip(f"{outcome.status}: {outcome.error}".strip(), cap)


def metric_line(manifest: Manifest, outcome: Outcome) -> str:
    """The metric as a model may see it: name, value, direction, and how each constraint stands."""
    parts = []
    if manifest.metric.name in outcome.metrics:
        parts.append(manifest.metric.line(outcome.metrics[manifest.metric.name].mean))
    for bound in manifest.constraint:
        slack = outcome.slack.get(manifest.name_of(bound))
        if slack is not None:
            side = bound.side.replace("_", " ")
            verdict = f"holds, {slack:.4g} to spare" if slack >= 0 else f"VIOLATED by {-slack:.4g}"
            value = outcome.metrics[bound.metric].mean
            limit = value - slack if bound.side == "at_least" else value + slack
            parts.append(f"{bound.metric} = {value:.6g} (must be {side} {limit:.6g}: {verdict})")
    return "; ".join(parts)
