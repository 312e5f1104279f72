"""AdaptiveSearch against the golden traces of the released program, and our own rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from labcoat.lab import Code, Metric, Prompt, Trial
from labcoat.models import Call, Models
from labcoat.models.scripted import ScriptedModel
from labcoat.strategies import autoresearch
from labcoat.strategies.adaptive import STRATEGY, Adaptive
from labcoat.strategies.adaptive_rules import Branch, Idea, curve, guidance, origins, stalled
from labcoat.testing import Search, World, contract, failed, measured, traced
from labcoat.testing.case import mixed
from tests.strategies.plays import golden, title

TRACES = golden("adaptive_search")


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


each_trace = pytest.mark.parametrize("number", range(len(TRACES)), ids=lambda n: title(TRACES[n]))


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


# --- the greedy phase ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ours", "its"), [({}, {}), (STRATEGY.presets["released"], {"debug_from": "incumbent"})])
@pytest.mark.parametrize("window", [5, 20])
def test_until_it_stalls_it_does_to_the_last_letter_what_autoresearch_does(
    ours: dict[str, Any], its: dict[str, Any], window: int
) -> None:
    world = World(mixed(40))
    found = world.search(STRATEGY, {**ours, "window": window}, steps=40)
    other = world.search(autoresearch.STRATEGY, its, steps=40)
    greedy = sum("branch" not in trial.facts for trial in found.trials)
    assert window < greedy < 40
    last = next(n for n, event in enumerate(found.events) if event["key"] == found.trials[greedy - 1].key)
    assert [(e["key"], e["hash"], e["result"]) for e in found.events[: last + 1]] == [
        (e["key"], e["hash"], e["result"]) for e in other.events[: last + 1]
    ]


# --- when branches begin, and where -------------------------------------------------------------------------------


def tried(value: float | None) -> Trial:
    ok = value is not None
    return Trial("", Code.of({}), ok, "ok" if ok else "crash", value, f"m = {value}" if ok else "", "")


def phase(*values: float | None, keep: Sequence[int] = ()) -> Branch:
    """A greedy phase from a baseline of 0.5, in which the trials of those numbers were kept."""
    log = [Idea(f"idea {n}", 0, [tried(value)], n in keep) for n, value in enumerate(values)]
    return Branch(0, baseline(0.5), log)


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        ({"direction": "higher", "best": 1.0, "worst": 0.0}, [0.4, 0.6, None, 0.5, 0.75], [0, 0.1, 0.1, 0.1, 0.25]),
        ({"direction": "lower", "best": 0.0, "worst": 1.0}, [0.6, 0.4, None, 0.5, 0.25], [0, 0.1, 0.1, 0.1, 0.25]),
        ({"direction": "lower", "best": 0.0}, [0.6, 0.4, 0.25], [0, 0.2, 0.5]),
        ({"direction": "higher"}, [0.4, 0.6, 0.9], [0, 0.25, 1]),
        ({"direction": "higher"}, [0.4, None], [0, 0]),
        ({"direction": "higher", "best": 0.5}, [0.4, 0.6], [0, 0.1]),
        ({"direction": "higher", "best": 1.0, "display": "-log10"}, [0.5, 0.0, 1.0], [0, 0, 1]),
    ],
)
def test_the_curve_is_in_units_of_the_range_or_of_the_way_from_the_baseline_or_of_the_gain_so_far(
    metric: dict[str, Any], values: list[float | None], expected: list[float]
) -> None:
    found = curve([tried(value) for value in values], baseline(0.5), Metric(name="m", **metric))
    assert [*found] == pytest.approx(expected)


def test_it_stalls_when_the_window_is_full_and_the_slope_at_most_epsilon() -> None:
    assert not stalled(np.array([0.0, 0.0, 0.0, 0.0]), 4, 0.25)
    assert stalled(np.array([0.0, 0.0, 0.0, 0.0, 1.0]), 4, 0.25)
    assert not stalled(np.array([0.0, 0.0, 0.0, 0.0, 1.1]), 4, 0.25)
    assert stalled(np.array([0.0, 5.0, 5.0, 5.0, 5.0, 6.0]), 4, 0.25)


@pytest.mark.parametrize(("left", "number"), [(0, 0), (3, 0), (4, 1), (15, 1), (16, 2), (30, 2), (31, 3), (1000, 3)])
def test_the_steps_that_are_left_decide_how_many_branches_there_are(left: int, number: int) -> None:
    assert len(origins(phase(), left, Adaptive().branches_from)) == number


def test_branches_begin_at_the_best_that_were_kept_and_then_at_the_baseline() -> None:
    greedy = phase(0.6, 0.4, 0.7, 0.9, keep=[0, 2])
    first, second, third = origins(greedy, 40, (4, 16, 31))
    assert (first.value, second.value, third.value) == (0.7, 0.6, 0.5)
    assert [trial.value for trial in origins(greedy, 10, (4, 16, 31))] == [0.7]
    assert [trial.value for trial in origins(phase(0.4), 40, (4, 16, 31))] == [0.5, 0.5, 0.5]


def test_with_too_few_steps_left_it_stays_greedy_to_the_end() -> None:
    search = World(lambda i: measured(0.4)).search(STRATEGY, {"window": 5}, steps=9)
    assert [trial.facts.get("branch") for trial in search.trials] == [None] * 9
    search = World(lambda i: measured(0.4)).search(STRATEGY, {"window": 5}, steps=10)
    assert [trial.facts.get("branch") for trial in search.trials] == [None] * 6 + [1] * 4


# --- branches -----------------------------------------------------------------------------------------------------

SMALL = {"window": 3, "branches_from": [2, 4, 6]}


def test_branches_take_turns_of_one_step_and_keep_by_their_own_incumbent() -> None:
    values = [0.4, 0.4, 0.4, 0.4, 0.6, 0.5, 0.7, 0.55, 0.6, None, 0.1, 0.1, 0.1, 0.1]
    outcomes = [failed() if value is None else measured(value) for value in values]
    search = World(outcomes.__getitem__).search(STRATEGY, SMALL, steps=14)
    branches = [(d.facts.get("branch"), d.action, d.parent) for d in search.decisions[4:]]
    assert branches == [
        (1, "branch", None), (2, "branch", None), (3, "branch", None),  # 0.6 is kept; 0.5, a tie, is not; 0.7 is
        (1, "improve", 4), (2, "improve", None), (3, "improve", 6),  # 0.55 is not; 0.6 is; the last fails
        (1, "improve", 4), (2, "improve", 8), (3, "debug", 9),
        (1, "improve", 4),
    ]  # fmt: skip


def test_a_rejected_edit_is_a_step_and_an_attempt_in_branches_too() -> None:
    talk = Models({"*": ScriptedModel(lambda prompt, call: "I would rather talk about it.")})
    search = World(lambda i: measured(0.9), models=talk).search(STRATEGY, SMALL | {"attempts": 2}, steps=12)
    assert [trial.status for trial in search.trials] == ["edit_failed"] * 12
    assert [d.action for d in search.decisions[4:]] == ["branch"] * 3 + ["debug"] * 3 + ["improve"] * 2


@pytest.mark.parametrize(("remember", "shown"), [("all", 4), ("branches", 0)])
def test_a_branch_is_shown_what_the_greedy_phase_tried(remember: str, shown: int) -> None:
    seen: list[Prompt] = []

    def idea(number: int, prompt: Prompt) -> str:
        seen.append(prompt)
        return f"idea {number}"

    embedder = Numbered([0, 0], [[1, n] for n in range(12)])
    world = World(lambda i: measured(0.4), models=numbering(idea), embedder=embedder)
    world.search(STRATEGY, SMALL | {"remember": remember, "asks": 1}, steps=8)
    assert seen[7].get("history").count("] score = 0.4") == shown + 3
    assert ("[discard] score = 0.4 (higher is better)\n   idea 3" in seen[7].get("history")) == bool(shown)
    assert f"{shown + 3}. [branch 1: discard] score = 0.4 (higher is better)\n   idea 6" in seen[7].get("history")


# --- the first ideas of branches differ ---------------------------------------------------------------------------

HOME, EAST, NORTH = [1.0, 1.0], [3.0, 1.0], [1.0, 2.0]
GREEDY = [HOME] * 4


def first_ideas(*vectors: list[float], steps: int, **params: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Facts of the branches' first trials, with the n-th edit after the greedy phase at the n-th vector; and what the
    model was told not to take before each of its ideas.
    """
    told: list[str] = []

    def idea(number: int, prompt: Prompt) -> str:
        told.append(prompt.get("taken"))
        return f"idea {number}"

    world = World(lambda i: measured(0.4), models=numbering(idea), embedder=Numbered(HOME, [*GREEDY, *vectors]))
    search = world.search(STRATEGY, SMALL | params, steps=4 + steps)
    return [dict(trial.facts) for trial in search.trials if trial.facts["action"] == "branch"], told[4:]


