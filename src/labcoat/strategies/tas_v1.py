"""The AI Scientist v1: a batch of ideas up front, then each of them in a chain of runs that starts at the baseline.

Source: Lu et al. 2024 (SakanaAI/AI-Scientist, generate_ideas.py and perform_experiments.py); FML-bench, appendix B.
    1. ask for `ideas` ideas, one after the other; each sees those before it and is thought over in `rounds` rounds;
    2. take the next idea and the baseline's code. Ask what to run, edit, run; a run that fails is repaired, up to
       `attempts` tries for the first run and `later_attempts` for each later one, then the idea is given up;
    3. each attempt edits the code of the attempt before it, better or worse, whole or broken: nothing is rejected;
    4. after `runs` runs, or when the reply says that all is done, back to 2. No idea learns from another's results.

Ours differs from the original and the released port, for these reasons:
    - each prompt shows the idea and what it has run so far, as the original's conversation with its coder does. The
      port starts every edit anew, so that its "next item on your list" names a list that nobody kept (`remember`);
    - a reply that says "done" ends the idea before anything runs, as in the original; the port spends a step first;
    - when the ideas run out and steps are left, a further batch is asked for: both others stop early and would be
      compared at fewer steps (`further`). A batch then has no more ideas than steps are left;
    - a later run has one attempt less than the first, as the original's counter gives it; the port levels this.
Left out of all presets: seed ideas, which tasks do not have, and the literature search, which needs a service.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from labcoat.lab import Brief, Lab, Params, Part, Prompt, Strategy, Template, Trial, record

IDEA, REFLECT = Template(__file__, "idea"), Template(__file__, "reflect")
FIRST, NEXT, REPAIR = Template(__file__, "first"), Template(__file__, "next"), Template(__file__, "repair")
FIX = Template(__file__, "fix")


class TasV1(Params):
    """Parameters of The AI Scientist v1.

    The bounds keep a batch within the 1,000 requests after which a search without a trial is stopped.
    """

    ideas: int = Field(25, ge=1, le=100)
    """Ideas in a batch. Original: 50; released port: 25."""
    rounds: int = Field(3, ge=1, le=9)
    """Rounds of thought for one idea, the first included. Original: 3; released port: 3."""
    runs: int = Field(5, ge=1)
    """Valid runs of one idea at most. Original: 5; released port: 5."""
    attempts: int = Field(4, ge=1)
    """Attempts at the first run of an idea. Original: 4; released port: 4."""
    later_attempts: int = Field(3, ge=1)
    """Attempts at each later run. Original: 3; released port: 4."""
    on_done: Literal["stop", "finish", "ignore"] = "stop"
    """When a reply says that all is done: stop there, or finish the present run first. Original: stop; port: finish."""
    further: bool = True
    """Whether a further batch is asked for when the ideas run out. Original: no; released port: no."""
    remember: bool = True
    """Whether prompts after the first show the idea and its runs. Original: yes; released port: no."""


@dataclass(frozen=True)
class Progress:
    """Where the work on an idea stands: the run it is at, the attempts at it that failed, whether all is done."""

    run: int = 1
    fails: int = 0
    done: bool = False

    @property
    def action(self) -> str:
        """What the next attempt is."""
        return "debug" if self.fails else "draft" if self.run == 1 else "improve"


@dataclass(frozen=True)
class Idea:
    """An idea of the batch."""

    name: str
    experiment: str

    def __str__(self) -> str:
        return f"{self.name}: {self.experiment}"


def allowed(at: Progress, params: TasV1) -> int:
    """Attempts that the present run has."""
    return params.attempts if at.run == 1 else params.later_attempts


def after(at: Progress, ok: bool) -> Progress:
    """Where an idea stands after one more execution."""
    return replace(at, run=at.run + 1, fails=0) if ok else replace(at, fails=at.fails + 1)


def over(at: Progress, params: TasV1) -> bool:
    """Whether an idea has ended: all runs made, one given up, or all done and no run half-way."""
    return at.run > params.runs or at.fails >= allowed(at, params) or (at.done and not at.fails)


def history(chain: list[Trial]) -> tuple[str, ...]:
    """A paragraph for each attempt of an idea, newest last."""
    items = []
    for t in chain:
        result = t.line or f"{t.status}: {t.error.rpartition(chr(10))[2].removeprefix(f'{t.status}: ')}"
        plan = " ".join(t.facts["idea"].split())
        items.append(f"Run {t.facts['run']}, attempt {t.facts['attempt'] + 1}: {result}\n  Plan: {plan}")
    return tuple(items)


def idea_prompt(brief: Brief, params: TasV1, ideas: list[Idea], draft: Idea | None, number: int) -> Prompt:
    """What the researcher sees before an idea (``number`` 1), and before each further thought about it."""
    reflect = REFLECT(round=number, rounds=params.rounds, runs=params.runs)
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("metric", f"Baseline: {brief.baseline.line}"),
            *brief.files(brief.baseline.code),
            Part("history", "Ideas so far:", items=tuple(f"- {idea}" for idea in ideas)) if ideas else None,
            Part("idea", f"The idea: {draft}") if draft else None,
            Part("instruction", reflect if draft else IDEA(runs=params.runs)),
        ]
    )


def plan_prompt(brief: Brief, params: TasV1, idea: Idea, at: Progress, chain: list[Trial]) -> Prompt:
    """What the researcher sees before an attempt: to begin, to go on or to repair."""
    base = chain[-1] if chain else brief.baseline
    if at.fails:
        instruction = REPAIR(left=allowed(at, params) - at.fails, attempts=allowed(at, params))
    else:
        instruction = NEXT(left=params.runs - at.run + 1, runs=params.runs) if chain else FIRST(runs=params.runs)
    told = params.remember or not chain
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("idea", f"The idea: {idea}") if told else None,
            Part("history", "Its runs so far:", items=history(chain)) if told and chain else None,
            Part("metric", f"Baseline: {brief.baseline.line}\nThe files below: {base.line or base.status}"),
            *brief.files(base.code),
            Part("error", base.error),
            Part("instruction", instruction),
        ]
    )


async def brainstorm(lab: Lab, params: TasV1, earlier: list[Idea]) -> list[Idea]:
    """A batch of ideas; one whose reply cannot be read is dropped, so there may be fewer."""
    ideas: list[Idea] = []
    for _ in range(min(params.ideas, lab.left) if params.further else params.ideas):
        draft: Idea | None = None
        for number in range(1, params.rounds + 1):
            prompt = idea_prompt(lab.brief, params, earlier + ideas, draft, number)
            schema = record(name="string", experiment="string", **({"done": "boolean"} if draft else {}))
            found = (await lab.ask("idea", prompt, schema)).fields
            draft = Idea(found["name"], found["experiment"]) if found else None
            if not found or found.get("done"):
                break
        ideas += [draft] if draft else []
    return ideas


async def pursue(lab: Lab, params: TasV1, idea: Idea, number: int) -> None:
    """Carry out one idea, from the baseline, until it has ended."""
    at, base, aim = Progress(), lab.brief.baseline, ""
    chain: list[Trial] = []
    while lab.left and not over(at, params):
        schema = record(plan="string", **({"done": "boolean"} if at.action == "improve" else {}))
        found = (await lab.ask("plan", plan_prompt(lab.brief, params, idea, at, chain), schema)).fields
        if found.get("done") and params.on_done == "stop":
            return
        at = replace(at, done=at.done or (params.on_done == "finish" and bool(found.get("done"))))
        plan = found.get("plan") or idea.experiment
        aim = aim if at.fails else plan
        edit = await lab.edit(base, FIX(aim=aim, plan=plan) if at.fails else plan, base.error)
        facts = {"topic": idea.name, "chain": number, "run": at.run, "attempt": at.fails}
        base = await lab.trial(edit, action=at.action, idea=plan, **facts)
        chain.append(base)
        at = after(at, base.ok)


async def search(lab: Lab, params: TasV1) -> None:
    """Ideas in batches, each in a chain of runs from the baseline; the code of a chain accumulates."""
    ideas: list[Idea] = []
    while left := lab.left:
        batch = await brainstorm(lab, params, ideas)
        for number, idea in enumerate(batch, len(ideas)):
            await pursue(lab, params, idea, number)
        ideas += batch
        if not params.further or lab.left == left:  # a model that gives nothing to run would be asked for ever
            return


STRATEGY = Strategy(
    "tas-v1",
    search,
    TasV1,
    purposes=("idea", "plan"),
    presets={
        "original": {"ideas": 50, "further": False},
        "released": {"later_attempts": 4, "on_done": "finish", "further": False, "remember": False},
    },
)
