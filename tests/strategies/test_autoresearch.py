"""Autoresearch against the golden traces of the released program, and our own rules."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from labcoat.history import History
from labcoat.lab import Code, Trial
from labcoat.strategies.autoresearch import STRATEGY, Row, history
from labcoat.testing import traced
from tests.strategies.plays import golden, title

TRACES = golden("autoresearch")


@pytest.mark.parametrize("trace", TRACES, ids=title)
def test_the_released_rules_reproduce_the_golden_traces(trace: dict[str, Any]) -> None:
    params = {**STRATEGY.presets["released"], "attempts": trace["params"]["max_debug_retries"]}
    search = traced(trace).search(STRATEGY, params, steps=trace["budget"])
    decisions = search.decisions
    # The trace calls its first step a draft; to Autoresearch it is an improvement of the baseline like any other.
    found = [{"step": d.step, "action": d.action if d.step else "draft", "parent": d.parent} for d in decisions]
    assert found == [{name: d[name] for name in ("step", "action", "parent")} for d in trace["decisions"]]
    # With the parents this says of every step whether it was kept.
    assert (search.trials.index(search.best) if search.best.parent else None) == trace["final"]["incumbent"]


@pytest.mark.parametrize("trace", TRACES, ids=title)
def test_by_default_a_retry_edits_the_code_that_failed(trace: dict[str, Any]) -> None:
    params = {"attempts": trace["params"]["max_debug_retries"]}
    for before, after in pairwise(traced(trace).search(STRATEGY, params, steps=trace["budget"]).decisions):
        if after.action == "debug":
            assert after.parent == before.step
            assert trace["outcomes"][before.step]["buggy"]


def test_the_incumbent_improves_strictly(simulate: Callable[..., History]) -> None:
    run = simulate("autoresearch", steps=60)
    best = run.steps[0].value("score")
    for step in run.trials:
        value = step.value("score")
        if step.facts["action"] == "improve" and step.parent is not None:
            assert run.steps[step.parent].value("score") == best
        if value is not None and best is not None and value > best:
            best = value


def test_it_beats_the_control_on_a_smooth_valley(simulate: Callable[..., History]) -> None:
    def best(strategy: str, seed: int) -> float:
        found = simulate(strategy, steps=60, seed=seed).best
        assert found is not None
        return found.value("score") or 0.0

    assert all(best("autoresearch", seed) > best("random", seed) + 0.2 for seed in range(3))


def row(idea: str, ok: bool = True) -> Row:
    trial = Trial("", Code.of({}), ok, "ok" if ok else "crash", 1.0 if ok else None, "m = 1" if ok else "", "")
    return Row(idea, trial, kept=ok, runs=1)


def test_history_shows_ideas_in_full_newest_last() -> None:
    first, second = history([row("the first idea " * 30), row("the second", ok=False)])
    assert first.startswith("1. [keep] m = 1\n   the first idea the first idea")
    assert second == "2. [failed after 1 run(s)] crash\n   the second"