def test_a_first_idea_like_that_of_a_sibling_is_asked_for_again_free_of_steps() -> None:
    facts, told = first_ideas(EAST, [9.0, 1.0], EAST, NORTH, steps=2, branches_from=[1, 2])
    assert [(f["idea"], f["asked"]) for f in facts] == [("idea 4", 1), ("idea 7", 3)]
    assert [f["likeness"] for f in facts] == pytest.approx([0, 0])
    assert told == [
        "",
        "Ideas that are taken:\nidea 4",
        "Ideas that are taken:\nidea 4\nidea 5",
        "Ideas that are taken:\nidea 4\nidea 5\nidea 6",
    ]


def test_after_so_many_asks_the_idea_that_is_least_like_the_siblings_is_tried() -> None:
    facts, _ = first_ideas(EAST, [9.0, 1.0], [2.0, 2.0], [9.0, 2.0], steps=2, branches_from=[1, 2])
    assert [(f["idea"], f["asked"]) for f in facts] == [("idea 4", 1), ("idea 6", 3)]
    assert facts[1]["likeness"] == pytest.approx(0.5**0.5)


def test_a_branch_differs_from_every_sibling_before_it() -> None:
    facts, _ = first_ideas(EAST, NORTH, [1.0, 7.0], [-1.0, 1.0], steps=6)
    assert [f["asked"] for f in facts] == [1, 1, 2]
    assert [f["idea"] for f in facts] == ["idea 4", "idea 5", "idea 7"]


