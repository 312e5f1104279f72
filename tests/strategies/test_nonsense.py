"""Every shipped strategy lives through models that answer nonsense: that costs trials, and ends no search early."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from labcoat import strategies
from labcoat.lab import Reply
from labcoat.models import ROOM, Call, Models, Prompt
from labcoat.models.scripted import ScriptedModel
from labcoat.testing import World, failed, measured

FIELDS = ("name", "experiment", "plan", "done", "trial", "complete", "goal")
EMPTY = dict.fromkeys(FIELDS, "") | {"done": False, "complete": False, "trial": 1}
ANSWERS: dict[str, str | Reply] = {
    "nothing": "",
    "white space": " \n\t\n",
    "a book": "word " * 100_000,
    "what looks like a template": "$idea ${plan} $$ {goal} %s \\1",
    "what looks like an edit": "### FILE: train.py\n```python\nEPOCHS =\n",
    "odd characters": "\x00\x1b[31m\u202e\ud800 ```",
    "a refusal": Reply("", finish="refusal"),
    "too long a question": Reply("", finish="context_too_long"),
    "another JSON": json.dumps(["a", {"b": None}]),
    "wrong types": json.dumps({name: [7] for name in FIELDS}),
    "empty fields": json.dumps(EMPTY),
    "fields without end": json.dumps(EMPTY | dict.fromkeys(("name", "experiment", "plan", "goal"), "word " * 9000)),
    "a trial that is not there": json.dumps(EMPTY | {"name": "x", "experiment": "x", "trial": 99}),
    "the end of all": json.dumps(EMPTY | {"name": "x", "experiment": "x", "done": True, "complete": True}),
}
NO_IDEA = {*ANSWERS} - {"empty fields", "fields without end", "a trial that is not there", "the end of all"}
"""Answers in which The AI Scientist v1 finds no idea: it has nothing to run then."""


def said(answer: str | Reply, call: Call) -> str | Reply:
    """An answer with the fields that were asked for, if it is an object."""
    if call.schema is None or not isinstance(answer, str) or not answer.startswith("{"):
        return answer
    return json.dumps({name: value for name, value in json.loads(answer).items() if name in call.schema["properties"]})


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("spec", [*strategies.names(), "tas-v1@original", "tas-v2@original"])
def test_nonsense_costs_trials_and_ends_no_search(spec: str, answer: str) -> None:
    strategy, params = strategies.named(spec)
    largest, edits = [0], [0]

    def say(prompt: Prompt, call: Call) -> str | Reply:
        largest[0] = max(largest[0], prompt.tokens)
        if call.purpose != "edit":
            return said(ANSWERS[answer], call)
        edits[0] += 1
        return f"### FILE: train.py\n```python\nEPOCHS = {edits[0]}\n```"

    branching: dict[str, Any] = {"window": 3, "branches_from": [2, 4]} if spec == "adaptive" else {}
    world = World(lambda i: failed() if i % 3 else measured(0.5 + i / 100), models=Models({"*": ScriptedModel(say)}))
    search = world.search(strategy, {**params, **branching}, steps=14)
    nothing_to_run = strategy.name == "tas-v1" and answer in NO_IDEA
    assert len(search.trials) == (0 if nothing_to_run else 14)
    assert largest[0] <= ROOM


@pytest.mark.parametrize("reply", ["", "I would rather not.", "```json\n{}\n```", Reply("", finish="refusal")])
@pytest.mark.parametrize("name", strategies.names())
def test_without_a_single_edit_every_step_is_a_rejected_edit(name: str, reply: str | Reply) -> None:
    ideas = ScriptedModel(lambda prompt, call: said(json.dumps(EMPTY), call))
    models = Models({"edit": ScriptedModel(lambda prompt, call: reply), "*": ideas})
    search = World(lambda i: measured(0.9), models=models).search(strategies.find(name), steps=9)
    assert [trial.status for trial in search.trials] == ["edit_failed"] * 9
    assert search.best is search.trials[0].parent


# --- metrics and limits -------------------------------------------------------------------------------------------

METRICS: dict[str, tuple[Callable[[int], float], dict[str, Any]]] = {
    "a baseline of zero": (lambda i: (i % 5 - 2) / 8, {"baseline": 0.0}),
    "negative numbers": (lambda i: -1e9 * (i % 5 + 1), {"baseline": -3e9, "direction": "lower"}),
    "the largest numbers": (lambda i: (8e307, -8e307, 1e307)[i % 3], {"baseline": -8e307}),
    "the smallest numbers": (
        lambda i: (5e-324, 0.0, 1e-300)[i % 3],
        {"baseline": 1e-200, "direction": "lower", "scale": {"display": "-log10", "best": 0.0}},
    ),
    "a baseline that is the best": (lambda i: i % 3 / 2, {"baseline": 1.0, "scale": {"best": 1.0}}),
    "a baseline that is best and worst": (lambda i: i % 3 / 2, {"baseline": 1.0, "scale": {"best": 1.0, "worst": 1.0}}),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", strategies.names())
def test_any_finite_metric_can_be_searched(name: str, metric: str) -> None:
    value, fields = METRICS[metric]
    params = {"window": 3, "branches_from": [2, 4]} if name == "adaptive" else {}
    if name == "openevolve":
        params = {"exploration_ratio": 0, "exploitation_ratio": 0}
    search = World(lambda i: measured(value(i)), **fields).search(strategies.find(name), params, steps=20)
    assert len(search.trials) == 20


@pytest.mark.parametrize(
    "spec",
    [
        {"tas-v1": {"ideas": 100, "rounds": 9, "further": False}},
        {"tas-v2": {"ideas": 100, "workers": 100}},
        {"adaptive": {"window": 1, "asks": 100, "distinct": -1}},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_at_the_limits_of_its_parameters_a_search_is_not_taken_for_one_that_only_talks(spec: dict[str, Any]) -> None:
    ((name, params),) = spec.items()

    def say(prompt: Prompt, call: Call) -> str | Reply:
        code = f"### FILE: train.py\n```python\n# {call.key}\n```"
        return code if call.purpose == "edit" else said(json.dumps(EMPTY), call)

    search = World(lambda i: measured(0.4), models=Models({"*": ScriptedModel(say)})).search(
        strategies.find(name), params, steps=120
    )
    assert len(search.trials) == 120
