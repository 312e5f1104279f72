"""The AI Scientist v2 against the golden traces of the original, and our own rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from random import Random
from typing import Any, Literal

import pytest

from labcoat.history import History
from labcoat.lab import Code, Metric, Prompt, Reply, Trial
from labcoat.models import Call, Model, Models
from labcoat.models.offline import OfflineMutator
from labcoat.models.scripted import ScriptedModel
from labcoat.strategies.tas_v2 import STRATEGY, TasV2
from labcoat.strategies.tas_v2_rules import Segment, begin, by_shares, complete, ends, ranked, room, select
from labcoat.testing import Search, World, failed, measured, traced
from tests.strategies.plays import golden, title

HIGHER, LOWER = Metric(name="m", direction="higher"), Metric(name="m", direction="lower")
ORIGINAL, RELEASED = STRATEGY.presets["original"], STRATEGY.presets["released"]
CAPS = (20, 12, 12, 18)
STAGES = (10, 30, 80, 100)
"""Steps after which the stages of a search of 100 end."""


def traces(file: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("trace", golden(file), ids=title)


def node(parent: Trial | None = None, value: float | None = None, ok: bool | None = None, **facts: Any) -> Trial:
    """A trial; without a value it failed, unless it is said to be ok: then it is neither good nor bad."""
    valid = value is not None if ok is None else ok
    line, error = (f"m = {value}", "") if valid else ("", "Traceback\nValueError: no")
    return Trial("", Code.of({}), valid, "ok" if valid else "crash", value, line, error, parent, facts)


def judge(yes_at: Sequence[int]) -> Model:
    """A model whose n-th answer is yes if n is listed."""
    count = [0]

    def answer(prompt: Prompt, call: Call) -> Reply:
        count[0] += 1
        return Reply("", parsed={"complete": count[0] in yes_at, "goal": f"goal {count[0]}"})

    return ScriptedModel(answer)


# --- the golden traces --------------------------------------------------------------------------------------------


@traces("tas_v2_select")
def test_a_batch_is_picked_as_by_the_original_with_the_same_draws(trace: dict[str, Any]) -> None:
    given = trace["params"]
    tree: list[Trial] = []
    for row in trace["journal"]:
        parent = None if row["parent"] is None else tree[row["parent"]]
        limbo = row.get("limbo", False)
        tree.append(node(parent, None if limbo else row["metric"], ok=not row["buggy"]))
    centre = None if given["carried"] is None else tree[given["carried"]]
    at = Segment(given["stage"], drafts=given["num_drafts"], centre=centre, tree=tuple(tree))
    rng = Random(trace["seed"])
    order = ranked(tree, HIGHER if trace["direction"] == "higher" else LOWER)
    picks = select(at, order, given["num_workers"], given["debug_prob"], given["max_debug_depth"], rng)
    assert [tree.index(pick) if pick else None for pick in picks] == [d["parent"] for d in trace["decisions"]]
    assert rng.random() == trace["final"]["rng_next"]
    assert [tree.index(trial) for trial in order] == trace["structure"]["ranked_good"]


@traces("tas_v2_run")
def test_the_original_rules_reproduce_whole_runs_with_the_same_draws(trace: dict[str, Any]) -> None:
    given, structure = trace["params"], trace["structure"]
    params = {
        "workers": given["num_workers"], "drafts": given["num_drafts"], "debug_prob": given["debug_prob"],
        "max_debug_depth": given["max_debug_depth"], "caps": given["stage_caps"], "ideas": 0,
    }  # fmt: skip
    judges = {"stage": judge(given["stage2_judge_yes_at"]), "substage": judge(given["substage_judge_yes_at"])}
    world = traced(trace, models=Models({**judges, "*": OfflineMutator()}))
    # Steps to spare: it is its own rules that end the search.
    run = world.search(STRATEGY, params, steps=trace["budget"] + 1)
    assert run.reason == "strategy returned"
    names = ("stage", "sub", "batch", "slot")
    assert [
        {"step": d.step, "action": d.action, "parent": d.parent} | {name: d.facts[name] for name in names}
        for d in run.decisions
    ] == trace["decisions"]
    assert run.rng.random() == trace["final"]["rng_next"]
    assert run.asked("stage") == structure["judge_asked"] and run.asked("substage") == structure["substage_asked"]
    segments = groupby(run.trials, key=lambda trial: (trial.facts["stage"], trial.facts["sub"]))
    assert [
        {"stage": stage, "sub": sub, "batches": [*Counter(trial.facts["batch"] for trial in trials).values()]}
        for (stage, sub), trials in segments
    ] == [{name: segment[name] for name in ("stage", "sub", "batches")} for segment in structure["segments"]]


# --- picking a batch ----------------------------------------------------------------------------------------------


def picks(
    tree: Sequence[Trial], slots: int = 4, *, stage: int = 3, drafts: int = 0, centre: Trial | None = None,
    metric: Metric = HIGHER, seed: int = 0, debug_prob: float = 0.5, max_debug_depth: int = 3,
) -> list[Trial | None]:  # fmt: skip
    at = Segment(stage, drafts=drafts, centre=centre, tree=tuple(tree))
    return select(at, ranked(tree, metric), slots, debug_prob, max_debug_depth, Random(seed))


def test_an_empty_journal_is_begun_with_a_whole_batch_of_drafts_and_no_draw() -> None:
    rng = Random(7)
    assert select(Segment(drafts=3), [], 4, 0.5, 3, rng) == [None] * 4
    assert rng.random() == Random(7).random()


def test_a_batch_takes_each_tree_once_the_best_first() -> None:
    tree = [node(value=value) for value in (1.0, 3.0, 2.0, 3.0)]
    assert picks(tree, debug_prob=0.0) == [tree[1], tree[3], tree[2], tree[0]]
    assert picks(tree, debug_prob=0.0, metric=LOWER) == [tree[0], tree[2], tree[1], tree[3]]


def test_where_one_tree_lives_its_best_is_picked_again_and_again() -> None:
    root = node(value=1.0)
    child = node(root, 2.0)
    assert picks([root, child, node()], debug_prob=0.0) == [child] * 4


def test_failed_leaves_are_debugged_to_a_depth() -> None:
    chain = [node()]
    for _ in range(4):
        chain.append(node(chain[-1]))
    assert picks(chain[:4], 1, debug_prob=1.0) == [chain[3]]
    assert picks(chain, 1, debug_prob=1.0) == [None]
    assert picks(chain, 1, debug_prob=1.0, max_debug_depth=4) == [chain[4]]


def test_stars_pick_their_centre_however_good_its_children_are() -> None:
    centre = node(value=1.0)
    tree = [centre, node(centre, 2.0), node(centre)]
    for stage in (2, 4):
        assert picks(tree, stage=stage, centre=centre, debug_prob=0.0) == [centre] * 4
        assert picks(tree, 1, stage=stage, centre=centre, debug_prob=1.0) == [tree[2]]


def test_without_a_good_trial_and_without_one_to_debug_another_is_drafted() -> None:
    assert picks([node(), node()], debug_prob=0.0) == [None] * 4


def test_the_parent_of_a_trial_counts_only_within_the_journal() -> None:
    before = node(value=9.0)
    tree = [node(before, 1.0), node(before, 2.0)]
    assert picks(tree, 2, debug_prob=0.0) == [tree[1], tree[0]]


# --- stages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "marks"), [(100, [10, 30, 80, 100]), (20, [2, 6, 16, 20]), (7, [0, 1, 4, 7]), (1, [0, 0, 0, 1])]
)
def test_stages_have_shares_of_the_steps_and_the_last_has_the_rest(total: int, marks: list[int]) -> None:
    assert ends(total, TasV2().shares) == marks


def test_a_stage_begins_when_its_share_does_with_the_best_so_far() -> None:
    best = node(value=1.0)
    at = Segment(tree=(node(), best))
    assert by_shares(at, best, 9, STAGES, True) is at
    then = by_shares(at, best, 10, STAGES, True)
    assert (then.stage, then.tree, then.centre, then.drafts) == (2, (best,), best, 0)
    assert by_shares(then, best, 99, STAGES, True).stage == 4


def test_the_first_stage_goes_on_until_something_works_and_the_later_ones_pay() -> None:
    at = Segment(tree=(node(), node()))
    assert by_shares(at, None, 40, STAGES, True) is at
    assert by_shares(at, node(value=1.0), 40, STAGES, True).stage == 3


def test_a_batch_ends_with_its_stage() -> None:
    assert room(Segment(1), 8, STAGES, 4) == 2
    assert room(Segment(1), 12, STAGES, 4) == 4  # overdue
    assert room(Segment(3), 30, STAGES, 4) == 4


def test_in_the_port_a_later_stage_begins_again_at_the_baseline() -> None:
    best, carry = node(value=1.0), TasV2.model_validate(RELEASED).carry
    assert [begin(stage, best, 2, carry).drafts for stage in (2, 3, 4)] == [0, 1, 0]
    assert [begin(stage, best, 2, carry).tree for stage in (2, 3, 4)] == [()] * 3
    assert begin(2, best, 2, carry).centre is best


def test_the_original_completes_a_stage_by_what_was_found() -> None:
    good, better = node(value=1.0), node(value=2.0)
    assert complete(Segment(1, tree=(node(),)), None, CAPS) is False
    assert complete(Segment(1, tree=(good,)), good, CAPS) is True
    assert complete(Segment(1, tree=(node(),) * 20), None, CAPS) is True
    second = Segment(2, number=2, tree=(good, better))
    assert complete(second, good, CAPS) is False
    assert complete(second, better, CAPS) is None
    assert complete(Segment(3, number=3, tree=(good,) * 11), good, CAPS) is False
    assert complete(Segment(3, number=3, tree=(good,) * 12), good, CAPS) is True


# --- whole searches -----------------------------------------------------------------------------------------------


def search(
    values: Callable[[int], float | None], steps: int, *, models: dict[str, Model] | None = None,
    direction: Literal["higher", "lower"] = "higher", **params: Any,
) -> Search:  # fmt: skip
    """A search whose i-th trial has the i-th value, and fails without one."""
    by_purpose = {"*": OfflineMutator(), **(models or {})}
    world = World(
        lambda i: failed() if (value := values(i)) is None else measured(value),
        direction=direction, models=Models(by_purpose),
    )  # fmt: skip
    return world.search(STRATEGY, params, steps=steps)


def watched(purpose: str, seen: list[Prompt], answer: str = "") -> dict[str, Model]:
    """A model for a purpose that keeps what it was shown."""

    def chat(prompt: Prompt, call: Call) -> Reply:
        seen.append(prompt)
        return Reply(f"{answer or purpose} {len(seen)}", parsed={})

    return {purpose: ScriptedModel(chat)}


def test_a_search_goes_through_its_stages() -> None:
    run = search(lambda i: 0.6 + i / 100, 100)
    assert len(run.trials) == 100
    assert Counter(t.facts["stage"] for t in run.trials) == {1: 10, 2: 20, 3: 50, 4: 20}
    actions = {(t.facts["stage"], t.facts["action"]) for t in run.trials}
    assert actions == {(1, "draft"), (1, "improve"), (2, "tune"), (3, "improve"), (4, "ablate")}
    for before, after in ((1, 2), (3, 4)):  # a star around the best of the stage before
        best = max((t for t in run.trials if t.facts["stage"] <= before), key=lambda t: t.value or 0)
        assert {t.parent for t in run.trials if t.facts["stage"] == after} == {best}


def test_what_was_best_before_a_stage_stays_in_the_running() -> None:
    run = search(lambda i: 0.9 if i == 0 else 0.6, 60)
    assert {d.parent for d in run.decisions if d.facts["stage"] > 1} == {0}
    port = search(lambda i: 0.9 if i == 0 else 0.6, 60, **RELEASED)
    third = [d for d in port.decisions if d.facts["stage"] == 3]
    assert [d.parent for d in third[:4]] == [None] * 4
    assert 0 not in {d.parent for d in third}


def test_in_the_port_tuning_and_ablation_do_not_debug() -> None:
    def debugged(**params: Any) -> set[int]:
        run = search(lambda i: 0.6 if i % 2 else None, 60, debug_prob=1.0, **params)
        return {trial.facts["stage"] for trial in run.trials if trial.facts["action"] == "debug"}

    assert debugged() == {1, 2, 3, 4}
    assert debugged(debug_stars=False) == {1, 3}


def test_while_everything_fails_it_drafts_and_debugs() -> None:
    run = search(lambda i: None, 40)
    assert len(run.trials) == 40
    assert {t.facts["action"] for t in run.trials} == {"draft", "debug"}
    late = search(lambda i: None if i < 35 else 0.6, 40)
    assert [t.facts["stage"] for t in late.trials] == [1] * 36 + [4] * 4


def test_the_order_in_which_the_jobs_of_a_batch_are_carried_out_changes_nothing() -> None:
    def decisions(order: Callable[[int], Any]) -> list[Any]:
        run = World(order=order).search(STRATEGY, steps=40)
        return [(d, d.facts, d.code) for d in run.decisions]

    assert decisions(range) == decisions(lambda jobs: reversed(range(jobs)))


def test_drafts_are_dealt_the_ideas_and_pass_them_on() -> None:
    run = search(lambda i: None if i % 3 else 0.6 + i / 100, 40, models=watched("idea", []))
    topics = [t.facts["topic"] for t in run.trials if t.facts["action"] == "draft"]
    assert topics[:4] == ["idea 1", "idea 2", "idea 3", "idea 1"]
    for trial in run.trials:
        if trial.parent and trial.parent in run.trials:
            assert trial.facts["topic"] == trial.parent.facts["topic"]


def test_no_idea_is_asked_for_where_none_is_wanted() -> None:
    run = search(lambda i: 0.6, 8, ideas=0)
    assert run.asked("idea") == 0 and {t.facts["topic"] for t in run.trials} == {""}


@pytest.mark.parametrize(("said", "built_upon"), [(2, 1), (99, 3), (None, 3)])
def test_a_model_may_choose_the_best_and_the_metric_chooses_where_it_does_not(
    said: int | None, built_upon: int
) -> None:
    chooser = ScriptedModel(lambda prompt, call: Reply("", parsed={"trial": said} if said else None))
    run = search(
        lambda i: 0.6 + i / 100, 6, best_by="model", debug_prob=0.0, models={"best": chooser}, shares=[1, 0, 0]
    )
    assert [d.parent for d in run.decisions[:5]] == [None] * 4 + [built_upon]
    assert run.asked("best") == 1  # once a batch, and not after the last


def test_the_lowest_is_the_best_where_lower_is_better() -> None:
    run = search(lambda i: [0.4, 0.2, 0.3, 0.2][i % 4], 10, direction="lower", debug_prob=0.0)
    assert run.decisions[4].parent == 1


# --- what the model sees ------------------------------------------------------------------------------------------


def test_one_summary_of_the_journal_serves_a_batch_and_names_what_failed_and_why() -> None:
    seen: list[Prompt] = []
    plans: list[Prompt] = []
    models = {**watched("journal", seen), **watched("plan", plans), **watched("review", [])}
    search(lambda i: 0.6 if i % 2 else None, 8, models=models, debug_prob=0.0, shares=[1, 0, 0])
    assert len(seen) == 1
    first, second, *_ = seen[0].get("history").split("\n\n")[0].split("\n2. ")
    assert first.startswith("The trials so far:\n1. [draft] crash, 0 failed before it: ValueError: by the script")
    assert "Plan: plan 1" in first and "Review: review 1" in first
    assert second.startswith("[draft] score = 0.6 (higher is better)")
    assert ["journal 1" in prompt.get("memory") for prompt in plans] == [False] * 4 + [True] * 4


def test_tuning_and_ablation_see_the_names_taken_and_not_the_memory() -> None:
    for stage, name in ((2, "hyper-parameter"), (4, "ablation")):
        plans: list[Prompt] = []
        shares = [0.5 if number in (1, stage) else 0.0 for number in (1, 2, 3)]
        run = search(lambda i: 0.6, 12, models=watched("plan", plans), debug_prob=0.0, shares=shares, workers=3)
        asked = [p for p in plans if f"Stage {stage} of 4" in p.get("instruction")]
        assert len(asked) == 6 and all(name in prompt.get("instruction") for prompt in asked)
        assert [prompt.get("history").count("plan ") for prompt in asked] == [0, 1, 2, 3, 4, 5]
        assert not any(prompt.get("memory") or prompt.get("idea") for prompt in asked)
        assert len({t.facts["idea"] for t in run.trials if t.facts["stage"] == stage}) == 6


def test_a_repair_tells_the_editor_what_was_planned_and_the_error() -> None:
    edits: list[Prompt] = []

    def edit(prompt: Prompt, call: Call) -> Reply:
        edits.append(prompt)
        return OfflineMutator().chat(prompt, call)

    run = search(lambda i: None, 8, models={"edit": ScriptedModel(edit)}, debug_prob=1.0)
    repairs = [
        (trial, prompt) for trial, prompt in zip(run.trials, edits, strict=True) if trial.facts["action"] == "debug"
    ]
    assert repairs
    for trial, prompt in repairs:
        assert trial.parent and trial.parent.facts["idea"] in prompt.get("instruction")
        assert "ValueError: by the script" in prompt.get("error")


def test_a_review_sees_the_plan_the_change_and_the_result_before_and_after() -> None:
    seen: list[Prompt] = []
    search(lambda i: None if i else 0.6, 2, models={**watched("review", seen)}, workers=1, drafts=1, ideas=0)
    good, bad = seen
    assert good.get("idea").startswith("The plan: Change `")
    assert "\n+" in good.get("change")
    assert good.get("metric").endswith("After it: score = 0.6 (higher is better)")
    assert bad.get("metric") == "Before it: score = 0.6 (higher is better)\nAfter it: crash"
    assert "ValueError: by the script" in bad.get("error")


def test_a_rejected_edit_is_a_failed_trial_without_a_review() -> None:
    run = search(lambda i: 0.6, 4, models=watched("edit", []))
    assert [t.status for t in run.trials] == ["edit_failed"] * 4
    assert run.asked("review") == 0


# --- whole runs ---------------------------------------------------------------------------------------------------


def test_it_improves_the_valley_with_the_offline_model(simulate: Callable[..., History]) -> None:
    for seed in range(3):
        run = simulate("tas-v2", steps=60, seed=seed)
        assert run.best is not None
        assert (run.best.value("score") or 0) > (run.steps[0].value("score") or 0) + 0.2
