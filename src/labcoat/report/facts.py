"""From a run folder to what scoring knows of it: the facts of its journal, and where its codes lie in an embedding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from labcoat.bench.outcome import Outcome
from labcoat.embedding import Embedder, in_portions
from labcoat.errors import InputError
from labcoat.fork import FORKED
from labcoat.history import History
from labcoat.journal import Event
from labcoat.manifest import Manifest
from labcoat.record import RECORD
from labcoat.report.counting import Count
from labcoat.report.opened import opened
from labcoat.scoring.measures import Mode
from labcoat.scoring.process import shape
from labcoat.scoring.runs import Geometry, Reading, Run
from labcoat.tree import sha256


class _Task(BaseModel, strict=True):
    id: str
    hash: str


class _Strategy(BaseModel, strict=True):
    name: str
    params: dict[str, Any]


class _Spec(BaseModel, strict=True):
    """What tables take for granted of a run's identity."""

    task: _Task
    strategy: _Strategy
    models: dict[str, Any]
    steps: int
    seed: int


def facts(folder: Path) -> Run:
    """Read a run.

    Raises:
        InputError: its folder is not sound, see :func:`labcoat.report.opened.opened`.
        Diverged: likewise.
    """
    with opened(folder) as history:
        try:
            _Spec.model_validate(history.spec)
        except ValidationError as error:
            wrong = ", ".join(".".join(map(str, each["loc"])) for each in error.errors())
            raise InputError(f"{folder / RECORD}: spec: {wrong}: damaged; restore it") from None
        metric = history.metric.name
        untouched = history.test_outcome("test/baseline")
        return Run(
            folder=str(folder),
            content=sha256(history.journal.path.read_bytes()),
            spec=history.spec,
            metric=history.metric,
            marks=marks(history),
            finished=history.journal.finished("end") is not None,
            baseline=_reading(history.baseline.outcome, metric) if history.baseline else None,
            trials=tuple(Reading(step.outcome.status, step.outcome.mean(metric)) for step in history.trials),
            chosen=history.chosen.number if history.chosen else None,
            test=_reading(history.test_outcome(), metric),
            test_baseline=_reading(untouched, metric),
            noise=noise(untouched, history.manifest),
            tokens=history.ledger.total.tokens + history.ledger.shared.tokens,
            seconds=history.ledger.shared.seconds + worked(history.journal.events),
        )


def _reading(outcome: Outcome | None, metric: str) -> Reading | None:
    return Reading(outcome.status, outcome.mean(metric)) if outcome else None


def noise(untouched: Outcome | None, manifest: Manifest) -> float | None:
    """Standard error of the untouched code on test; None where nobody knows one.

    As its scorer gives it, else the deviation on the card, else half of the card's noise floor, which is two standard
    errors of a difference. 0 says that repeating changes nothing, and nothing about other data: the next one is asked.
    """
    card, name = manifest.references, manifest.metric.name
    measured = untouched.metrics[name].error if untouched and name in untouched.metrics else None
    return measured or (card.baseline_test and card.baseline_test.std) or card.noise_floor / 2 or None


def marks(history: History) -> tuple[str, ...]:
    """What a reader of any table must know of the run."""
    found = {
        "self-reported": history.manifest.integrity == "self-reported",
        "no sandbox": history.sandbox == "none",
        "simulated": history.manifest.simulation is not None,
        "fork": history.origin is not None,
    }
    return tuple(mark for mark, holds in found.items() if holds)


def worked(events: Sequence[Event]) -> float:
    """Wall-clock seconds from the baseline's measurement to the last event, less the pauses between two sittings.

    What a fork shares was done by another run, and is not in it.
    """
    total, last = 0.0, None
    forks = [number for number, event in enumerate(events) if event["kind"] == FORKED]
    searching = bool(forks)
    for event in events[forks[-1] + 1 if forks else 0 :]:
        now = datetime.fromisoformat(event["at"])
        if searching and last is not None and event["kind"] != "opened":
            total += max(0.0, (now - last).total_seconds())
        searching = searching or (event["kind"] == "baseline" and event["state"] == "finished")
        last = now
    return total


def embedded(texts: Sequence[str], embedder: Embedder, count: Count) -> dict[str, list[float]]:
    """Vectors by text; each of the texts is counted, and those that are equal are embedded once."""
    vectors: dict[str, list[float]] = {}
    for portion in in_portions(texts, embedder):
        vectors |= portion
        count(len(portion))
    count(len(texts) - len(vectors))
    return vectors


def geometry(folder: Path, embedder: Embedder, trials: int, count: Count) -> Geometry:
    """Embed every code of the baseline and the first ``trials`` of a run; it may have gone on meanwhile.

    Raises:
        InputError: its folder is not sound, or it has fewer trials now.
        Diverged: it is not sound.
    """
    with opened(folder) as history:
        steps = history.steps[: trials + 1]
        texts = [history.text(step) for step in steps]
    if len(steps) <= trials:
        raise InputError(f"{folder}: another run took its place meanwhile; give the same command again")
    vectors = embedded(texts, embedder, count)
    baseline, *codes = [vectors[text] for text in texts]
    valid = [code for code, step in zip(codes, steps[1:], strict=True) if step.outcome.ok]
    of: dict[Mode, list[list[float]]] = {"paper": valid, "released": codes}
    return Geometry(
        shape={mode: shape(np.array(own).reshape(-1, len(baseline)), baseline, mode) for mode, own in of.items()},
        distances=tuple(math.dist(code, baseline) for code in codes),
    )