def test_the_released_rules_ask_once() -> None:
    facts, told = first_ideas(EAST, EAST, steps=2, branches_from=[1, 2], asks=1)
    assert [(f["asked"], f["likeness"]) for f in facts] == [(1, 0), (1, 1)]
    assert told[1] == "Ideas that are taken:\nidea 4"


# --- guidance -----------------------------------------------------------------------------------------------------


def rules(kept: str, codes: Sequence[list[float]], far: float = 10.0, **params: Any) -> tuple[str, float, float] | None:
    """What the rules say to steps such as ``..k.`` with those vectors, the baseline at (1, 1)."""
    ours = Adaptive(**params)
    found = guidance([step == "k" for step in kept], codes, HOME, far, ours.rule_a, ours.rule_b, ours.centred)
    return (found.hint, round(found.reach, 6), round(found.dimension, 6)) if found else None


NEAR, WIDE, FAR = [[2.0, 1.0]] * 5, [[2.0, 1.0], [1.0, 2.0]] * 3, [[5.0, 1.0]] * 5


def test_without_steps_enough_the_rules_are_silent() -> None:
    assert rules("....", NEAR[:4]) is None
    assert rules("..", NEAR[:2], shallow_window=2) is not None


def test_rule_a_asks_for_a_larger_change_near_the_baseline() -> None:
    assert rules(".....", NEAR) == ("A", 0.1, 1)
    assert rules(".....", FAR) == ("", 0.4, 1)
    assert rules("kk...", NEAR) == ("A", 0.1, 1)
    assert rules("kkk..", NEAR) == ("", 0.1, 1)
    assert rules("kkk" + "." * 18, NEAR) == ("A", 0.1, 1)


