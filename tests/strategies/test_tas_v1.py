"""The AI Scientist v1 against the golden traces of the original and of the released port, and our own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import groupby, pairwise
from typing import Any

import pytest

from labcoat.history import History
from labcoat.lab import Prompt, Reply
from labcoat.models import Call, Models
from labcoat.models.offline import OfflineMutator
from labcoat.models.scripted import ScriptedModel
from labcoat.strategies.tas_v1 import STRATEGY, Progress, TasV1, after, allowed, over
from labcoat.testing import Search, World, failed, measured, traced
from tests.strategies.plays import golden, title

ORIGINAL, RELEASED = STRATEGY.presets["original"], STRATEGY.presets["released"]
FIELDS = ("step", "action", "parent", "idea", "run", "attempt")


def traces(file: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("trace", golden(file), ids=title)


def researcher(done_reply: Sequence[int | None] = (), seen: list[Prompt] | None = None, chatty: bool = False) -> Models:
    """Ideas are numbered; the n-th reply within an idea says that all is done, if it is the one listed for the idea."""
    ideas, replies = [0], list[int]()

    def idea(prompt: Prompt, call: Call) -> Reply:
        seen.append(prompt) if seen is not None else None
        if not prompt.get("idea"):
            ideas[0] += 1
        return Reply("", parsed={"name": f"idea {ideas[0]}", "experiment": f"do {ideas[0]}", "done": not chatty})

    def plan(prompt: Prompt, call: Call) -> Reply:
        seen.append(prompt) if seen is not None else None
        if prompt.get("instruction").startswith("Carry out the idea"):
            replies.append(0)
        replies[-1] += 1
        number = len(replies) - 1
        done = number < len(done_reply) and done_reply[number] == replies[-1]
        return Reply("", parsed={"plan": f"plan {number}.{replies[-1]}", "done": done})

    return Models({"idea": ScriptedModel(idea), "plan": ScriptedModel(plan), "*": OfflineMutator()})


def found(search: Search) -> list[dict[str, Any]]:
    """The decisions in the form of a trace."""
    return [
        {"step": d.step, "action": d.action, "parent": d.parent, "idea": d.facts["chain"]}
        | {name: d.facts[name] for name in ("run", "attempt")}
        for d in search.decisions
    ]


# --- the golden traces --------------------------------------------------------------------------------------------


@traces("tas_v1")
def test_the_original_rules_reproduce_the_golden_traces(trace: dict[str, Any]) -> None:
    given = trace["params"]
    params = TasV1.model_validate(
        {**ORIGINAL, "ideas": given["n_ideas"], "rounds": 1, "runs": given["max_runs"]}
        | {"attempts": given["max_iters"], "later_attempts": given["max_iters"] - 1}
    )
    # A step more than the trace has: it is the ideas that end the search.
    search = traced(trace, models=researcher(given["done_reply"])).search(STRATEGY, params, steps=trace["budget"] + 1)
    assert search.reason == "strategy returned"
    assert found(search) == trace["decisions"]
    for idea in trace["structure"]["ideas"]:
        oks = [t.ok for t in search.trials if t.facts["chain"] == idea["idea"]]
        at = reduce(after, oks, Progress())
        assert (len(oks), at.run - 1, at.fails < allowed(at, params)) == (
            idea["steps"],
            idea["runs_ok"],
            idea["result"],
        )


@traces("tas_v1_fml")
def test_the_released_rules_reproduce_the_golden_traces(trace: dict[str, Any]) -> None:
    given = trace["params"]
    params = {
        **RELEASED, "ideas": given["n_ideas"], "rounds": 1, "runs": given["max_runs"],
        "attempts": given["max_retries_per_run"], "later_attempts": given["max_retries_per_run"],
        "on_done": "finish" if given["use_early_completion"] else "ignore",
    }  # fmt: skip
    steps = min(given["max_iter"], given["max_steps"])
    search = traced(trace, models=researcher(given["done_reply"])).search(STRATEGY, params, steps=steps)
    assert found(search) == trace["decisions"]
    assert len(search.trials) == trace["final"]["steps"]


# --- the rules ----------------------------------------------------------------------------------------------------


def attempts_until_over(params: TasV1, oks: Sequence[bool]) -> int:
    at = Progress()
    for number, ok in enumerate(oks):
        if over(at, params):
            return number
        at = after(at, ok)
    return len(oks)


def test_the_first_run_has_an_attempt_more_than_the_later_ones() -> None:
    params = TasV1()
    assert attempts_until_over(params, [False] * 9) == 4
    assert attempts_until_over(params, [True] + [False] * 9) == 1 + 3
    assert attempts_until_over(params, [False, False, False, True] + [False] * 9) == 4 + 3
    assert attempts_until_over(TasV1.model_validate(RELEASED), [True] + [False] * 9) == 1 + 4


def test_an_idea_has_five_valid_runs() -> None:
    assert attempts_until_over(TasV1(), [True] * 9) == 5
    assert attempts_until_over(TasV1(runs=2), [False, True, False, True, True]) == 4


def test_a_run_that_is_half_way_is_finished_after_the_reply_that_all_is_done() -> None:
    assert over(Progress(run=2, fails=0, done=True), TasV1())
    assert not over(Progress(run=2, fails=2, done=True), TasV1())
    assert over(Progress(run=2, fails=3, done=True), TasV1())


def search(oks: str, models: Models, steps: int | None = None, **params: Any) -> Search:
    """A search whose i-th trial is valid where the i-th letter is a plus, and beyond."""
    world = World(lambda i: failed() if oks[i : i + 1] == "-" else measured(0.5 + i / 100), models=models)
    return world.search(STRATEGY, params, steps=steps or len(oks))


def test_code_accumulates_within_an_idea_and_each_idea_begins_at_the_baseline() -> None:
    run = search("+-++-----+", researcher(), rounds=1)
    assert [(d.facts["chain"], d.parent) for d in run.decisions] == [
        (0, None), (0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, None), (1, 7), (1, 8),
    ]  # fmt: skip


def test_all_done_ends_the_idea_before_anything_runs_and_in_the_port_after_it() -> None:
    chains = [d.facts["chain"] for d in search("++++++", researcher([2, 2, 2]), rounds=1).decisions]
    assert chains == [0, 1, 2, 3, 3, 3]
    run = search("++++++", researcher([2, 2, 2]), **{**RELEASED, "rounds": 1})
    assert [d.facts["chain"] for d in run.decisions] == [0, 0, 1, 1, 2, 2]


def test_further_ideas_are_asked_for_when_they_run_out_and_no_more_than_steps_are_left() -> None:
    run = search("+" * 8, researcher(), ideas=1, rounds=1, runs=3)
    assert [d.facts["chain"] for d in run.decisions] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert run.asked("idea") == 3
    assert search("+" * 8, researcher(), rounds=1).asked("idea") == 8
    alone = search("+" * 8, researcher(), ideas=1, rounds=1, runs=3, further=False)
    assert (len(alone.trials), alone.reason) == (3, "strategy returned")


def test_a_model_that_gives_no_idea_or_no_plan_ends_nothing_for_ever() -> None:
    refusal = ScriptedModel(lambda prompt, call: Reply("", finish="refusal"))
    no_idea = search("+++", Models({"idea": refusal, "*": OfflineMutator()}))
    assert (no_idea.trials, no_idea.reason) == ([], "strategy returned")
    no_plan = search("+++", Models({"plan": refusal, "*": OfflineMutator()}))
    assert len(no_plan.trials) == 3
    assert no_plan.trials[0].facts["idea"].startswith("Change `")  # the idea's experiment is the plan


def test_an_idea_is_thought_over_until_it_is_done() -> None:
    assert search("+", researcher(), ideas=1, rounds=3).asked("idea") == 1
    assert search("+", researcher(chatty=True), ideas=1, rounds=3).asked("idea") == 3


# --- what the model sees ------------------------------------------------------------------------------------------


def test_an_idea_sees_those_before_it_but_no_results() -> None:
    seen: list[Prompt] = []
    search("+" * 6, researcher(seen=seen), ideas=1, rounds=1, runs=2)
    last = [prompt for prompt in seen if prompt.get("instruction").startswith("You are an ambitious")][-1]
    assert last.get("history") == "Ideas so far:\n- idea 1: do 1\n- idea 2: do 2"
    assert last.get("metric") == "Baseline: score = 0.5 (higher is better)"


def test_a_further_thought_sees_the_idea_that_it_is_about() -> None:
    seen: list[Prompt] = []
    search("+", researcher(seen=seen, chatty=True), ideas=1, rounds=2)
    assert seen[1].get("idea") == "The idea: idea 1: do 1"
    assert seen[1].get("instruction").startswith("This is round 2 of 2")


def test_a_plan_sees_the_idea_its_runs_and_the_code_as_it_is() -> None:
    seen: list[Prompt] = []
    run = search("+-+", researcher(seen=seen), ideas=1, rounds=1)
    first, second, repair = seen[1:]
    assert first.get("instruction").startswith("Carry out the idea above in at most 5 runs")
    assert second.get("idea") == "The idea: idea 1: do 1"
    assert (
        second.get("history") == "Its runs so far:\nRun 1, attempt 1: score = 0.5 (higher is better)\n  Plan: plan 0.1"
    )
    assert second.files == {path: run.trials[0].code.text(path) for path in second.files}
    assert "set `done`" in second.get("instruction") and "4 of 5 runs" in second.get("instruction")
    assert "ValueError: by the script" in repair.get("error")
    assert "2 of 3 attempts" in repair.get("instruction")
    assert repair.get("history").endswith("Run 2, attempt 1: crash: ValueError: by the script\n  Plan: plan 0.2")
    assert repair.files == {path: run.trials[1].code.text(path) for path in repair.files}


def test_the_port_forgets_the_idea_after_its_first_prompt() -> None:
    seen: list[Prompt] = []
    search("++", researcher(seen=seen), **{**RELEASED, "ideas": 1, "rounds": 1})
    assert [bool(prompt.get("idea")) for prompt in seen[1:]] == [True, False]
    assert not seen[2].get("history")


def test_a_repair_tells_the_editor_the_aim_of_the_run_and_the_error() -> None:
    edits: list[Prompt] = []

    def edit(prompt: Prompt, call: Call) -> Reply:
        edits.append(prompt)
        return OfflineMutator().chat(prompt, call)

    models = Models({**researcher().by_purpose, "edit": ScriptedModel(edit)})
    search("---", models, ideas=1, rounds=1)
    assert edits[0].get("instruction") == "plan 0.1" and not edits[0].get("error")
    for number, prompt in enumerate(edits[1:], 2):
        text = prompt.get("instruction")
        assert text.index("plan 0.1") < text.index(f"plan 0.{number}")
        assert "ValueError" in prompt.get("error")


# --- whole runs ---------------------------------------------------------------------------------------------------


def test_it_improves_the_valley_with_the_offline_model(simulate: Callable[..., History]) -> None:
    run = simulate("tas-v1", steps=60)
    assert run.best is not None and (run.best.value("score") or 0) > (run.steps[0].value("score") or 0) + 0.05
    assert len(run.trials) == 60
    for before, step in pairwise(run.trials):
        if step.facts["action"] != "draft":
            assert step.parent == before.number
    chains = [chain for chain, _ in groupby(run.trials, key=lambda step: step.facts["chain"])]
    assert chains == [*range(len(chains))]
