"""Strategies that keep the contract, and one for each way of breaking it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from labcoat.lab import Brief, Lab, OutOfSteps, Params, Part, Prompt, Strategy, Trial

Search = Callable[[Lab, Any], Awaitable[None]]
BREAKS: dict[str, list[Strategy]] = {}
"""Strategies by the rule that they break."""


def breaks(rule: str, **fields: Any) -> Callable[[Search], Search]:
    """Register the strategy of a coroutine under the rule that it breaks."""

    def register(search: Search) -> Search:
        strategy = Strategy(search.__name__.replace("_", "-"), search, **fields)
        globals()[search.__name__.upper()] = strategy
        BREAKS.setdefault(rule, []).append(strategy)
        return search

    return register


def prompt(brief: Brief, *more: Part) -> Prompt:
    return Prompt.of([Part("task", brief.prompt), *brief.files(brief.baseline.code), *more])


async def improve(lab: Lab, base: Trial, instruction: str = "go on") -> Trial:
    return await lab.trial(await lab.edit(base, instruction), action="improve")


# --- one that works in batches --------------------------------------------------------------------------------------


class Width(Params):
    """Parameters of the batch strategies."""

    width: int = 3
    """Jobs of a batch."""


async def batches(lab: Lab, params: Width) -> None:
    """Batches of edits of the best."""
    best = lab.brief.baseline

    async def job(child: Lab) -> Trial:
        return await improve(child, best, (await child.ask("idea", prompt(child.brief))).text)

    while lab.left:
        for trial in await lab.parallel([job] * params.width):
            if lab.brief.better(trial, best):
                best = trial


BATCHES = Strategy("batches", batches, Width, ("idea",), {"wide": {"width": 5}})


@breaks("does_the_same_in_any_order_of_a_batch")
async def tells_the_neighbour(lab: Lab, params: Params) -> None:
    """Each job edits what the job before it made."""
    while lab.left:
        made = [lab.brief.baseline]

        async def job(child: Lab, made: list[Trial] = made) -> None:
            made.append(await improve(child, made[-1]))

        await lab.parallel([job] * 3)


# --- the ways of breaking a rule ------------------------------------------------------------------------------------


class Unexplained(Params):
    """Parameters."""

    depth: int = 3


@breaks("explains_itself", params=Unexplained)
async def unexplained(lab: Lab, params: Params) -> None:
    """Try the baseline."""
    await improve(lab, lab.brief.baseline)


@breaks("explains_itself")
async def silent(lab: Lab, params: Params) -> None:
    await improve(lab, lab.brief.baseline)


@breaks("declares_what_it_asks_for")
async def undeclared(lab: Lab, params: Params) -> None:
    """Asks for an idea without saying so."""
    await lab.ask("idea", prompt(lab.brief))


@breaks("spends_its_steps_or_returns")
async def never_takes_no(lab: Lab, params: Params) -> None:
    """Tries again where nothing is left."""
    while True:
        try:
            await improve(lab, lab.brief.baseline)
        except OutOfSteps:
            continue


@breaks("lives_through_hard_worlds")
async def hopeful(lab: Lab, params: Params) -> None:
    """Takes it for granted that a trial works."""
    values = []
    while lab.left:
        values.append((await improve(lab, lab.brief.baseline)).value)
        assert min(value for value in values if value is not None)


CARRIED: list[str] = []


@breaks("repeats_itself")
async def carries_over(lab: Lab, params: Params) -> None:
    """Remembers the search before."""
    while lab.left:
        CARRIED.append((await improve(lab, lab.brief.baseline, f"{len(CARRIED)} before")).key)


@breaks("resumes_from_every_event")
async def counts_its_lives(lab: Lab, params: Params) -> None:
    """Does something else each second time that it begins."""
    CARRIED.append("")
    while lab.left:
        await improve(lab, lab.brief.baseline, f"{len(CARRIED) % 2}")


@breaks("repeats_itself_in_another_process")
async def hashes(lab: Lab, params: Params) -> None:
    """Says things in the order of a set."""
    await improve(lab, lab.brief.baseline, f"try {', '.join({'adam', 'sgd', 'lion', 'rmsprop', 'adagrad', 'lamb'})}")


@breaks("takes_lower_for_better_where_it_is")
async def upward(lab: Lab, params: Params) -> None:
    """Goes up whatever the direction."""
    best = lab.brief.baseline
    while lab.left:
        trial = await improve(lab, best)
        if trial.value is not None and trial.value > (best.value or 0):
            best = trial


@breaks("heeds_the_order_of_values_only")
async def content(lab: Lab, params: Params) -> None:
    """Stops at a value that it likes."""
    while lab.left:
        trial = await improve(lab, lab.brief.baseline)
        if trial.value is not None and trial.value > 0.95:
            return


@breaks("keeps_prompts_within_their_room", purposes=("idea",))
async def forgets_nothing(lab: Lab, params: Params) -> None:
    """Writes its whole memory into one text."""
    memory = "So far:"
    while lab.left:
        idea = await lab.ask("idea", prompt(lab.brief, Part("history", memory)))
        memory += f"\n{idea.text}"
        await improve(lab, lab.brief.baseline)


@breaks("decides_quickly")
async def ponders(lab: Lab, params: Params) -> None:
    """Counts far before each step."""
    while lab.left:
        sum(range(3_000_000))
        await improve(lab, lab.brief.baseline)


@breaks("touches_nothing_but_its_lab")
async def shuffles(lab: Lab, params: Params) -> None:
    """Draws from the generator that all share, and hides what comes of it."""
    while lab.left:
        try:
            random.shuffle([1, 2])
        except PermissionError:
            pass
        await improve(lab, lab.brief.baseline)
