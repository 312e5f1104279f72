"""The rules, one function each. They are tried in worlds; ``labcoat.testing.contract`` lists them."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from labcoat.bench.outcome import Outcome
from labcoat.driver import BASELINE
from labcoat.models import Call, Models, Prompt, Reply
from labcoat.models.offline import OfflineMutator, instance
from labcoat.models.scripted import ScriptedModel
from labcoat.testing import guard
from labcoat.testing.case import Broken, Case, mixed
from labcoat.testing.story import Story, elsewhere, same, story
from labcoat.testing.world import METRIC, Search, World, failed, measured, violation

QUICK = 3.0
"""Seconds of processor time that 100 steps may take, journal and editor included; ours take about a tenth."""
LONG = 500
"""Steps of the run in which memory must stay within bounds."""


# --- what it says of itself -----------------------------------------------------------------------------------------


def explains_itself(case: Case) -> None:
    """Its coroutine begins with a sentence, every parameter has a meaning, and its source can be recorded."""
    if not case.strategy.summary.endswith("."):
        case.broken("its coroutine has no documentation that begins with a sentence")
    for name, parameter in case.strategy.parameters().items():
        if not parameter["description"]:
            case.broken(f"parameter {name} has no line of documentation under it")
    case.strategy.source()


def declares_what_it_asks_for(case: Case) -> None:
    """All that it asks a model for is among its ``purposes``, so that a model can be named for each."""
    search = case.search(World(mixed(4 * case.steps)), steps=4 * case.steps)
    asked = {event["request"]["purpose"] for event in search.events if event["kind"] == "ask"}
    if asked - {*case.strategy.purposes}:
        case.broken(f"it asks for {', '.join(sorted(asked - {*case.strategy.purposes}))}: add that to its purposes")


# --- budget ---------------------------------------------------------------------------------------------------------


def spends_its_steps_or_returns(case: Case) -> None:
    """It ends because its steps are spent or because it returns; it never tries more, or goes on without trying."""
    for steps in (1, 2, 3, case.steps, 4 * case.steps):
        _ended(case, case.search(World(mixed(steps)), steps=steps), steps)


def lives_through_hard_worlds(case: Case) -> None:
    """Nothing works, nothing differs, all is lost but the last: it ends as usual, and the best is what it is."""
    steps = case.steps
    rejecting = Models({"edit": ScriptedModel(lambda prompt, call: "I would rather not."), "*": OfflineMutator()})
    worlds: dict[str, tuple[World, Callable[[int], bool]]] = {
        "every trial fails": (World(lambda i: failed()), lambda i: False),
        "every value is the baseline's": (World(lambda i: measured(0.5)), lambda i: False),
        "every trial breaks a constraint": (World(lambda i: violation(0.9)), lambda i: False),
        "the last trial is the first success": (
            World(lambda i: measured(0.9) if i == steps - 1 else failed()), lambda i: i == steps - 1,
        ),
        "success and failure alternate": (World(lambda i: failed() if i % 2 else measured(0.6)), lambda i: i == 0),
        "every edit is rejected": (World(lambda i: measured(0.9), models=rejecting), lambda i: False),
    }  # fmt: skip
    for name, (world, leads) in worlds.items():
        try:
            search = case.search(world)
            _ended(case, search, steps)
        except Broken as broken:
            raise Broken(f"{broken} (in a world where {name})") from None
        best = next((trial.key for i, trial in enumerate(search.trials) if leads(i)), BASELINE)
        if search.best.key != best:
            case.broken(f"the best is {search.best.key} and not {best} in a world where {name}")


def _ended(case: Case, search: Search, steps: int) -> None:
    if len(search.trials) > steps or (search.reason == "steps spent") != (len(search.trials) == steps):
        case.broken(f"{len(search.trials)} trials of {steps}, and it ended because: {search.reason}")


# --- the same again -------------------------------------------------------------------------------------------------


def repeats_itself(case: Case) -> None:
    """The same seed gives the same search: nothing is carried over from the search before."""
    for seed in (0, 1):
        again = partial(case.search, World(mixed(case.steps)), seed=seed)
        _same(case, again(), again(), "the second time")


def repeats_itself_in_another_process(case: Case) -> None:
    """The same search in a process with another hash seed: the order of a set and memory addresses decide nothing."""
    _same(case, case.search(World(mixed(case.steps))), elsewhere(case), "in another process")


def resumes_from_every_event(case: Case) -> None:
    """Cut off after any event and begun again it does the same: all that it knows it has from its lab."""
    world = World(mixed(case.steps))
    with tempfile.TemporaryDirectory(prefix="labcoat-contract-") as scratch:
        whole = case.search(world, folder=Path(scratch))
        events = Path(scratch) / "events.jsonl"
        lines = events.read_bytes().splitlines(keepends=True)
        for length in range(len(lines)):
            events.write_bytes(b"".join(lines[:length]))
            resumed = case.search(world, folder=Path(scratch))
            _same(case, whole, resumed, f"resumed after {length} of {len(lines)} events")


def does_the_same_in_any_order_of_a_batch(case: Case) -> None:
    """Jobs of a batch share nothing: carried out in another order, or at once, they give the same search."""
    orders: dict[str, Callable[[int], Iterable[int]]] = {
        "backwards": lambda jobs: range(jobs - 1, -1, -1),
        "with the odd ones first": lambda jobs: [*range(1, jobs, 2), *range(0, jobs, 2)],
    }
    in_order = case.search(World(), steps=4 * case.steps)
    for name, order in orders.items():
        other = case.search(World(order=order), steps=4 * case.steps)
        _same(case, in_order, other, f"with each batch carried out {name}")


# --- the metric -----------------------------------------------------------------------------------------------------


def takes_lower_for_better_where_it_is(case: Case) -> None:
    """With every value negated and the direction turned round it decides the same."""
    _same_decisions(case, lambda value: -value, "lower", "with the metric negated and lower for better")


def heeds_the_order_of_values_only(case: Case) -> None:
    """With another unit and origin of the metric it decides the same. Left out where ``scale_free`` is false."""
    if case.scale_free:
        _same_decisions(case, lambda value: 1024 * value - 7, "higher", "with 1024 times the metric, less 7")
        _same_decisions(case, lambda value: value / 1024, "higher", "with a 1024th of the metric")


def _same_decisions(case: Case, change: Callable[[float], float], direction: Any, when: str) -> None:
    def changed(i: int) -> Outcome:
        outcome = plain(i)
        value = outcome.mean(METRIC)
        return outcome if value is None else replace(measured(change(value)), status=outcome.status)

    steps = 4 * case.steps
    plain = mixed(steps)
    one = case.search(World(plain), steps=steps).decisions
    other = case.search(World(changed, baseline=change(0.5), direction=direction), steps=steps).decisions
    for a, b in zip(one, other, strict=False):
        if a != b:
            case.broken(f"{when}, step {a.step} is another: {b} and not {a}")
    if len(one) != len(other):
        case.broken(f"{when} it makes {len(other)} trials and not {len(one)}")


# --- the world outside ----------------------------------------------------------------------------------------------


def touches_nothing_but_its_lab(case: Case) -> None:
    """No files, clocks, processes, and no randomness but ``lab.rng``."""
    names = guard.leading_outside(case.strategy)
    if names:
        case.broken(f"its file has {', '.join(names)}, which leads outside of the lab")
    touched: list[str] = []
    try:
        case.search(World(mixed(4 * case.steps), guard=partial(guard.refusing, touched)), steps=4 * case.steps)
    except Broken:
        if not touched:
            raise
    if touched:
        case.broken(f"it called {touched[0]}")


# --- size and speed -------------------------------------------------------------------------------------------------


def keeps_prompts_within_their_room(case: Case) -> None:
    """After hundreds of trials, long answers and long errors no prompt is larger than its model has room for."""
    model = Talkative()
    error = "Traceback\n" + "ValueError: a long line of it\n" * 80
    world = World(lambda i: failed(error) if i % 3 == 1 else measured(0.5 + i / 1000), models=Models({"*": model}))
    case.search(world, steps=LONG)
    for purpose, tokens in model.largest.items():
        if tokens > world.room:
            case.broken(
                f"a prompt for {purpose!r} has {tokens} tokens, there is room for {world.room}; give what is "
                'remembered as Part("history", head, items=...), and the lab leaves out the oldest'
            )


def decides_quickly(case: Case) -> None:
    """Its own part of a step is small beside any real trial."""
    begin = time.process_time()
    case.search(World(mixed(100)), steps=100)
    seconds = time.process_time() - begin
    if seconds > QUICK:
        case.broken(f"100 simulated steps take {seconds:.1f} s, more than {QUICK:g} s")


def _same(case: Case, one: Search, other: Search | Story, when: str) -> None:
    same(case, story(one), story(other) if isinstance(other, Search) else other, when)


class Talkative(OfflineMutator):
    """The offline model with a page of reasons in each answer. It notes how large the prompts are."""

    REASONS = "\n" + "This may help, as the landscape is known to be smooth in this direction. " * 20

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self.largest: dict[str, int] = {}

    def chat(self, prompt: Prompt, call: Call) -> Reply:
        """What the offline model answers, at length."""
        self.largest[call.purpose] = max(prompt.tokens, self.largest.get(call.purpose, 0))
        reply = super().chat(prompt, call)
        if call.purpose == "edit":
            return reply
        if call.schema is None:
            return replace(reply, text=reply.text + self.REASONS)
        return replace(reply, parsed=instance(call.schema, random.Random(call.seed), self.REASONS))
