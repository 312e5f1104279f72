"""A world: outcomes by the trial's number, everything else real."""

from __future__ import annotations

from pathlib import Path

from labcoat.models import Call, Models, Prompt
from labcoat.models.offline import OfflineMutator
from labcoat.models.scripted import ScriptedModel
from labcoat.strategies import find
from labcoat.testing import World, failed, measured, traced, violation
from tests.testing.strategies import BATCHES


def test_the_ith_trial_gives_the_ith_outcome_whatever_the_code() -> None:
    outcomes = [measured(0.7), failed(), violation(0.9), measured(0.6)]
    search = World(outcomes.__getitem__).search(find("random"), steps=4)
    assert [trial.status for trial in search.trials] == ["ok", "crash", "violation", "ok"]
    assert [trial.value for trial in search.trials] == [0.7, None, None, 0.6]
    assert search.best is search.trials[0]
    assert search.reason == "steps spent"


def test_a_search_that_is_resumed_goes_on_with_the_next_outcome(tmp_path: Path) -> None:
    world = World([measured(0.1 * i) for i in range(6)].__getitem__)
    whole = world.search(find("random"), steps=6, folder=tmp_path)
    events = (tmp_path / "events.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "events.jsonl").write_bytes(b"".join(events[: len(events) // 2]))
    resumed = world.search(find("random"), steps=6, folder=tmp_path)
    assert [trial.value for trial in resumed.trials] == [trial.value for trial in whole.trials]


def test_a_model_can_be_scripted_for_one_purpose() -> None:
    models = Models({"idea": ScriptedModel(lambda prompt, call: "nothing"), "*": OfflineMutator()})
    search = World(lambda i: measured(1.0), models=models).search(find("random"), steps=3)
    assert [decision.facts["idea"] for decision in search.decisions] == ["nothing"] * 3
    assert (search.asked("idea"), search.asked("edit")) == (3, 3)


def test_decisions_name_parents_by_the_number_of_the_trial() -> None:
    rows = [{"metric": m, "buggy": m is None} for m in (0.4, None, 0.3, 0.2)]
    trace = {"outcomes": rows, "direction": "lower", "params": {"baseline": None}, "seed": 0}
    search = traced(trace).search(find("autoresearch"), steps=4)
    assert [(d.step, d.parent, d.action) for d in search.decisions] == [
        (0, None, "improve"), (1, 0, "improve"), (2, 1, "debug"), (3, 2, "improve"),
    ]  # fmt: skip


def test_the_order_of_a_batch_is_that_of_the_world_and_changes_nothing() -> None:
    carried_out: list[str] = []

    def idea(prompt: Prompt, call: Call) -> str:
        carried_out.append(call.key)
        return "go on"

    models = Models({"idea": ScriptedModel(idea), "*": OfflineMutator()})
    one = World(models=models).search(BATCHES, steps=6)
    in_order, carried_out = carried_out, []
    other = World(models=models, order=lambda jobs: range(jobs - 1, -1, -1)).search(BATCHES, steps=6)
    assert in_order == ["/0.0/0", "/0.1/0", "/0.2/0", "/1.0/0", "/1.1/0", "/1.2/0"]
    assert carried_out == ["/0.2/0", "/0.1/0", "/0.0/0", "/1.2/0", "/1.1/0", "/1.0/0"]
    assert one.decisions == other.decisions
