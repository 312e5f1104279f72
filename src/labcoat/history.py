"""History: what a run did, folded from its folder alone. Listings, diffs, logs and exports all read this."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from labcoat.bench.outcome import Outcome
from labcoat.embedding import text_of
from labcoat.errors import InputError
from labcoat.journal import Event, Journal, key_order
from labcoat.journal.lock import working
from labcoat.ledger import Ledger
from labcoat.manifest import Manifest
from labcoat.packing import unpack_changes, unpack_code, unpack_outcome
from labcoat.record import RECORD, read_record
from labcoat.tree import Code, matches


@dataclass(frozen=True)
class Step:
    """One trial of a run. Step 0 is the baseline."""

    number: int
    key: str
    parent: int | None
    outcome: Outcome
    facts: dict[str, Any]
    seconds: float
    at: str
    edit: str | None

    def value(self, metric: str) -> float | None:
        """The metric, None where there is no valid measurement."""
        return self.outcome.metrics[metric].mean if self.outcome.ok else None


class History:
    """A run folder, read."""

    def __init__(self, folder: Path) -> None:
        """Read the run in ``folder``.

        Raises:
            InputError: there is no run, or a later version of labcoat wrote it.
        """
        record = read_record(folder)
        if record is None:
            raise InputError(f"{folder}: no run there (no {RECORD}); give the folder of a run, see `labcoat run`")
        self.folder = folder
        self.record = record
        self.journal = Journal(folder)
        try:
            self.manifest = Manifest.model_validate(record["task"], extra="ignore")  # later versions may say more
        except ValidationError as error:
            raise InputError(f"{folder / RECORD}: task: {error.error_count()} field(s) are wrong; restore it") from None
        self.metric = self.manifest.metric

    @classmethod
    def find(cls, path: Path) -> History:
        """The run in ``path``, or the only one below it.

        Raises:
            InputError: there is none, or several, which are named.
        """
        if (path / RECORD).exists():
            return cls(path)
        found = sorted(p.parent for p in path.glob(f"**/{RECORD}") if (p.parent / "events.jsonl").exists())
        if len(found) == 1:
            return cls(found[0])
        if not found:
            raise InputError(f"{path}: no run there; `labcoat run` says where it puts one")
        listed = "".join(f"\n  {p}" for p in found[:20])
        listed += f"\n  ... and {len(found) - 20} more" if len(found) > 20 else ""
        raise InputError(f"{path}: {len(found)} runs there, name one of them:{listed}")

    @property
    def spec(self) -> dict[str, Any]:
        """The run's identity."""
        spec: dict[str, Any] = self.record["spec"]
        return spec

    @property
    def sandbox(self) -> str:
        """The level that was enforced: ``bwrap``, ``none``, or ``none needed`` (no candidate code is executed)."""
        level: str = self.record["bench"]["sandbox"]["level"]
        return level

    @cached_property
    def steps(self) -> list[Step]:
        """The trials, in the order of their numbering; step 0 is the baseline."""
        events = [e for e in self._finished() if e["kind"] in ("baseline", "trial")]
        events.sort(key=lambda e: () if e["kind"] == "baseline" else key_order(e["key"]))
        numbers = {e["key"]: n for n, e in enumerate(events)}
        return [
            Step(
                number=numbers[e["key"]],
                key=e["key"],
                parent=numbers.get(e["request"].get("parent")),
                outcome=unpack_outcome(e["result"], self.journal.blobs),
                facts=e["request"].get("facts", {}),
                seconds=e["seconds"],
                at=e["at"],
                edit=e["request"].get("edit"),
            )
            for e in events
        ]

    @property
    def baseline(self) -> Step | None:
        """The baseline, once it is measured."""
        return self.steps[0] if self.steps else None

    @property
    def trials(self) -> list[Step]:
        """The steps that count."""
        return self.steps[1:]

    @cached_property
    def best(self) -> Step | None:
        """The best valid step so far, the baseline included; among equals the first."""
        return self.best_of(self.steps)

    def best_of(self, steps: list[Step]) -> Step | None:
        """The best valid one of some steps; among equals the first."""
        best: Step | None = None
        for step in steps:
            value = step.value(self.metric.name)
            known = best.value(self.metric.name) if best else None
            if value is not None and (known is None or self.metric.better(value, known)):
                best = step
        return best

    @property
    def status(self) -> str:
        """``finished``; ``running`` while a process works on it; ``stopped`` where it can be resumed."""
        if self.journal.finished("end"):
            return "finished"
        return "running" if working(self.folder / "lock") else "stopped"

    @property
    def warnings(self) -> list[str]:
        """Named warnings: the baseline differs from the card, no sandbox, or the project itself says the numbers."""
        event = self.journal.finished("baseline")
        drift = [event["result"]["warning"]] if event and "warning" in event["result"] else []
        exposed = ["unsandboxed: candidate code ran without a sandbox; nothing kept it from reading hidden answers"]
        said = [
            "self-reported: every number is what the project's own code says; read the change before you believe it"
        ]
        untested = ["no-test-command: the test is the command measured again, on the same data as the search"]
        own = self.manifest.integrity == "self-reported"
        return [
            *drift,
            *(exposed if self.sandbox == "none" else []),
            *(said if own else []),
            *(untested if own and not self.manifest.has_test else []),
        ]

    def test_outcome(self, key: str = "test") -> Outcome | None:
        """Outcome on the hidden split: of what was chosen, or with ``test/baseline`` of the baseline."""
        event = self.journal.finished(key)
        return unpack_outcome(event["result"], self.journal.blobs) if event else None

    @property
    def chosen(self) -> Step | None:
        """The step that was tested."""
        event = self.journal.finished("confirm")
        return next((s for s in self.steps if event and s.key == event["request"]["chosen"]), None)

    def confirmed(self) -> list[tuple[Step, list[Outcome]]]:
        """Each candidate (and the baseline) with its measurements on further seeds; empty without `--confirm`."""
        found: dict[str, list[Outcome]] = {}
        for event in self._finished():
            if event["kind"] == "measure":
                outcome = unpack_outcome(event["result"], self.journal.blobs)
                found.setdefault(event["request"]["trial"], []).append(outcome)
        return [(step, found[step.key]) for step in self.steps if step.key in found]

    def tested_again(self) -> list[Outcome]:
        """Test outcomes of the further trainings of `--retest`."""
        events = [e for e in self._finished() if e["key"].startswith("test/again/")]
        return [unpack_outcome(e["result"], self.journal.blobs) for e in events]

    def code(self, step: Step) -> Code:
        """The code of a step."""
        begin = self.journal.finished("begin")
        assert begin is not None, "a run with steps has begun"
        baseline = unpack_code(begin["result"]["code"], self.journal.blobs)
        edit = self.journal.finished(step.edit) if step.edit else None
        return unpack_changes(baseline, edit["result"]["changes"], self.journal.blobs) if edit else baseline

    def text(self, step: Step) -> str:
        """What of a step's code is embedded: its editable files."""
        code = self.code(step)
        return text_of(code, [path for path in code if matches(path, self.manifest.files.editable)])

    def step(self, name: str) -> Step:
        """A step by its number, or ``best`` or ``baseline``.

        Raises:
            InputError: the run has no such step.
        """
        if name == "best" and self.best:
            return self.best
        number = 0 if name == "baseline" else int(name) if name.isdecimal() else -1
        if not self.steps:
            raise InputError(f"{self.folder}: it has no steps yet")
        if not 0 <= number < len(self.steps):
            raise InputError(
                f"{self.folder}: no step {name!r}; it has steps 0 (the baseline) to {len(self.steps) - 1}, or `best`"
            )
        return self.steps[number]

    def events_of(self, step: Step) -> Iterator[Event]:
        """The effects that led to a step: its edit, what its scope asked since the step before, and itself."""
        finished = {e["key"]: e for e in self._finished()}
        scope, _, ordinal = step.key.rpartition("/")
        keys = [step.key]
        if step.number:
            before = int(ordinal) - 1
            while finished.get(f"{scope}/{before}", {}).get("kind") not in (None, "trial", "parallel"):
                keys.append(f"{scope}/{before}")
                before -= 1
        if step.edit and step.edit not in keys:
            keys.append(step.edit)
        return (finished[key] for key in reversed(keys))

    @cached_property
    def ledger(self) -> Ledger:
        """What was spent, and on what."""
        return Ledger.of(self.journal, {step.key: step.number for step in self.steps})

    def spent(self) -> dict[str, Any]:
        """Calls, tokens, money and seconds of the whole run, without what a fork shares with its origin."""
        return self.ledger.to_json()

    @property
    def origin(self) -> dict[str, Any] | None:
        """The run that this one is a fork of: its folder as it was given, and the last step that they share."""
        return self.record.get("fork")

    def _finished(self) -> Iterator[Event]:
        return (e for e in self.journal.events if e["state"] == "finished" and self.journal.finished(e["key"]) is e)

    def to_json(self) -> dict[str, Any]:
        """The stable form of ``labcoat show --json``; docs/json.md describes it."""
        test, base = self.test_outcome(), self.test_outcome("test/baseline")
        return {
            "folder": str(self.folder),
            "status": self.status,
            "task": self.manifest.id,
            "strategy": self.spec["strategy"]["name"],
            "params": self.spec["strategy"]["params"],
            "models": self.spec["models"],
            "seed": self.spec["seed"],
            "steps": self.spec["steps"],
            "metric": {"name": self.metric.name, "direction": self.metric.direction},
            "fork": self.origin and self.origin | {"spent": self.ledger.shared.to_json()},
            "prices": self.record["prices"] or {},
            "sandbox": self.sandbox,
            "integrity": self.manifest.integrity,
            "warnings": self.warnings,
            "baseline": self._step_json(self.baseline),
            "trials": [self._step_json(step) for step in self.trials],
            "best": self._step_json(self.best),
            "confirm": [
                {"step": step.number, "measured": [self._measured(outcome) for outcome in outcomes]}
                for step, outcomes in self.confirmed()
            ],
            "test": test
            and {
                **self._measured(test),
                "step": self.chosen.number if self.chosen else None,
                "baseline": base and self._measured(base),
                "again": [self._measured(outcome) for outcome in self.tested_again()],
            },
            "spent": self.spent(),
        }

    def _step_json(self, step: Step | None) -> dict[str, Any] | None:
        if step is None:
            return None
        return {
            "step": step.number,
            "parent": step.parent,
            "facts": step.facts,
            "process_seconds": round(step.outcome.seconds, 3),
            **self._measured(step.outcome),
        }

    def _measured(self, outcome: Outcome) -> dict[str, Any]:
        metric = outcome.metrics.get(self.metric.name)
        return {
            "status": outcome.status,
            "value": metric.mean if metric else None,
            "values": [{"seed": outcome.seed, "problems": metric.values}] if metric else [],
            "metrics": {name: measure.mean for name, measure in outcome.metrics.items()},
            "slack": outcome.slack,
            "error": outcome.error,
        }
