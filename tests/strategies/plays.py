"""What tests of strategies share: searches whose trials are given one by one, and the golden traces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labcoat.history import History
from labcoat.lab import Prompt, Strategy
from labcoat.models import Call, Models
from labcoat.models.scripted import ScriptedModel
from labcoat.testing import Search, World, failed, measured

TRACES = Path(__file__).parent.parent / "peers/traces"


def golden(file: str) -> list[dict[str, Any]]:
    """The golden traces in a file."""
    return [json.loads(line) for line in (TRACES / f"{file}.jsonl").read_text().splitlines()]


def title(trace: dict[str, Any]) -> str:
    """What a test of a trace is called."""
    return f"{trace['trace']}-{trace['script']}"


def play(strategy: Strategy, values: Sequence[float | None], **params: Any) -> tuple[Search, list[tuple[str, Prompt]]]:
    """A search whose n-th trial gives the n-th value, and fails without one; and what the model saw, by purpose.

    Before the n-th trial it proposes "idea n", and the n-th edit sets EPOCHS to n.
    """
    seen: list[tuple[str, Prompt]] = []

    def answer(prompt: Prompt, call: Call) -> str:
        number = sum(purpose == "edit" for purpose, _ in seen)
        seen.append((call.purpose, prompt))
        code = f"### FILE: train.py\n```python\nEPOCHS = {number}\n```"
        return code if call.purpose == "edit" else f"{call.purpose} {number}"

    outcomes = [measured(v) if v is not None else failed(f"Traceback\nError of {n}") for n, v in enumerate(values)]
    world = World(outcomes=outcomes.__getitem__, models=Models({"*": ScriptedModel(answer)}))
    return world.search(strategy, params, steps=len(values)), seen


def best_value(history: History, metric: str) -> float:
    """The best value of a run."""
    assert history.best is not None
    found = history.best.value(metric)
    assert found is not None
    return found
