"""AIRA against the golden traces of the released port, and our own rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from labcoat.history import History
from labcoat.lab import Code, Metric, Trial
from labcoat.models import Models
from labcoat.models.scripted import ScriptedModel
from labcoat.strategies.aira import AIRA, STRATEGY, Node, Tree
from labcoat.testing import traced
from tests.strategies.plays import best_value, golden, play, title

TRACES = golden("aira_fml")
HIGHER, LOWER = Metric(name="m", direction="higher"), Metric(name="m", direction="lower")
BASELINE = Trial("baseline", Code.of({}), True, "ok", 0.5, "m = 0.5", "")


def params_of(trace: dict[str, Any]) -> dict[str, Any]:
    """The trace's parameters as ours: those of the original's rule for failures."""
    return {key: value for key, value in trace["params"].items() if key != "debug_rule"} | {"failures": "ignored"}


def tried(value: float | None) -> Trial:
    """A trial; without a value it failed."""
    ok = value is not None
    return Trial("", Code.of({}), ok, "ok" if ok else "crash", value, "", "")


def a_tree(metric: Metric = HIGHER, **params: Any) -> Tree:
    return Tree(BASELINE, metric, AIRA(**params))


def grow(tree: Tree, path: Sequence[Node], *values: float | None) -> Node:
    """A child at the end of the path, with its repairs; learned from."""
    chain = [path[-1].add(tried(values[0]))]
    for value in values[1:]:
        chain.append(chain[-1].add(tried(value)))
    tree.learn(path, chain)
    return chain[0]


# --- the golden traces --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", TRACES, ids=title)
def test_on_the_tree_of_the_port_the_rules_choose_its_leaves_and_count_its_visits(trace: dict[str, Any]) -> None:
    tree = a_tree(Metric(name="m", direction=trace["direction"]), **params_of(trace))
    nodes: list[Node] = []
    leaves: list[int | None] = []
    path: list[Node] = []
    made = 0
    chain: list[Node] = []
    for decision, outcome in zip(trace["decisions"], trace["outcomes"], strict=True):
        parent = tree.root if decision["parent"] is None else nodes[decision["parent"]]
        if decision["action"] != "debug":
            if chain and not chain[-1].trial.ok:
                tree.learn(path, chain)
            if made % tree.params.num_children == 0:
                path = tree.select()
                leaves.append(None if path[-1] is tree.root else nodes.index(path[-1]))
            made, chain = made + 1, []
            assert parent is path[-1]
        else:
            assert parent is chain[-1]
        chain.append(parent.add(tried(outcome["metric"])))
        nodes.append(chain[-1])
        if not outcome["buggy"]:
            tree.learn(path, chain)
    structure = trace["structure"]
    assert leaves == structure["leaf_of_expansion"]
    assert [node.visits for node in nodes] == structure["visits"]
    assert [node.total for node in nodes] == pytest.approx(structure["value_sum"], abs=1e-8)
    assert (tree.root.visits, tree.root.total) == pytest.approx(
        (structure["root_visits"], structure["root_value_sum"]), abs=1e-8
    )


@pytest.mark.parametrize("trace", TRACES, ids=title)
def test_the_whole_strategy_takes_the_decisions_of_the_port_and_draws_nothing(trace: dict[str, Any]) -> None:
    found = traced(trace).search(STRATEGY, params_of(trace), steps=trace["budget"])
    decisions = [{"step": d.step, "action": d.action, "parent": d.parent} for d in found.decisions]
    assert decisions == trace["decisions"]
    assert found.rng.random() == Random(trace["seed"]).random()


# --- the rules ----------------------------------------------------------------------------------------------------


def test_the_uct_value_is_the_mean_between_worst_and_best_and_a_bonus_for_few_visits() -> None:
    tree = a_tree(uct_c=0.5)
    low, high, between = (grow(tree, [tree.root], value) for value in (10.0, 30.0, 20.0))
    bonus = 0.5 * math.sqrt(math.log(3))
    assert [tree.uct(tree.root, child) - bonus for child in (low, high, between)] == pytest.approx([0.0, 1.0, 0.5])
    grow(tree, [tree.root, high], 20.0)
    assert tree.uct(tree.root, high) == pytest.approx(0.75 + 0.5 * math.sqrt(math.log(4) / 2))


def test_lower_is_better_where_the_metric_says_so() -> None:
    tree = a_tree(LOWER)
    children = [grow(tree, [tree.root], value) for value in (10.0, 30.0, 10.0)]
    assert tree.select() == [tree.root, children[0]]
    assert (tree.worst, tree.best) == (30.0, 10.0)


def test_among_equals_the_child_made_first_is_chosen() -> None:
    tree = a_tree()
    children = [grow(tree, [tree.root], 0.7) for _ in range(3)]
    assert tree.scaled(0.7) == 0.5
    assert tree.select() == [tree.root, children[0]]


def test_a_repaired_child_counts_with_all_its_repairs() -> None:
    tree = a_tree()
    child = grow(tree, [tree.root], None, None, 0.8)
    chain = [child, child.children[0], child.children[0].children[0]]
    assert [(node.visits, node.total) for node in [tree.root, *chain]] == [(1, 0.8)] * 4
    assert tree.select() == [tree.root, *chain]


def test_while_nothing_was_valid_the_root_gets_new_drafts() -> None:
    tree = a_tree()
    grow(tree, [tree.root], None, None)
    assert tree.select() == [tree.root]
    assert tree.root.visits == 0


def test_a_leaf_whose_children_fail_is_left_after_a_while() -> None:
    tree = a_tree(num_children=2, uct_c=0.25)
    other, good = (grow(tree, [tree.root], value) for value in (0.5, 0.9))
    grow(tree, [tree.root, other], 0.6)
    for _ in range(5):
        if (path := tree.select())[1] is good:
            assert path == [tree.root, good]
            grow(tree, path, None)
    assert tree.select()[1] is other
    failures = good.visits - 1
    assert 1 <= failures < 5
    assert good.total == pytest.approx(0.9 + failures * 0.5)


def test_by_the_original_rule_such_a_leaf_is_never_left_and_broken_code_is_grown_from() -> None:
    tree = a_tree(failures="ignored")
    _, good = (grow(tree, [tree.root], value) for value in (0.5, 0.9))
    broken = grow(tree, [tree.root, good], None)
    for _ in range(20):
        path = tree.select()
        assert path[:3] == [tree.root, good, broken]
        grow(tree, path, None)
    assert good.visits == 1


def test_the_presets_have_the_values_of_the_original_and_of_the_released_port() -> None:
    original, released = (AIRA(**STRATEGY.presets[preset]) for preset in ("original", "released"))
    assert original == AIRA(num_children=5, uct_c=0.25, max_debug_depth=20, failures="ignored")
    assert released == AIRA(num_children=2, uct_c=1.41, max_debug_depth=3, failures="ignored")


# --- what the model sees ------------------------------------------------------------------------------------------


def test_an_improvement_sees_the_leaf_that_was_chosen_and_all_valid_solutions() -> None:
    found, seen = play(STRATEGY, [0.7, 0.9, None, 0.8], max_debug_depth=0)
    (_, prompt), (_, edit) = seen[-2:]
    assert [decision.parent for decision in found.decisions] == [None, None, 1, 1]
    assert prompt.files == edit.files == {"train.py": "EPOCHS = 1\n"}
    assert prompt.get("metric").splitlines()[1] == "These files: score = 0.9 (higher is better)"
    assert prompt.get("history").count("Idea: ") == 2
    assert edit.get("instruction") == "idea 3"
    assert found.trials[3].facts == {"action": "improve", "idea": "idea 3"}


def test_a_repair_sees_the_idea_the_error_and_the_repairs_that_failed() -> None:
    found, seen = play(STRATEGY, [None, None, None], num_children=1)
    _, first, second = (prompt for purpose, prompt in seen if purpose == "idea")
    assert not first.get("history")
    assert second.get("history").splitlines() == ["Repairs that failed:", "- idea 1", "  crash: Error of 1"]
    assert second.files == {"train.py": "EPOCHS = 1\n"}
    assert "Error of 1" in second.get("error") and "idea 0" in second.get("instruction")
    edit = seen[-1][1].get("instruction")
    assert edit.index("idea 0") < edit.index("idea 2")
    assert found.trials[2].facts == {"action": "debug", "idea": "idea 0", "repair": "idea 2"}
    assert found.trials[2].parent is found.trials[1]


def test_a_review_sees_the_whole_change_from_the_leaf_with_its_repairs() -> None:
    _, seen = play(STRATEGY, [0.7, None, 0.9, None], num_children=1)
    review = [prompt for purpose, prompt in seen if purpose == "review"][-1]
    assert review.get("idea") == "Idea: idea 1"
    assert "-EPOCHS = 0\n+EPOCHS = 2" in review.get("change")
    assert review.get("metric").splitlines() == [
        "Baseline: score = 0.5 (higher is better)",
        "Before the change: score = 0.7 (higher is better)",
        "After it: score = 0.9 (higher is better)",
    ]
    memory = [prompt for purpose, prompt in seen if purpose == "idea"][-1].get("history")
    assert memory.splitlines()[-3:] == ["  Idea: idea 1", "  Repair: idea 2", "  Review: review 3"]


def test_only_valid_trials_are_reviewed_and_only_if_someone_will_read_it() -> None:
    _, seen = play(STRATEGY, [None, 0.7, None, 0.8], max_debug_depth=1)
    assert [purpose for purpose, _ in seen if purpose != "edit"] == ["idea", "idea", "review", "idea", "idea"]


# --- whole runs ---------------------------------------------------------------------------------------------------


def test_it_beats_the_control_where_nothing_fails_and_where_much_does(simulate: Callable[..., History]) -> None:
    for seed in range(2):
        aira, control = (simulate(name, steps=60, seed=seed) for name in ("aira", "random"))
        assert best_value(aira, "score") > best_value(control, "score") + 0.2
        aira, control = (simulate(name, task="sim/ridge", steps=60, seed=seed) for name in ("aira", "random"))
        assert best_value(aira, "loss") < best_value(control, "loss") - 0.2


def test_a_draft_that_was_rejected_costs_a_step_and_is_repaired(simulate: Callable[..., History]) -> None:
    talk = Models({"*": ScriptedModel(lambda prompt, call: "I would rather talk about it.")})
    run = simulate("aira", steps=6, model=talk)
    assert [step.outcome.status for step in run.trials] == ["edit_failed"] * 6
    assert [step.facts["action"] for step in run.trials] == ["draft", "debug", "debug", "debug", "draft", "debug"]
    assert [step.parent for step in run.trials] == [0, 1, 2, 3, 0, 5]
