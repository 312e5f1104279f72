"""What scoring knows of a run: plain data, folded from its journal once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from labcoat.manifest import Metric
from labcoat.scoring.measures import Mode


@dataclass(frozen=True)
class Reading:
    """One measurement: how it ended, and the task's metric where it was measured, be it valid or not."""

    status: str
    value: float | None

    @property
    def valid(self) -> float | None:
        """The metric of a valid measurement."""
        return self.value if self.status == "ok" else None


@dataclass(frozen=True)
class Run:
    """A run as its journal tells it."""

    folder: str
    content: str
    """SHA-256 of its journal: copies of a run have the same."""
    spec: Mapping[str, Any] = field(hash=False)
    """Its identity, see run.json."""
    metric: Metric = field(hash=False)
    marks: tuple[str, ...]
    """What a reader of any table must know: ``self-reported``, ``no sandbox``, ``simulated``, ``fork``."""
    finished: bool
    baseline: Reading | None
    """On validation."""
    trials: tuple[Reading, ...]
    chosen: int | None
    """The step that was tested; 0 is the baseline."""
    test: Reading | None
    test_baseline: Reading | None
    noise: float | None
    """Standard error of what a gain on test is compared with: of the untouched code, in the metric's own unit."""
    tokens: int
    """All of them; a fork's with what it shares, as its result rests on that, too."""
    seconds: float
    """From the end of the baseline's measurement to the last event, without the time in which nobody worked on it."""

    @property
    def task(self) -> str:
        """Id of the task."""
        name: str = self.spec["task"]["id"]
        return name

    @property
    def seed(self) -> int:
        """Seed of the run."""
        seed: int = self.spec["seed"]
        return seed

    @property
    def budget(self) -> int:
        """Trials that it may spend: T in the paper."""
        steps: int = self.spec["steps"]
        return steps

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return vars(self) | {
            "metric": self.metric.model_dump(mode="json"),
            "marks": list(self.marks),
            "trials": [[trial.status, trial.value] for trial in self.trials],
            **{name: reading and asdict(reading) for name, reading in self._readings.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """The inverse of :meth:`to_json`."""
        fields = dict(data)
        fields["metric"] = Metric.model_validate(fields["metric"])
        fields["marks"] = tuple(fields["marks"])
        fields["trials"] = tuple(Reading(*trial) for trial in fields["trials"])
        for name in ("baseline", "test", "test_baseline"):
            fields[name] = fields[name] and Reading(**fields[name])
        return cls(**fields)

    @property
    def _readings(self) -> dict[str, Reading | None]:
        return {"baseline": self.baseline, "test": self.test, "test_baseline": self.test_baseline}


@dataclass(frozen=True)
class Geometry:
    """Where the codes of a run lie in an embedding."""

    shape: Mapping[Mode, Mapping[str, float]]
    """Spread, Uniqueness, Reach and Effective dim: of the valid trials' codes, or, as released, of all."""
    distances: tuple[float, ...]
    """Of each trial's code to the baseline's."""
