"""AIDE against the golden traces of the original program, and our own rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from labcoat.history import History
from labcoat.lab import AskRequest, Brief, Code, Edit, EditRequest, Lab, Metric, Reply, Trial, TrialRequest
from labcoat.models import ROOM, Models
from labcoat.models.scripted import ScriptedModel
from labcoat.strategies.aide import AIDE, best, choose, debug_depth, debuggable, idea_prompt, is_draft, search

PEERS = Path(__file__).parent.parent / "peers"
TRACES = [json.loads(line) for line in (PEERS / "traces/aide.jsonl").read_text().splitlines()]
HIGHER, LOWER = Metric(name="m", direction="higher"), Metric(name="m", direction="lower")
BASELINE = Trial("baseline", Code.of({"a.py": "x = 0\n"}), True, "ok", 0.5, "m = 0.5 (baseline)", "")
each_trace = pytest.mark.parametrize("trace", TRACES, ids=lambda t: f"{t['trace']}-{t['script']}")


def brief(metric: Metric = HIGHER) -> Brief:
    return Brief("Make m better.", metric, ("a.py",), BASELINE)


def node(parent: Trial | None = None, value: float | None = None, key: str = "", **facts: Any) -> Trial:
    """A solution; without a value it failed. One without a parent is a draft."""
    code = Code.of({"a.py": f"x = '{key}'\n"})
    ok = value is not None
    line, error = (f"m = {value}", "") if ok else ("", f"crash: Traceback of {key}")
    return Trial(key, code, ok, "ok" if ok else "crash", value, line, error, parent or BASELINE, facts)


def fixed(value: float) -> Random:
    """A generator whose next number is on the wanted side of one half."""
    seed = next(seed for seed in range(100) if (Random(seed).random() < 0.5) == (value < 0.5))
    return Random(seed)


@dataclass
class Played:
    """What a strategy did in a world of scripted outcomes."""

    trials: list[Trial] = field(default_factory=list)
    asked: list[AskRequest] = field(default_factory=list)
    edits: list[EditRequest] = field(default_factory=list)
    rng: Random = field(default_factory=Random)

    def index(self, trial: Trial | None) -> int | None:
        """Number of a solution; None for the baseline, or none."""
        return next((number for number, known in enumerate(self.trials) if known is trial), None)


def play(values: Sequence[float | None], params: AIDE, metric: Metric = HIGHER, seed: int = 0) -> Played:
    """Run the whole strategy; its n-th trial gives the n-th value, and fails without one."""
    played = Played(rng=Random(seed))
    lab = Lab(brief(metric), played.rng, lambda: len(values) - len(played.trials))
    coroutine = search(lab, params)
    answer: Any = None
    try:
        while True:
            request = coroutine.send(answer)
            number = len(played.trials)
            match request:
                case AskRequest():
                    played.asked.append(request)
                    answer = Reply(f"{request.purpose} {number}")
                case EditRequest():
                    played.edits.append(request)
                    answer = Edit("", request.base, Code.of({"a.py": f"x = {number}\n"}), request.instruction)
                case TrialRequest():
                    answer = node(request.edit.base, values[number], str(number), **request.facts)
                    played.trials.append(answer)
                case _:
                    raise AssertionError(request)
    except StopIteration:
        return played


# --- the golden traces --------------------------------------------------------------------------------------------


@each_trace
def test_the_whole_strategy_takes_the_decisions_of_the_original_with_the_same_draws(trace: dict[str, Any]) -> None:
    metric = Metric(name="m", direction=trace["direction"])
    values = [outcome["metric"] for outcome in trace["outcomes"]]
    played = play(values, AIDE(**trace["params"]), metric, trace["seed"])
    decisions = [
        {"step": step, "action": trial.facts["action"], "parent": played.index(trial.parent)}
        for step, trial in enumerate(played.trials)
    ]
    assert decisions == trace["decisions"]
    final = trace["final"]
    assert played.rng.random() == final["rng_next"]
    assert played.index(best(played.trials, brief(metric).better)) == final["best"]
    assert sum(map(is_draft, played.trials)) == final["roots"]
    assert max(map(debug_depth, played.trials)) == final["max_debug_depth_reached"]


@each_trace
def test_on_the_trees_of_the_original_what_can_be_debugged_and_what_is_best_agree(trace: dict[str, Any]) -> None:
    better = brief(Metric(name="m", direction=trace["direction"])).better
    params = AIDE(**trace["params"])
    tree: list[Trial] = []
    for step, (decision, outcome) in enumerate(zip(trace["decisions"], trace["outcomes"], strict=True)):
        failed, top = debuggable(tree, params.max_debug_depth), best(tree, better)
        assert len(failed) == trace["structure"]["n_debuggable"][step]
        assert (tree.index(top) if top else None) == trace["structure"]["best"][step]
        parent = None if decision["parent"] is None else tree[decision["parent"]]
        assert parent in ([None] if sum(map(is_draft, tree)) < params.num_drafts else [*failed, top])
        tree.append(node(parent, outcome["metric"]))


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
    played = play([None] * 1500, AIDE(num_drafts=1, debug_prob=1.0, max_debug_depth=10_000))
    assert debug_depth(played.trials[-1]) == 1499


# --- what the model sees ------------------------------------------------------------------------------------------


def test_a_draft_sees_the_baseline_and_the_memory_with_ideas_metrics_and_reviews() -> None:
    first, review, second = play([0.7, None], AIDE()).asked
    assert (first.purpose, review.purpose, second.purpose) == ("idea", "review", "idea")
    assert [part.name for part in first.prompt.parts] == ["task", "metric", "file", "instruction"]
    assert second.prompt.files == {"a.py": "x = 0\n"}
    memory = next(part for part in second.prompt.parts if part.name == "history")
    assert memory.items == ("- m = 0.7\n  Idea: idea 0\n  Review: review 1",)
    assert "Baseline: m = 0.5 (baseline)" in second.prompt.text


def test_an_improvement_sees_the_code_of_the_best_and_its_metric() -> None:
    played = play([0.7, 0.9, 0.8, None], AIDE(num_drafts=3, debug_prob=0.0))
    prompt = played.asked[-1].prompt
    assert prompt.files == {"a.py": "x = '1'\n"}
    assert prompt.get("metric") == "Baseline: m = 0.5 (baseline)\nBest: m = 0.9"
    assert [len(part.items) for part in prompt.parts if part.name == "history"] == [3]
    assert played.edits[-1].instruction == "idea 3"
    assert played.trials[-1].parent is played.trials[1]


def test_a_repair_sees_the_failed_code_its_idea_and_its_error_and_no_memory() -> None:
    played = play([0.7, None, None, None], AIDE(num_drafts=2, debug_prob=1.0))
    third, fourth = (request.prompt for request in played.asked[-2:])
    assert third.files == {"a.py": "x = '1'\n"}
    assert "crash: Traceback of 1" in third.get("error") and "idea 1" in third.get("instruction")
    assert not third.get("history")
    for repair, prompt in ((2, third), (3, fourth)):
        assert "idea 1" in prompt.get("instruction")
        edit, trial = played.edits[repair], played.trials[repair]
        assert edit.base is played.trials[repair - 1] and edit.error == edit.base.error
        assert edit.instruction.index("idea 1") < edit.instruction.index(f"idea {repair}")
        assert trial.facts == {"action": "debug", "idea": "idea 1", "repair": f"idea {repair}"}


def test_what_was_repaired_is_remembered_with_its_idea_and_the_repair() -> None:
    played = play([None, 0.6, None], AIDE(num_drafts=1, debug_prob=1.0))
    memory = next(part for part in played.asked[-1].prompt.parts if part.name == "history")
    assert memory.items == ("- m = 0.6\n  Idea: idea 0\n  Repair: idea 1\n  Review: review 2",)


def test_a_review_sees_the_idea_the_change_and_the_metric_before_and_after() -> None:
    played = play([0.7, 0.9, None], AIDE(num_drafts=1, debug_prob=0.0))
    prompt = next(request.prompt for request in reversed(played.asked) if request.purpose == "review")
    assert prompt.get("idea") == "Idea: idea 1"
    assert "-x = '0'" in prompt.get("change") and "+x = '1'" in prompt.get("change")
    assert prompt.get("metric") == "Baseline: m = 0.5 (baseline)\nBefore the change: m = 0.7\nAfter it: m = 0.9"


def test_only_valid_trials_are_reviewed_and_only_if_someone_will_read_it() -> None:
    played = play([None, 0.7, None, 0.8], AIDE())
    assert [request.purpose for request in played.asked] == ["idea", "idea", "review", "idea", "idea"]


def test_a_long_memory_stays_within_the_room_of_the_model_newest_kept() -> None:
    memory = [f"- m = {number}\n  Idea: {'word ' * 120}\n  Review: {'word ' * 120}" for number in range(500)]
    packed = idea_prompt(brief(), node(value=1.0), memory).packed(ROOM)
    assert ROOM - 500 < packed.tokens <= ROOM
    assert "- m = 499\n" in packed.text and "- m = 0\n" not in packed.text


# --- whole runs ---------------------------------------------------------------------------------------------------


def value(history: History, metric: str) -> float:
    assert history.best is not None
    found = history.best.value(metric)
    assert found is not None
    return found


def test_it_beats_the_control_on_a_smooth_valley(simulate: Callable[..., History]) -> None:
    for seed in range(3):
        aide, control = (simulate(name, steps=60, seed=seed) for name in ("aide", "random"))
        assert value(aide, "score") > value(control, "score") + 0.2


def test_it_beats_the_control_on_a_ridge_where_trials_fail_and_are_repaired(simulate: Callable[..., History]) -> None:
    repairs = []
    for seed in range(3):
        aide, control = (simulate(name, task="sim/ridge", steps=60, seed=seed) for name in ("aide", "random"))
        assert value(aide, "loss") < value(control, "loss") - 0.2
        repairs += [(aide.steps[step.parent or 0], step) for step in aide.trials if step.facts["action"] == "debug"]
    assert any(step.outcome.ok for _, step in repairs)
    assert not any(parent.outcome.ok for parent, _ in repairs)


def test_a_draft_that_was_rejected_costs_a_step_and_is_debugged(simulate: Callable[..., History]) -> None:
    talk = Models({"*": ScriptedModel(lambda prompt, call: "I would rather talk about it.")})
    run = simulate("aide", steps=4, model=talk, params={"num_drafts": 1, "debug_prob": 1.0})
    assert [step.outcome.status for step in run.trials] == ["edit_failed"] * 4
    assert [step.parent for step in run.trials] == [0, 1, 2, 3]
    assert [step.facts["action"] for step in run.trials] == ["draft", "debug", "debug", "debug"]


def test_every_prefix_of_the_events_resumes_to_the_same_end(simulate: Callable[..., History]) -> None:
    def story() -> Any:
        told = simulate("aide", task="sim/ridge", steps=12, seed=0, params={"num_drafts": 3}).to_json()
        return {name: told[name] for name in told if name not in ("folder", "spent")}

    whole = story()
    assert {trial["facts"]["action"] for trial in whole["trials"]} == {"draft", "improve", "debug"}
    events = simulate("aide", task="sim/ridge", steps=12, seed=0, params={"num_drafts": 3}).folder / "events.jsonl"
    lines = events.read_bytes().splitlines(keepends=True)
    for length in range(len(lines)):
        events.write_bytes(b"".join(lines[:length]) + lines[length][:10])
        assert story() == whole
