"""Plan: what identifies a run, looked up and checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from labcoat import catalog, editor, parameters, strategies
from labcoat.budget import Limits
from labcoat.errors import InputError
from labcoat.fork import Origin
from labcoat.journal import canonical
from labcoat.lab import Params, Strategy, source_hash
from labcoat.models import Models
from labcoat.models.prices import Price, Prices, plain
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
    """What identifies a run, with the parts that it names. Limits, prices, sandbox and folder are not identity."""

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
    given: Mapping[str, Price] = field(default_factory=dict)
    """Prices given by hand, by the name of the model."""
    origin: Origin | None = None
    """The run that this one shares its first steps with."""

    @classmethod
    def of(
        cls, *, task: str | Task, strategy: str | Strategy, params: dict[str, Any] | None = None,
        params_file: Path | None = None, model: str | Models, steps: int, seed: int, confirm: Confirm | None = None,
        retest: int = 0, limits: Limits | None = None, given: Mapping[str, Price] | None = None,
        origin: Origin | None = None,
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
        found_task = catalog.find(task) if isinstance(task, str) else task
        models = Models.parse(model) if isinstance(model, str) else model
        models.check(["edit", *found.purposes])
        if origin:
            for name, theirs, ours in (
                ("task.hash", origin.record["spec"]["task"]["hash"], found_task.hash),
                ("seed", origin.record["spec"]["seed"], seed),
            ):
                if theirs != ours:
                    raise InputError(
                        f"{origin.name}: {name}: that run has {theirs!r}, this one {ours!r}; a fork shares it"
                    )
        for name in given or {}:
            if name not in (asked := sorted({plain(model) for model in models.spec.values()})):
                raise InputError(f"--price {name}: not a model of this run; it has {', '.join(asked)}")
        return cls(
            found_task,
            found,
            checked,
            models,
            steps,
            seed,
            confirm or Confirm(),
            retest,
            limits or Limits(),
            given or {},
            origin,
        )

    @property
    def purposes(self) -> list[str]:
        """What its models are asked for."""
        return ["edit", *self.strategy.purposes]

    def rooms(self) -> dict[str, int]:
        """Tokens that a prompt may have, by purpose."""
        return {purpose: self.models.of(purpose).room(purpose) for purpose in self.purposes}

    def prices(self) -> Prices:
        """The prices of its models today."""
        return Prices.look_up(self.models, self.given)

    def spec(self) -> dict[str, Any]:
        """The run's identity as plain data."""
        fork = {"fork": self.origin.spec} if self.origin else {}
        return fork | {
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

    def record(self, bench: dict[str, Any], prices: Prices) -> dict[str, Any]:
        """What run.json says: spec, manifest and sources, the facts of the bench, and the prices that hold."""
        prompts = self.strategy.prompts() | {editor.TEMPLATE: editor.template()}
        return {
            "spec": self.spec(),
            "task": self.task.manifest.model_dump(mode="json"),
            "strategy_source": self.strategy.source(),
            "prompts": {name: sha256(text.encode()) for name, text in prompts.items()},
            "prices": prices.to_json(),
            "bench": bench,
        } | ({"fork": {"folder": str(self.origin.folder), "step": self.origin.step}} if self.origin else {})

    def folder(self, runs: Path) -> Path:
        """``runs/single/<task>/<strategy>-<hash of the spec without seed>/<seed>``."""
        spec = self.spec()
        del spec["seed"]
        short = sha256(canonical(spec).encode())[:8]
        return runs / "single" / self.task.id / f"{self.strategy.name}-{short}" / str(self.seed)