def test_rule_b_asks_for_one_direction_where_codes_scatter() -> None:
    assert rules("......", WIDE, far=2.0) == ("B", 0.5, 2)
    assert rules("kk.k..", WIDE, far=2.0) == ("B", 0.5, 2)
    assert rules("k.kkk.", WIDE, far=2.0) == ("", 0.5, 2)
    assert rules("......", WIDE) == ("AB", 0.1, 2)
    assert rules("......", WIDE, centred=True) == ("A", 0.1, 1)


def test_codes_that_are_all_the_baselines_have_reach_zero_and_dimension_one() -> None:
    assert rules(".....", [HOME] * 5) == ("A", 0, 1)
    assert rules(".....", [HOME] * 5, far=0.0, centred=True) == ("A", 0, 1)
    assert rules(".....", NEAR, far=0.0) == ("", 1, 1)  # farther than anything before


def test_what_counts_as_far_is_how_far_the_stalled_window_went_where_nothing_else_is_set() -> None:
    def reach(values: list[float], greedy: list[list[float]], **params: Any) -> float:
        embedder = Numbered(HOME, [*greedy, *[[2.0, 1.0]] * 6])
        world = World(lambda i: measured((values + [0.4] * 6)[i]), models=numbering(), embedder=embedder)
        search = world.search(STRATEGY, SMALL | {"branches_from": [1]} | params, steps=len(greedy) + 6)
        [found] = [trial.facts["reach"] for trial in search.trials if "reach" in trial.facts]
        return float(found)

    near, far, farther = [1.0, 2.0], [1.0, 5.0], [1.0, 9.0]
    assert reach([0.4] * 4, [far, near, near, near]) == 0.25
    assert reach([0.4] * 4, [far, near, near, near], max_reach=20.0) == 0.05
    # It stalls three steps after the gain of the fourth.
    assert reach([0.4, 0.4, 0.4, 0.6, 0.4, 0.4, 0.4], [near, near, farther, far, near, near, near]) == 0.25


def test_a_hint_says_what_was_measured() -> None:
    hints: list[str] = []

    def idea(number: int, prompt: Prompt) -> str:
        hints.append(prompt.get("hint"))
        return f"idea {number}"

    def told(*vectors: list[float], **params: Any) -> str:
        world = World(lambda i: measured(0.4), models=numbering(idea), embedder=Numbered(HOME, [*GREEDY, *vectors]))
        world.search(STRATEGY, SMALL | {"branches_from": [1], "asks": 1} | params, steps=10)
        return hints[-1]

    assert told(*NEAR, HOME, max_reach=10.0).startswith(
        "This branch has stalled close to the baseline: 0 of its last 5"
    )
    assert "has gone 10% of the way" in hints[-1]
    assert "scatters: 0 of its last 5 trials were kept, and they lie along 1.9 directions" in told(*WIDE, max_reach=2.0)
    assert "gone 10% of the way that counts as far, and its trials lie along 1.9" in told(*WIDE, max_reach=10.0)
    assert told(*FAR, HOME, max_reach=10.0) == ""


# --- the contract, with branches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", contract.CHECKS, ids=lambda rule: rule.__name__)
def test_it_keeps_the_contract_when_it_branches(rule: Callable[[contract.Case], None]) -> None:
    rule(contract.Case(STRATEGY, SMALL | {"epsilon": 1.0, "shallow_window": 2, "scattered_window": 2}))


def test_a_hundred_steps_with_branches_and_vectors_take_little_time() -> None:
    """The quickest of three searches: the others tell of a machine that is busy."""
    taken = []
    for _ in range(3):
        begin = time.process_time()
        search = World(mixed(100)).search(STRATEGY, {"window": 10}, steps=100)
        taken.append(time.process_time() - begin)
        assert sum("hint" in trial.facts for trial in search.trials) > 30
    assert min(taken) < 0.6
