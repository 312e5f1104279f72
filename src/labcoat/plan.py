"""Plan: what identifies a run, looked up and checked before anything is written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labcoat import catalog, editor, parameters, strategies
from labcoat.budget import Limits
from labcoat.errors import InputError
from labcoat.journal import canonical
from labcoat.lab import Params, Strategy, source_hash
from labcoat.models import Models
from labcoat.task import Task
from labcoat.tree import sha256


@dataclass(frozen=True)
class Confirm:
    """How the search's result is confirmed: the best few candidates, measured again on further training seeds."""

    best: int = 1
    seeds: int = 0

    @classmethod
    def parse(cls, text: str) -> Confirm:
        """Read ``K,S``.

        Raises:
            InputError: it is not two whole numbers, the first at least 1.
        """
        try:
            best, seeds = (int(part) for part in text.split(","))
        except ValueError:
            best, seeds = 0, 0
        if best < 1 or seeds < 0:
            raise InputError(f"--confirm {text}: write it as K,S: the best K candidates, each on S further seeds")
        return cls(best, seeds)


@dataclass(frozen=True)
class Plan:
    """What identifies a run, with the parts that it names. Limits, sandbox and folder are not identity."""

    task: Task
    strategy: Strategy
    params: Params
    models: Models
    steps: int
    seed: int
    confirm: Confirm
    retest: int
    """Further trainings of the chosen code that are tested beside the kept one."""
    limits: Limits

    @classmethod
    def of(
        cls, *, task: str | Task, strategy: str | Strategy, params: dict[str, Any] | None = None,
        params_file: Path | None = None, model: str | Models, steps: int, seed: int, confirm: Confirm | None = None,
        retest: int = 0, limits: Limits | None = None,
    ) -> Plan:  # fmt: skip
        """Look up and check everything that is named.

        Raises:
            InputError: naming what is unknown or out of range.
        """
        if steps < 1:
            raise InputError(f"--steps {steps}: a run has at least one step")
        if seed < 0:
            raise InputError(f"--seed {seed}: a seed is 0 or more")
        if retest < 0:
            raise InputError(f"--retest {retest}: a number of further trainings, 0 or more")
        found, preset = strategies.named(strategy) if isinstance(strategy, str) else (strategy, {})
        checked = parameters.resolve(found, preset, params_file, params)
        models = Models.parse(model) if isinstance(model, str) else model
        models.check(["edit", *found.purposes])
        return cls(
            catalog.find(task) if isinstance(task, str) else task,
            found,
            checked,
            models,
            steps,
            seed,
            confirm or Confirm(),
            retest,
            limits or Limits(),
        )

    def spec(self) -> dict[str, Any]:
        """The run's identity as plain data."""
        return {
            "task": {"id": self.task.id, "version": self.task.manifest.version, "hash": self.task.hash},
            "strategy": {
                "name": self.strategy.name,
                "params": self.params.model_dump(mode="json"),
                "source": source_hash(self.strategy.source()),
            },
            "models": self.models.spec,
            "steps": self.steps,
            "seed": self.seed,
            "confirm": asdict(self.confirm),
            "retest": self.retest,
        }

    def record(self) -> dict[str, Any]:
        """What run.json says beside the bench's facts: spec, manifest, sources."""
        prompts = self.strategy.prompts() | {editor.TEMPLATE: editor.template()}
        return {
            "spec": self.spec(),
            "task": self.task.manifest.model_dump(mode="json"),
            "strategy_source": self.strategy.source(),
            "prompts": {name: sha256(text.encode()) for name, text in prompts.items()},
            "prices": None,
        }

    def folder(self, runs: Path) -> Path:
        """``runs/single/<task>/<strategy>-<hash of the spec without seed>/<seed>``."""
        spec = self.spec()
        del spec["seed"]
        short = sha256(canonical(spec).encode())[:8]
        return runs / "single" / self.task.id / f"{self.strategy.name}-{short}" / str(self.seed)
