"""AIDE against the golden traces of the original program, and our own rules."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from labcoat.history import History
from labcoat.lab import Brief, Code, Metric, Trial
from labcoat.models import Models
from labcoat.models.scripted import ScriptedModel
from labcoat.strategies.aide import AIDE, STRATEGY, best, choose, debug_depth, debuggable, is_draft
from labcoat.testing import traced
from tests.strategies.plays import best_value, golden, play, title

TRACES = golden("aide")
HIGHER, LOWER = Metric(name="m", direction="higher"), Metric(name="m", direction="lower")
BASELINE = Trial("baseline", Code.of({}), True, "ok", 0.5, "m = 0.5", "")
ONE_OF_EACH_SCRIPT = list({trace["script"]: trace for trace in TRACES}.values())


def brief(metric: Metric = HIGHER) -> Brief:
    return Brief("Make m better.", metric, (), BASELINE)


def node(parent: Trial | None = None, value: float | None = None) -> Trial:
    """A solution; without a value it failed. One without a parent is a draft."""
    ok = value is not None
    return Trial("", Code.of({}), ok, "ok" if ok else "crash", value, "", "", parent or BASELINE)


def fixed(value: float) -> Random:
    """A generator whose next number is on the wanted side of one half."""
    seed = next(seed for seed in range(100) if (Random(seed).random() < 0.5) == (value < 0.5))
    return Random(seed)


# --- the golden traces --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", TRACES, ids=title)
def test_the_rules_take_the_decisions_of_the_original_with_the_same_draws(trace: dict[str, Any]) -> None:
    params, better = AIDE(**trace["params"]), brief(Metric(name="m", direction=trace["direction"])).better
    rng = Random(trace["seed"])
    tree: list[Trial] = []
    for decision, outcome in zip(trace["decisions"], trace["outcomes"], strict=True):
        parent = choose(tree, params, better, rng)
        assert (tree.index(parent) if parent else None) == decision["parent"]
        tree.append(node(parent, outcome["metric"]))
    top, final = best(tree, better), trace["final"]
    assert rng.random() == final["rng_next"]
    assert (tree.index(top) if top else None) == final["best"]
    assert sum(map(is_draft, tree)) == final["roots"]
    assert max(map(debug_depth, tree)) == final["max_debug_depth_reached"]


@pytest.mark.parametrize("trace", TRACES, ids=title)
def test_on_the_trees_of_the_original_what_can_be_debugged_and_what_is_best_agree(trace: dict[str, Any]) -> None:
    params, better = AIDE(**trace["params"]), brief(Metric(name="m", direction=trace["direction"])).better
    tree: list[Trial] = []
    for step, (decision, outcome) in enumerate(zip(trace["decisions"], trace["outcomes"], strict=True)):
        failures, top = debuggable(tree, params.max_debug_depth), best(tree, better)
        assert len(failures) == trace["structure"]["n_debuggable"][step]
        assert (tree.index(top) if top else None) == trace["structure"]["best"][step]
        parent = None if decision["parent"] is None else tree[decision["parent"]]
        assert parent in ([None] if sum(map(is_draft, tree)) < params.num_drafts else [*failures, top])
        tree.append(node(parent, outcome["metric"]))


@pytest.mark.parametrize("trace", ONE_OF_EACH_SCRIPT, ids=title)
def test_the_whole_strategy_draws_nothing_else_and_names_its_actions_as_the_original(trace: dict[str, Any]) -> None:
    found = traced(trace).search(STRATEGY, trace["params"], steps=trace["budget"])
    decisions = [{"step": d.step, "action": d.action, "parent": d.parent} for d in found.decisions]
    assert decisions == trace["decisions"]
    assert found.rng.random() == trace["final"]["rng_next"]


# --- the rules ----------------------------------------------------------------------------------------------------


def test_drafts_come_first_and_draw_nothing() -> None:
    rng = Random(7)
    tree = [node(), node(value=1.0)]
    assert choose(tree, AIDE(num_drafts=3), brief().better, rng) is None
    assert rng.random() == Random(7).random()


def test_a_child_of_a_solution_is_no_draft() -> None:
    draft = node(value=1.0)
    tree = [draft, node(draft, 2.0), node(draft, 0.0)]
    assert choose(tree, AIDE(num_drafts=2), brief().better, fixed(0.9)) is None
    assert choose(tree, AIDE(num_drafts=1), brief().better, fixed(0.9)) is tree[1]


@pytest.mark.parametrize(("metric", "value"), [(HIGHER, 3.0), (LOWER, 1.0)])
def test_among_equals_the_first_is_best(metric: Metric, value: float) -> None:
    tree = [node(value=2.0), node(), node(value=value), node(value=value)]
    assert best(tree, brief(metric).better) is tree[2]


def test_without_a_valid_solution_and_without_one_to_debug_another_is_drafted() -> None:
    tree = [node()]
    assert choose(tree, AIDE(num_drafts=1), brief().better, fixed(0.9)) is None
    assert choose(tree, AIDE(num_drafts=1), brief().better, fixed(0.1)) is tree[0]
    deep = [*tree, node(tree[0])]
    assert choose(deep, AIDE(num_drafts=1, max_debug_depth=0), brief().better, fixed(0.1)) is None


def test_a_failed_leaf_is_debugged_up_to_the_depth_and_once() -> None:
    chain = [node()]
    for _ in range(4):
        chain.append(node(chain[-1]))
    assert [debug_depth(one) for one in chain] == [0, 1, 2, 3, 4]
    assert debuggable(chain[:4], 3) == [chain[3]]
    assert debuggable(chain, 3) == []
    repaired = node(chain[2], 1.0)
    assert debuggable([*chain[:3], repaired], 3) == []


def test_a_failed_child_of_a_valid_solution_is_as_near_as_a_failed_draft() -> None:
    draft = node(value=1.0)
    failed = node(draft)
    assert debug_depth(failed) == 0
    assert debuggable([draft, node(), failed], 0)[-1] is failed


def test_of_the_failed_leaves_each_may_be_drawn() -> None:
    tree = [node() for _ in range(3)]
    params = AIDE(num_drafts=3, debug_prob=1.0)
    drawn = [tree.index(choose(tree, params, brief().better, Random(seed)) or BASELINE) for seed in range(30)]
    assert {*drawn} == {0, 1, 2}


def test_a_long_chain_of_failures_is_no_trouble() -> None:
    chain = [node()]
    for _ in range(5000):
        chain.append(node(chain[-1]))
    assert debuggable(chain, 5000) == chain[-1:]
    assert debuggable(chain, 4999) == []


def test_the_presets_have_the_values_of_the_original_and_of_the_released_port() -> None:
    for preset in ("original", "released"):
        assert AIDE(**STRATEGY.presets[preset]) == AIDE(num_drafts=5, debug_prob=0.5, max_debug_depth=3)


# --- what the model sees ------------------------------------------------------------------------------------------


def test_an_improvement_sees_the_code_of_the_best_and_its_metric() -> None:
    found, seen = play(STRATEGY, [0.7, 0.9, 0.8, None], num_drafts=3, debug_prob=0.0)
    (_, prompt), (_, edit) = seen[-2:]
    assert prompt.files == edit.files == {"train.py": "EPOCHS = 1\n"}
    assert prompt.get("metric") == "Baseline: score = 0.5 (higher is better)\nBest: score = 0.9 (higher is better)"
    assert prompt.get("history").count("Idea: ") == 3
    assert edit.get("instruction") == "idea 3"
    assert found.trials[3].parent is found.trials[1]
    assert found.trials[3].facts == {"action": "improve", "idea": "idea 3"}


def test_a_repair_sees_the_failed_code_its_idea_and_its_error_and_no_memory() -> None:
    found, seen = play(STRATEGY, [0.7, None, None, None], num_drafts=2, debug_prob=1.0)
    asked = [prompt for purpose, prompt in seen if purpose == "idea"]
    edits = [prompt for purpose, prompt in seen if purpose == "edit"]
    for step in (2, 3):
        assert asked[step].files == edits[step].files == {"train.py": f"EPOCHS = {step - 1}\n"}
        assert f"crash: Traceback\nError of {step - 1}" in asked[step].get("error")
        assert f"crash: Traceback\nError of {step - 1}" in edits[step].get("error")
        assert not asked[step].get("history")
        assert "idea 1" in asked[step].get("instruction")
        instruction = edits[step].get("instruction")
        assert instruction.index("idea 1") < instruction.index(f"idea {step}")
        assert found.trials[step].facts == {"action": "debug", "idea": "idea 1", "repair": f"idea {step}"}


def test_what_was_repaired_is_remembered_with_its_idea_and_the_repair() -> None:
    _, seen = play(STRATEGY, [None, 0.6, None], num_drafts=1, debug_prob=1.0)
    memory = seen[-2][1].get("history").splitlines()[2:]
    assert memory == ["  Idea: idea 0", "  Repair: idea 1", "  Review: review 2"]


def test_a_review_sees_the_idea_the_change_and_the_metric_before_and_after() -> None:
    _, seen = play(STRATEGY, [0.7, 0.9, None], num_drafts=1, debug_prob=0.0)
    prompt = [prompt for purpose, prompt in seen if purpose == "review"][-1]
    assert prompt.get("idea") == "Idea: idea 1"
    assert "-EPOCHS = 0\n+EPOCHS = 1" in prompt.get("change")
    baseline, before, after = prompt.get("metric").splitlines()
    assert baseline == "Baseline: score = 0.5 (higher is better)"
    assert before == "Before the change: score = 0.7 (higher is better)"
    assert after == "After it: score = 0.9 (higher is better)"


def test_only_valid_trials_are_reviewed_and_only_if_someone_will_read_it() -> None:
    _, seen = play(STRATEGY, [None, 0.7, None, 0.8])
    assert [purpose for purpose, _ in seen if purpose != "edit"] == ["idea", "idea", "review", "idea", "idea"]


# --- whole runs ---------------------------------------------------------------------------------------------------


def test_it_beats_the_control_on_a_smooth_valley(simulate: Callable[..., History]) -> None:
    for seed in range(3):
        aide, control = (simulate(name, steps=60, seed=seed) for name in ("aide", "random"))
        assert best_value(aide, "score") > best_value(control, "score") + 0.2


def test_it_beats_the_control_on_a_ridge_where_trials_fail_and_are_repaired(simulate: Callable[..., History]) -> None:
    repairs = []
    for seed in range(3):
        aide, control = (simulate(name, task="sim/ridge", steps=60, seed=seed) for name in ("aide", "random"))
        assert best_value(aide, "loss") < best_value(control, "loss") - 0.2
        repairs += [(aide.steps[step.parent or 0], step) for step in aide.trials if step.facts["action"] == "debug"]
    assert any(step.outcome.ok for _, step in repairs)
    assert not any(parent.outcome.ok for parent, _ in repairs)


def test_a_draft_that_was_rejected_costs_a_step_and_is_debugged(simulate: Callable[..., History]) -> None:
    talk = Models({"*": ScriptedModel(lambda prompt, call: "I would rather talk about it.")})
    run = simulate("aide", steps=4, model=talk, params={"num_drafts": 1, "debug_prob": 1.0})
    assert [step.outcome.status for step in run.trials] == ["edit_failed"] * 4
    assert [step.parent for step in run.trials] == [0, 1, 2, 3]
    assert [step.facts["action"] for step in run.trials] == ["draft", "debug", "debug", "debug"]
