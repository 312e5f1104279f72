"""AdaptiveSearch against the golden traces of the released program, and our own rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from labcoat.lab import Code, Metric, Prompt, Trial
from labcoat.models import Call, Models
from labcoat.models.scripted import ScriptedModel
from labcoat.strategies import adaptive, autoresearch
from labcoat.strategies.adaptive import STRATEGY, Adaptive, Branch, Idea, curve, guidance, origins, stalled
from labcoat.testing import Search, World, contract, failed, measured, traced
from labcoat.testing.case import mixed

PEERS = Path(__file__).parent.parent / "peers"
TRACES = [json.loads(line) for line in (PEERS / "traces/adaptive_search.jsonl").read_text().splitlines()]
HIGHER, LOWER = Metric(name="m", direction="higher"), Metric(name="m", direction="lower")


def name(trace: dict[str, Any]) -> str:
    return f"{trace['trace']}-{trace['script']}"


class Numbered:
    """Gives the n-th edit the n-th vector, and any other code the baseline's."""

    name = "numbered"

    def __init__(self, baseline: list[float], vectors: Sequence[list[float]]) -> None:
        self.baseline, self.vectors = baseline, vectors

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.vectors[int(t.split()[1])] if t.startswith("#") else self.baseline for t in texts]


def numbering(ideas: Callable[[int, Prompt], str] = lambda n, prompt: f"idea {n}") -> Models:
    """The n-th idea is "idea n"; the n-th edit says so in the first line of the file."""
    counts = {"idea": 0, "edit": 0}

    def answer(prompt: Prompt, call: Call) -> str:
        number = counts[call.purpose]
        counts[call.purpose] += 1
        return f"### FILE: train.py\n```python\n# {number}\n```" if call.purpose == "edit" else ideas(number, prompt)

    return Models({"*": ScriptedModel(answer)})


# --- the golden traces --------------------------------------------------------------------------------------------


def params_of(trace: dict[str, Any]) -> Adaptive:
    """The released rules with the parameters of a trace."""
    p = trace["params"]
    return Adaptive(
        **STRATEGY.presets["released"],
        attempts=p["max_debug_retries"],
        window=p["p1_window"],
        epsilon=p["p1_epsilon"],
        branches_from=(p["branch_skip_max"] + 1, p["branch_cutoff_1"] + 1, p["branch_cutoff_2"] + 1),
        max_reach=p["max_reach"],
        shallow_window=p["A_freq_window"],
        shallow_kept=p["A_freq_max"],
        shallow_reach=p["A_reach_norm_max"],
        scattered_window=p["B_freq_window"],
        scattered_kept=p["B_freq_max"],
        scattered_dimension=p["B_effdim_min"],
    )


def metric_of(trace: dict[str, Any]) -> Metric:
    """The metric of a trace. Its curve's best and worst are as displayed."""
    p = trace["params"]
    logarithmic = p["transform"] == "neglog10"
    assert not logarithmic or (p["curve_best"], p["curve_worst"]) == (0, "baseline")
    return Metric(
        name="score",
        direction=trace["direction"],
        best=1.0 if logarithmic else p["curve_best"],
        worst=None if p["curve_worst"] == "baseline" else p["curve_worst"],
        display="-log10" if logarithmic else "plain",
    )


@cache
def played(number: int) -> Search:
    """The whole strategy in the world of a trace."""
    trace = TRACES[number]
    world = replace(
        traced(trace, models=numbering()),
        scale=metric_of(trace).model_dump(include={"best", "worst", "display"}),
        embedder=Numbered(trace["params"]["baseline_embedding"], [row["embedding"] for row in trace["outcomes"]]),
    )
    return world.search(STRATEGY, params_of(trace), steps=trace["budget"])


each_trace = pytest.mark.parametrize("number", range(len(TRACES)), ids=lambda n: name(TRACES[n]))


@each_trace
def test_the_released_rules_take_the_decisions_of_the_golden_traces(number: int) -> None:
    names = {"branch": "branch_init"}
    for found, wanted in zip(played(number).decisions, TRACES[number]["decisions"], strict=True):
        branch = wanted["branch"] + 1 if "branch" in wanted else None
        assert (found.step, found.parent) == (wanted["step"], wanted["parent"])
        assert found.facts.get("branch") == branch
        # The trace calls its first step a draft; here it is an improvement of the baseline like any other.
        assert names.get(found.action, found.action if found.step else "draft") == wanted["action"]


@each_trace
def test_the_rules_give_the_reach_the_dimension_and_the_hints_of_the_golden_traces(number: int) -> None:
    for found, wanted in zip(played(number).decisions, TRACES[number]["decisions"], strict=True):
        assert found.facts.get("hint", "") == wanted.get("hint", "")
        assert ("reach" in found.facts) == ("reach" in wanted)
        if "reach" in wanted:
            assert found.facts["reach"] == pytest.approx(wanted["reach"], abs=6e-5)
            assert found.facts["dimension"] == pytest.approx(wanted["eff"], abs=6e-5)


@each_trace
def test_the_curve_and_the_origins_of_the_branches_are_those_of_the_golden_traces(number: int) -> None:
    trace, search = TRACES[number], played(number)
    greedy = [trial for trial in search.trials if "branch" not in trial.facts]
    assert (len(greedy) if len(greedy) < trace["budget"] else None) == trace["final"]["switch_after"]
    values = [*curve(greedy, baseline(trace["params"]["baseline"]), metric_of(trace))]
    changes = [[k, v] for k, (before, v) in enumerate(zip([None, *values], values, strict=False), 1) if v != before]
    assert [k for k, _ in changes] == [k for k, _ in trace["structure"]["curve_changes"]]
    assert [v for _, v in changes] == pytest.approx([v for _, v in trace["structure"]["curve_changes"]], abs=1e-7)
    begun = [decision for decision in search.decisions if decision.action == "branch"]
    assert [d.parent for d in begun] == [origin["step"] for origin in trace["final"]["origins"][: len(begun)]]
    assert len(begun) == trace["final"]["n_branches"]


def baseline(value: float) -> Trial:
    return Trial("baseline", Code.of({}), True, "ok", value, f"m = {value}", "")
