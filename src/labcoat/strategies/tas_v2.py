"""The AI Scientist v2: best-first tree search in four stages, in batches, with a journal that a model summarises.

Source: Yamada et al. 2025 (SakanaAI/AI-Scientist-v2, treesearch/); FML-bench, section 4 and appendix B.
    1. a trial is a draft (an edit of the baseline), the repair of a failed leaf, or an edit of a good trial;
    2. the `workers` parents of a batch are picked at once: with probability `debug_prob` a failed leaf, else the best
       good trial of a tree that the batch has not touched. One summary of the journal serves the whole batch;
    3. stages: 1 first implementations, 2 tuning, 3 research, 4 ablations. Each begins with the best so far as its only
       tree; 2 and 4 edit that one only, a hyper-parameter or a component at a time, none of them twice;
    4. every trial is reviewed, and plan, result and review go into the journal of its stage.

Ours differs from the original and the released port, for these reasons:
    - stages have shares of the steps, as in the port, so that the budget is used: the original ends by rules of its own
      (`caps`), and its sub-stages, each of which begins with an empty journal, come with these rules only;
    - while nothing works stage 1 goes on, at the cost of the later ones: the original gives up, even where the last
      batch brought a good trial, and the port enters the next stage with nothing to tune;
    - every stage begins with the best so far in its journal, as in the original, so the best is never lost: the port
      begins stage 3 at the baseline, and what 30 % of the steps found is not built upon (`carry`);
    - `ideas` ideas are asked for and given to the drafts in turn, and to what grows from them. The original has one
      idea a run; the port asks for three, looks for a file that no task has, and gets none;
    - the best is the best in the metric, there being one number; the original asks a model, with the metric to fall
      back upon (`best_by`). It asks for every pick, we ask once a batch;
    - a plan is asked for before every edit that is no repair, and is what journal and review show; the port's edits
      follow a general instruction, so that its journal cannot say what was tried.
Left out of all presets: plots and their review, which the benchmark removes; the runs of the best with more seeds,
because all trials of a search share one training seed (they can be made once it has ended); the port's own rule of
picking in a batch, which no recorded decision pins down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Annotated, Any, Literal

from pydantic import Field

from labcoat.lab import Brief, Lab, Params, Part, Prompt, Strategy, Template, Trial, diff, record
from labcoat.strategies import tas_v2_rules as rules
from labcoat.strategies.tas_v2_rules import STARS, Segment

IDEA, DEBUG, REVIEW = Template(__file__, "idea"), Template(__file__, "debug"), Template(__file__, "review")
PLAN = {action: Template(__file__, action) for action in ("draft", "improve", "tune", "ablate")}
JOURNAL, BEST = Template(__file__, "journal"), Template(__file__, "best")
STAGE, SUBSTAGE = Template(__file__, "stage"), Template(__file__, "substage")
Share = Annotated[float, Field(ge=0, le=1)]
Cap = Annotated[int, Field(ge=1)]
Facts = dict[str, Any]
Grown = tuple[Trial, str]
"""A trial and its review."""
GOALS = {
    1: "Stage 1 of 4: get simple implementations to run, with a valid result better than the baseline's.",
    2: "Stage 2 of 4: tune the hyper-parameters of the best implementation, without changing what it does.",
    3: "Stage 3 of 4: creative research; try new methods and ideas that may bring a clear gain.",
    4: "Stage 4 of 4: find by systematic ablation which parts of the best implementation matter.",
}


class TasV2(Params):
    """Parameters of The AI Scientist v2."""

    workers: int = Field(4, ge=1, le=100)
    """Trials in a batch. Original: 4; released port: 4."""
    drafts: int = Field(3, ge=0)
    """Trees that stage 1 begins. Original: 3; released port: 3."""
    debug_prob: float = Field(0.5, ge=0, le=1)
    """Probability that a pick is a failed leaf, if there is one. Original: 0.5; released port: 0.5."""
    max_debug_depth: int = Field(3, ge=0)
    """Failures in a row that a failed leaf may have before it to be debugged. Original: 3; released port: 3."""
    shares: tuple[Share, Share, Share] = (0.1, 0.2, 0.5)
    """What stages 1 to 3 have of the steps; stage 4 has the rest. Original: none; released port: 0.1, 0.2, 0.5."""
    caps: tuple[Cap, Cap, Cap, Cap] | None = None
    """Trials in its journal at which a stage ends at the latest: with them the original's rules of ending hold, and
    no shares. Original: 20, 12, 12, 18; released port: none."""
    carry: bool = True
    """Whether a later stage begins with the best so far in its journal. Original: yes; released port: no."""
    debug_stars: bool = True
    """Whether stages 2 and 4 debug, too. Original: yes; released port: no."""
    ideas: int = Field(3, ge=0, le=100)
    """Ideas for the drafts. Original: 1; released port: 0."""
    best_by: Literal["metric", "model"] = "metric"
    """Who says which good trial is the best. Original: model; released port: metric."""


def goal(at: Segment) -> str:
    """What a stretch of the search is for, in words."""
    return f"{GOALS[at.stage]} {at.aim}" if at.sub > 1 else GOALS[at.stage]


def journal(tree: Sequence[Trial], reviews: Mapping[Trial, str]) -> tuple[str, ...]:
    """A paragraph for each trial, newest last."""
    items = []
    for number, t in enumerate(tree, 1):
        reason = t.error.rpartition("\n")[2].removeprefix(f"{t.status}: ")
        result = t.line or f"{t.status}, {rules.debug_depth(t)} failed before it: {reason}"
        said = {"Plan": t.facts["idea"], "Review": reviews.get(t, "")}
        lines = [f"  {name}: {' '.join(text.split())}" for name, text in said.items() if text]
        items.append("\n".join([f"{number}. [{t.facts['action']}] {result}", *lines]))
    return tuple(items)


def prompt(brief: Brief, instruction: str, *shown: Part | None) -> Prompt:
    """A question: the task, what is shown for it, what is asked."""
    return Prompt.of([Part("task", brief.prompt), *shown, Part("instruction", instruction)])


def listed(title: str, items: Sequence[str]) -> Part | None:
    """A memory as part of a prompt; none if it is empty."""
    return Part("history", title, items=tuple(items)) if items else None


def plan_prompt(brief: Brief, goal: str, action: str, base: Trial, topic: str, memory: Part | None) -> Prompt:
    """What the model sees before a draft, an improvement, a tuning or an ablation."""
    idea = Part("idea", f"The idea: {topic}") if topic else None
    standing = Part("metric", f"Baseline: {brief.baseline.line}\nThe files below: {base.line}")
    return prompt(brief, PLAN[action](goal=goal), idea, memory, standing, *brief.files(base.code))


def review_prompt(brief: Brief, base: Trial, trial: Trial) -> Prompt:
    """What the model sees of a trial that it reviews for the journal."""
    plan = Part("idea", f"The plan: {trial.facts['idea']}")
    change = Part("change", f"What was changed:\n{diff(base.code, trial.code)}")
    results = Part("metric", f"Before it: {base.line or base.status}\nAfter it: {trial.line or trial.status}")
    return prompt(brief, REVIEW(), plan, change, results, Part("error", trial.error))


def journal_prompt(brief: Brief, items: Sequence[str], instruction: str) -> Prompt:
    """A question about the trials so far."""
    return prompt(brief, instruction, listed("The trials so far:", items))


async def brainstorm(lab: Lab, params: TasV2) -> list[str]:
    """The ideas of this search, each asked for in sight of those before it."""
    ideas: list[str] = []
    start = lab.brief.baseline
    shown = Part("metric", f"Baseline: {start.line}"), *lab.brief.files(start.code)
    for _ in range(params.ideas):
        asked = prompt(lab.brief, IDEA(), listed("Ideas so far:", ideas), *shown)
        ideas.append((await lab.ask("idea", asked)).text)
    return ideas


async def grow(
    lab: Lab, goal: str, action: str, base: Trial, plan: str | None, memory: Part | None, facts: Facts
) -> Grown:
    """One trial of a batch, planned where it has no plan yet, and its review."""
    if plan is None:
        plan = (await lab.ask("plan", plan_prompt(lab.brief, goal, action, base, facts["topic"], memory))).text
    edit = await lab.edit(base, DEBUG(plan=plan) if action == "debug" else plan, base.error)
    trial = await lab.trial(edit, action=action, idea=plan, **facts)
    return trial, (await lab.ask("review", review_prompt(lab.brief, base, trial))).text if edit.ok else ""


async def batch(
    lab: Lab, at: Segment, picks: Sequence[Trial | None], items: Sequence[str], deal: Iterator[str]
) -> list[Grown]:
    """The trials of a batch; its memory and the names in it are settled before anything runs."""
    usual = STARS.get(at.stage, "improve")
    actions = ["draft" if not pick else usual if pick.ok else "debug" for pick in picks]
    memory = None
    if items and {"draft", "improve"} & {*actions}:
        summary = await lab.ask("journal", journal_prompt(lab.brief, items, JOURNAL()))
        memory = Part("memory", f"What the trials so far show:\n{summary.text}")
    named = [trial.facts["idea"] for trial in at.tree if trial.facts["action"] == usual]
    jobs = []
    for slot, (action, pick) in enumerate(zip(actions, picks, strict=True)):
        base, topic = (pick, pick.facts["topic"]) if pick else (lab.brief.baseline, next(deal, ""))
        plan = base.facts["idea"] if action == "debug" else None
        if action in STARS.values():
            asked = plan_prompt(lab.brief, goal(at), action, base, "", listed("Tried so far:", named))
            plan = (await lab.ask("plan", asked)).text
            named.append(plan)
        facts = {"topic": topic, "stage": at.stage, "sub": at.sub, "batch": at.batches, "slot": slot}
        jobs.append(partial(grow, goal=goal(at), action=action, base=base, plan=plan, memory=memory, facts=facts))
    return await lab.parallel(jobs)


async def wanted(lab: Lab, tree: Sequence[Trial], items: Sequence[str], params: TasV2) -> list[Trial]:
    """The good trials, best first; the model's choice, if it is to choose, before the others."""
    order = rules.ranked(tree, lab.brief.metric)
    if params.best_by == "model" and len(order) > 1:
        numbers = {tree.index(trial) + 1: trial for trial in order}
        schema = record(trial={"type": "integer", "enum": [*numbers]})
        reply = await lab.ask("best", journal_prompt(lab.brief, items, BEST()), schema)
        order.sort(key=lambda trial: trial is not numbers.get(reply.fields.get("trial", 0)))
    return order


