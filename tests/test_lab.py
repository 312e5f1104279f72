"""The rules of the Lab: what a strategy may do, what it costs, and how it is numbered."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labcoat.budget import LimitReached, Limits
from labcoat.errors import InputError, StrategyError
from labcoat.history import History
from labcoat.lab import Lab, OutOfSteps, Params, Part, Prompt, Trial, record
from labcoat.models import Call, Models, Reply
from labcoat.models.scripted import ScriptedModel
from labcoat.testing import World, measured
from labcoat.tree import Code
from tests.testing.strategies import BATCHES

Simulate = Callable[..., History]


def setting(**constants: object) -> str:
    """An answer that rewrites the code of sim/valley with these constants."""
    whole: dict[str, object] = {
        "LEARNING_RATE": 0.1, "WEIGHT_DECAY": 0.02, "HIDDEN_UNITS": 32, "DROPOUT": 0.5, "EPOCHS": 5,
    }  # fmt: skip
    lines = "\n".join(f"{name} = {value!r}" for name, value in (whole | constants).items())
    return f"### FILE: train.py\n```python\n{lines}\n```"


def scripted(*answers: str | Reply) -> Models:
    return Models({"*": ScriptedModel(list(answers))})


async def edit_and_try(lab: Lab, base: Trial, **facts: Any) -> Trial:
    return await lab.trial(await lab.edit(base, "go on"), **facts)


def test_only_trial_spends_a_step(simulate: Simulate) -> None:
    left: list[int] = []

    async def search(lab: Lab, params: Params) -> None:
        await lab.ask("idea", Prompt.of([Part("instruction", "think")]))
        await lab.embed(lab.brief.baseline.code)
        edit = await lab.edit(lab.brief.baseline, "go")
        left.append(lab.left)
        await lab.trial(edit)
        left.append(lab.left)

    history = simulate(search, steps=3)
    assert left == [3, 2]
    assert len(history.trials) == 1
    assert history.journal.finished("search")["request"]["reason"] == "strategy returned"  # type: ignore[index]


def test_the_budget_is_exact_and_a_search_needs_no_check(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        while True:
            await edit_and_try(lab, lab.brief.baseline)

    history = simulate(search, steps=7)
    assert [step.number for step in history.trials] == list(range(1, 8))
    assert history.journal.finished("search")["request"]["reason"] == "steps spent"  # type: ignore[index]


def test_catching_the_end_gives_no_further_trial(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        for _ in range(5):
            try:
                await edit_and_try(lab, lab.brief.baseline)
            except OutOfSteps:
                assert lab.left == 0

    assert len(simulate(search, steps=2).trials) == 2


def test_a_rejected_edit_is_one_step_without_execution(simulate: Simulate) -> None:
    seen: list[Trial] = []

    async def search(lab: Lab, params: Params) -> None:
        edit = await lab.edit(lab.brief.baseline, "go")
        assert not edit.ok
        seen.append(await lab.trial(edit))

    history = simulate(search, steps=1, model=scripted("I would rather talk about it."))
    assert (seen[0].ok, seen[0].status, seen[0].value) == (False, "edit_failed", None)
    assert seen[0].code == history.code(history.steps[0])
    assert history.trials[0].outcome.executions == []
    assert history.trials[0].outcome.error


@pytest.mark.parametrize("finish", ["refusal", "context_too_long", "schema_never_met"])
def test_a_reply_without_an_answer_is_seen_by_the_strategy_and_fails_the_edit(simulate: Simulate, finish: Any) -> None:
    finishes: list[str] = []

    async def search(lab: Lab, params: Params) -> None:
        finishes.append((await lab.ask("idea", Prompt.of([Part("instruction", "think")]))).finish)
        await edit_and_try(lab, lab.brief.baseline)

    empty = Reply("", finish=finish, cost=0.0)
    history = simulate(search, steps=1, model=scripted(empty, empty))
    assert finishes == [finish]
    assert history.trials[0].outcome.status == "edit_failed"


def test_the_parent_is_the_base_of_the_edit(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        first = await edit_and_try(lab, lab.brief.baseline, action="draft")
        second = await edit_and_try(lab, first)
        await edit_and_try(lab, lab.brief.baseline)
        assert second.parent is first

    history = simulate(search, steps=3)
    assert [step.parent for step in history.steps] == [None, 0, 1, 0]
    assert history.trials[0].facts == {"action": "draft"}


def test_ties_keep_the_first_and_only_a_strict_improvement_is_best(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        for _ in range(4):
            await edit_and_try(lab, lab.brief.baseline)

    answers = [setting(EPOCHS=4), setting(EPOCHS=10), setting(EPOCHS=10, DROPOUT=0.50), setting(EPOCHS=4)]
    history = simulate(search, steps=4, model=scripted(*answers))
    assert history.best is not None and history.best.number == 2


def test_if_nothing_beats_the_baseline_the_baseline_is_tested(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        await edit_and_try(lab, lab.brief.baseline)

    history = simulate(search, steps=1, model=scripted(setting(EPOCHS=1)))
    assert history.best is not None and history.best.number == 0
    assert history.test_outcome() == history.test_outcome("test/baseline")


def test_a_violation_has_metrics_and_slack_but_is_never_best(simulate: Simulate) -> None:
    seen: list[Trial] = []

    async def search(lab: Lab, params: Params) -> None:
        seen.append(await edit_and_try(lab, lab.brief.baseline))

    code = 'LEARNING_RATE = 0.064\nBATCH_SIZE = 32\nWIDTH = 4000\nDEPTH = 16\nNORMALISE = True\nSCHEDULE = "cosine"'
    answer = f"### FILE: train.py\n```python\n{code}\n```"
    history = simulate(search, task="sim/ridge", steps=1, model=scripted(answer))
    outcome = history.trials[0].outcome
    assert outcome.status == "violation"
    assert outcome.slack["memory_gb"] < 0
    assert outcome.metrics["loss"].mean < history.steps[0].outcome.metrics["loss"].mean
    assert seen[0].value is None and "VIOLATED" in seen[0].line and "memory_gb" in seen[0].error
    assert history.best is not None and history.best.number == 0


def test_a_crash_shows_its_error(simulate: Simulate) -> None:
    seen: list[Trial] = []

    async def search(lab: Lab, params: Params) -> None:
        seen.append(await edit_and_try(lab, lab.brief.baseline))

    simulate(search, steps=1, model=scripted(setting(EPOCHS=-3)))
    assert seen[0].status == "crash"
    assert "EPOCHS must be a positive number" in seen[0].error


def test_randomness_is_seeded_by_run_and_scope(simulate: Simulate, tmp_path: Any) -> None:
    drawn: list[float] = []

    async def search(lab: Lab, params: Params) -> None:
        async def job(child: Lab) -> float:
            return child.rng.random()

        drawn.extend([lab.rng.random(), *await lab.parallel([job, job])])

    simulate(search, steps=2, seed=1, runs=tmp_path / "a")
    simulate(search, steps=2, seed=1, runs=tmp_path / "b")
    simulate(search, steps=2, seed=2, runs=tmp_path / "c")
    assert drawn[:3] == drawn[3:6]
    assert len({*drawn}) == 6


def test_a_reply_that_is_no_text_is_survived(simulate: Simulate) -> None:
    history = simulate("random", steps=1, model=scripted("\ud800", "### FILE: train.py\n```\nX = '\udfff'\n```"))
    assert history.trials[0].facts["idea"] == "?"
    assert history.trials[0].outcome.status == "crash"


# --- parallel -----------------------------------------------------------------------------------------------------


def test_a_batch_is_cut_to_what_is_left_and_numbered_in_list_order(simulate: Simulate) -> None:
    returned: list[int] = []

    async def search(lab: Lab, params: Params) -> None:
        await edit_and_try(lab, lab.brief.baseline)

        def job(number: int) -> Callable[[Lab], Any]:
            async def work(child: Lab) -> int:
                assert child.left == 1
                await edit_and_try(child, child.brief.baseline, number=number)
                return number

            return work

        returned.extend(await lab.parallel([job(n) for n in range(5)]))
        assert lab.left == 0

    history = simulate(search, steps=4)
    assert returned == [0, 1, 2]
    assert [step.facts.get("number") for step in history.trials] == [None, 0, 1, 2]
    assert [step.key for step in history.trials[1:]] == ["/2.0/1", "/2.1/1", "/2.2/1"]


def test_a_child_that_tries_nothing_gives_its_step_back(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        async def idle(child: Lab) -> str:
            return "nothing"

        async def busy(child: Lab) -> str:
            return (await edit_and_try(child, child.brief.baseline)).status

        assert await lab.parallel([idle, busy, idle]) == ["nothing", "ok", "nothing"]
        assert lab.left == 2
        while True:
            await edit_and_try(lab, lab.brief.baseline)

    history = simulate(search, steps=3)
    assert [step.number for step in history.trials] == [1, 2, 3]


def test_a_child_has_one_step(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        async def greedy(child: Lab) -> None:
            await edit_and_try(child, child.brief.baseline)
            await edit_and_try(child, child.brief.baseline)

        await lab.parallel([greedy])

    with pytest.raises(StrategyError, match="second trial"):
        simulate(search, steps=4)


def test_what_is_left_does_not_change_while_a_batch_is_carried_out(simulate: Simulate) -> None:
    seen: list[int] = []

    async def search(lab: Lab, params: Params) -> None:
        async def job(child: Lab) -> None:
            seen.append(lab.left)
            await edit_and_try(child, child.brief.baseline)
            seen.append(lab.left)

        async def idle(child: Lab) -> None:
            seen.append(lab.left)

        await lab.parallel([job, idle, job])
        seen.append(lab.left)

    simulate(search, steps=5)
    assert seen == [2] * 5 + [3]


def test_among_equals_of_a_batch_the_first_by_its_number_leads_whichever_ran_first() -> None:
    world = World(lambda i: measured(0.9), order=lambda jobs: range(jobs - 1, -1, -1))
    assert world.search(BATCHES, steps=3).best.key == "/0.0/2"


# --- what a strategy must not do ------------------------------------------------------------------------------------


def test_awaiting_anything_else_stops_with_an_error(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        await asyncio.sleep(0)

    with pytest.raises(StrategyError, match="may await the verbs of its lab only"):
        simulate(search)


def test_a_job_must_use_its_own_lab(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        async def smuggler(child: Lab) -> None:
            await edit_and_try(lab, lab.brief.baseline)

        await lab.parallel([smuggler])

    with pytest.raises(StrategyError, match="lab of another scope"):
        simulate(search)


def test_an_exception_of_the_strategy_is_named_with_its_place(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        raise ZeroDivisionError("by intention")

    with pytest.raises(StrategyError, match=r"under-test failed at .*test_lab\.py:\d+: ZeroDivisionError: by"):
        simulate(search)


def test_facts_must_be_plain_data(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        await edit_and_try(lab, lab.brief.baseline, thing=object())

    with pytest.raises(StrategyError, match="facts must be plain data"):
        simulate(search)


def test_only_code_that_an_edit_gave_is_tried(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        edit = await lab.edit(lab.brief.baseline, "go")
        await lab.trial(dataclasses.replace(edit, code=Code.of({"train.py": "X = 1\n"})))

    with pytest.raises(StrategyError, match="gave an edit that did not come from its lab"):
        simulate(search)


def test_only_what_the_lab_gave_is_edited(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        await lab.edit(dataclasses.replace(lab.brief.baseline, code=Code.of({"train.py": "X = 1\n"})), "go")

    with pytest.raises(StrategyError, match="gave a base that did not come from its lab"):
        simulate(search)


def test_a_strategy_cannot_give_itself_steps(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        lab._left = lambda: 50
        while lab.left:
            await edit_and_try(lab, lab.brief.baseline)

    assert len(simulate(search, steps=2).trials) == 2


def test_a_strategy_that_only_talks_is_stopped(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        while True:
            await lab.ask("idea", Prompt.of([Part("instruction", "think")]))

    with pytest.raises(StrategyError, match="1000 requests without a trial"):
        simulate(search)


def test_of_a_long_answer_a_strategy_is_given_head_and_tail_and_the_journal_has_all(simulate: Simulate) -> None:
    given: list[Reply] = []
    schema = record(plan="string", steps={"type": "array", "items": {"type": "string"}})
    long = json.dumps({"plan": "begin " + "x" * 9000 + " end", "steps": ["short", "y" * 9000]})

    async def search(lab: Lab, params: Params) -> None:
        for of in (None, schema):
            given.append(await lab.ask("idea", Prompt.of([Part("instruction", "think")]), of))

    history = simulate(search, model=scripted(long, long))
    free, read = given
    steps = read.fields["steps"]
    assert [len(text) for text in (free.text, read.text, read.fields["plan"], *steps)] == [8000, 8000, 8000, 5, 8000]
    assert read.fields["plan"].startswith("begin xxx") and read.fields["plan"].endswith("xxx end")
    recorded = [event["result"]["reply"] for event in history.journal.events if event["kind"] == "ask"]
    assert [history.journal.blobs.text(reply["text"]) for reply in recorded] == [long] * 2
    assert recorded[1]["parsed"] == json.loads(long)


def test_a_strategy_whose_jobs_only_talk_is_stopped(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        async def job(child: Lab) -> None:
            for _ in range(40):
                await child.ask("idea", Prompt.of([Part("instruction", "think")]))

        while True:
            await lab.parallel([job, job])

    with pytest.raises(StrategyError, match="1000 requests without a trial"):
        simulate(search, steps=2)


def test_a_strategy_that_takes_no_for_no_answer_is_stopped(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        edit = await lab.edit(lab.brief.baseline, "go")
        while True:
            try:
                await lab.trial(edit)
            except OutOfSteps:
                continue

    with pytest.raises(StrategyError, match="1000 requests without a trial"):
        simulate(search, steps=2)


def test_a_failure_of_ours_is_not_the_strategys(simulate: Simulate) -> None:
    def away(prompt: Prompt, call: Call) -> str:
        raise ConnectionError("no route")

    with pytest.raises(ConnectionError):
        simulate("random", model=Models({"*": ScriptedModel(away)}))


def test_a_model_that_runs_dry_does_not_end_the_search(simulate: Simulate) -> None:
    replies = iter(["idea", setting(EPOCHS=7)])
    with pytest.raises(StopIteration):
        simulate("random", model=Models({"*": ScriptedModel(lambda prompt, call: next(replies))}))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python too says that it will not end
def test_a_strategy_that_will_not_end_hides_nothing(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        while True:
            try:
                await edit_and_try(lab, lab.brief.baseline)
            except BaseException:
                pass

    with pytest.raises(LimitReached):
        simulate(search, steps=9, limits=Limits(calls=3))


def test_what_is_no_coroutine_is_named(simulate: Simulate) -> None:
    def search(lab: Lab, params: Params) -> None:
        return None

    with pytest.raises(StrategyError, match="not an `async def` function"):
        simulate(search)


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "name"), [(Limits(calls=4), "calls"), (Limits(tokens=2000), "tokens"), (Limits(usd=0.4), "usd")]
)
def test_a_limit_stops_the_run_and_a_higher_one_lets_it_go_on(simulate: Simulate, limits: Limits, name: str) -> None:
    from labcoat.models import Usage

    def answer(prompt: Prompt, call: Call) -> Reply:
        return Reply(setting(EPOCHS=5 + call.index), usage=Usage(input_uncached=600, output=1), cost=0.1)

    models = Models({"*": ScriptedModel(answer)})
    with pytest.raises(LimitReached, match=f"{name} = .* raise it and give the same command again"):
        simulate("random", steps=6, model=models, limits=limits)
    history = simulate("random", steps=6, model=models)
    assert (len(history.trials), history.status) == (6, "finished")
    assert history.spent()["calls"] == 12
    notes = [e["kind"] for e in history.journal.events if e["state"] == "note"]
    assert notes == ["opened", "limits", "limit", "opened", "limits"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("idea=offline:mutate", r"names no model for 'edit'; add edit=MODEL"),
        ("edit=offline:mutate", r"names no model for 'idea'; add idea=MODEL"),
        ("edt=offline:mutate,*=offline:mutate", r"nothing is asked for 'edt'; known: edit, idea"),
    ],
)
def test_purposes_are_checked_before_anything_is_written(
    tmp_path: Path, simulate: Simulate, model: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        simulate("random", model=model, runs=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("limits", [{"usd": float("nan")}, {"calls": 0}, {"seconds": -1.0}])
def test_what_is_no_limit_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="is not a positive number"):
        Limits(**limits)


def test_no_call_is_paid_that_no_trial_can_use(simulate: Simulate) -> None:
    history = simulate("autoresearch", steps=1, model=scripted("an idea", setting(EPOCHS=-1)))
    assert history.spent()["calls"] == 2


def test_a_batch_without_a_step_left_ends_the_search(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        async def job(child: Lab) -> str:
            return (await edit_and_try(child, child.brief.baseline)).status

        while True:
            await lab.parallel([job, job])

    assert len(simulate(search, steps=3).trials) == 3


def test_the_schema_of_an_object_requires_all_its_fields() -> None:
    assert record(plan="string", trial={"type": "integer", "enum": [1, 2]}) == {
        "type": "object",
        "properties": {"plan": {"type": "string"}, "trial": {"type": "integer", "enum": [1, 2]}},
        "required": ["plan", "trial"],
        "additionalProperties": False,
    }