async def by_caps(
    lab: Lab, at: Segment, best: Trial | None, items: Sequence[str], caps: Sequence[int], carry: bool
) -> Segment | None:
    """What comes after a batch by the original's rules; None where the experiment ends."""
    ended = rules.complete(at, best, caps)
    if ended is None:
        asked = journal_prompt(lab.brief, items, STAGE(goal=goal(at)))
        ended = (await lab.ask("stage", asked, record(complete="boolean"))).fields.get("complete")
    if ended:
        return rules.after(at, best, caps, carry)
    if best:
        asked = journal_prompt(lab.brief, items, SUBSTAGE(goal=goal(at)))
        found = (await lab.ask("substage", asked, record(complete="boolean", goal="string"))).fields
        if found.get("complete"):
            return Segment(at.stage, at.sub + 1, at.number + 1, centre=at.centre, aim=found["goal"])
    return at


async def search(lab: Lab, params: TasV2) -> None:
    """Best-first tree search in four stages, in batches that share one memory."""
    total, deal = lab.left, cycle(await brainstorm(lab, params))
    stages = rules.ends(total, params.shares)
    at: Segment | None = Segment(drafts=params.drafts)
    order: list[Trial] = []
    reviews: dict[Trial, str] = {}
    while at:
        slots = params.workers if params.caps else rules.room(at, total - lab.left, stages, params.workers)
        debug_prob = params.debug_prob if params.debug_stars or at.stage not in STARS else 0.0
        picks = rules.select(at, order, min(slots, lab.left), debug_prob, params.max_debug_depth, lab.rng)
        grown = await batch(lab, at, picks, journal(at.tree, reviews), deal)
        reviews |= dict(grown)
        at = replace(at, tree=(*at.tree, *(trial for trial, _ in grown)), batches=at.batches + 1)
        if not lab.left:
            return
        items = journal(at.tree, reviews)
        order = await wanted(lab, at.tree, items, params)
        best = order[0] if order else None
        if params.caps:
            at = await by_caps(lab, at, best, items, params.caps, params.carry)
        else:
            at = rules.by_shares(at, best, total - lab.left, stages, params.carry)
        order = [trial for trial in order if at and trial in at.tree]


STRATEGY = Strategy(
    "tas-v2",
    search,
    TasV2,
    purposes=("idea", "journal", "plan", "review", "best", "stage", "substage"),
    presets={
        "original": {"caps": (20, 12, 12, 18), "ideas": 1, "best_by": "model"},
        "released": {"carry": False, "debug_stars": False, "ideas": 0},
    },
)
