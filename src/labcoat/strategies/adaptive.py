"""AdaptiveSearch: greedy hill climbing that, once it stalls, becomes several branches advanced in turn.

Source: FML-bench, section 4.3 and appendix D; agents/adaptivesearch in its repository, which is the original.
    1. greedy phase: as `autoresearch`, one incumbent. The curve holds its improvement over the baseline after each
       step, divided by the metric's range;
    2. when the curve rose by at most `epsilon` a step over the last `window` steps and enough steps are left: branches
       from the best codes that were kept, the best first, and from the baseline where there are too few;
    3. branches take turns of one step, each greedy with an incumbent of its own. The first idea of a branch differs in
       mechanism from those of the others; later ones are guided where few of the branch's last steps were kept:
       A, its codes stay near the baseline: a larger change; B, they scatter: back to one family of ideas; or both.

Ours differs from the released program, for these reasons:
    - what counts as far is how far this run's greedy phase went in the window in which it stalled. The program has a
      constant for each of its tasks, from 18 earlier runs on that task, and stops on any other (`max_reach` sets one);
    - the metric's range is |best - worst| as the task states it, |best - baseline| without a worst value (both as in
      the paper), and the gain so far without either; the program has a table and stops on what is not in it;
    - that a branch begins with an idea of its own is checked: where the change of its code points the way of a
      sibling's first change, the model is asked again, free of steps. The program only asks for it (`asks` = 1);
    - branches see what the greedy phase tried, so that they do not repeat it; in the program they forget it
      (`remember`);
    - retries, history and rejected edits are as in our `autoresearch`, so the greedy phase is that strategy to the
      last letter: vectors are first asked for when branches begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from pydantic import Field

from labcoat.lab import Brief, Code, Edit, Lab, Params, Part, Prompt, Strategy, Template, Trial
from labcoat.scoring import measures
from labcoat.strategies.adaptive_rules import Branch, Guidance, Idea, Rule, curve, guidance, origins, stalled

IDEA = Template(__file__, "idea")
BEGIN = Template(__file__, "begin")
DEBUG = Template(__file__, "debug")
HINTS = {"A": Template(__file__, "deeper"), "B": Template(__file__, "focus"), "AB": Template(__file__, "both")}


class Adaptive(Params):
    """Parameters of AdaptiveSearch."""

    attempts: int = Field(3, ge=1)
    """Runs for one idea: the first and its retries. Released: 3."""
    debug_from: Literal["crashed", "incumbent"] = "crashed"
    """Which code a retry edits. Released: incumbent."""
    window: int = Field(50, ge=1, le=500)
    """W: steps over which the slope of the curve is taken. Released: 50."""
    epsilon: float = Field(0.0005, ge=0)
    """Slope, as a share of the metric's range per step, up to which the search has stalled. Released: 0.0005."""
    branches_from: tuple[int, ...] = (4, 16, 31)
    """Steps that must be left for one branch, for two, and so on. Released: [4, 16, 31]."""
    asks: int = Field(3, ge=1, le=100)
    """How often at most a branch's first idea is asked for, until it differs. Released: 1."""
    distinct: float = Field(0.35, ge=-1, le=1)
    """Cosine between first changes of code up to which they differ; 0.4 to 0.5 is another value of the same constant,
    most unrelated changes have less than 0.2 (embedder `tokens`). Released: not checked."""
    remember: Literal["all", "branches"] = "all"
    """What branches are shown of the past: all of it, or without the greedy phase. Released: branches."""
    max_reach: float | None = Field(None, gt=0)
    """Distance to the baseline that counts as far; none: that of the stalled greedy phase. Released: 58 to 433,
    a constant for each task, for GraphCodeBERT vectors summed over windows (docs/methods.md)."""
    centred: bool = False
    """Whether dimension is taken about the mean, as in the paper's process metric, or the baseline. Released: false."""
    shallow_window: int = Field(20, ge=1)
    """Rule A: last steps of the branch that are looked at. Released: 20."""
    shallow_kept: int = Field(2, ge=0)
    """Rule A: most of them that were kept. Released: 2."""
    shallow_reach: float = Field(0.30, ge=0)
    """Rule A: most that the branch's codes went, as a share of what counts as far. Released: 0.30."""
    scattered_window: int = Field(5, ge=1)
    """Rule B: last steps of the branch that are looked at. Released: 5."""
    scattered_kept: int = Field(2, ge=0)
    """Rule B: most of them that were kept. Released: 2."""
    scattered_dimension: float = Field(1.25, ge=1)
    """Rule B: effective dimension of the branch's codes from which on they scatter. Released: 1.25."""

    @property
    def rule_a(self) -> Rule:
        """Its codes stay near the baseline."""
        return Rule(self.shallow_window, self.shallow_kept, self.shallow_reach)

    @property
    def rule_b(self) -> Rule:
        """Its codes scatter."""
        return Rule(self.scattered_window, self.scattered_kept, self.scattered_dimension)


def history(ideas: Sequence[Idea]) -> tuple[str, ...]:
    """A line for each idea, newest last."""
    lines = []
    for number, idea in enumerate(ideas, 1):
        last = idea.trials[-1]
        verdict = "keep" if idea.kept else "discard" if last.ok else f"failed after {len(idea.trials)} run(s)"
        where = f"branch {idea.branch}: " if idea.branch else ""
        lines.append(f"{number}. [{where}{verdict}] {last.line or last.status}\n   {' '.join(idea.text.split())}")
    return tuple(lines)


def idea_prompt(brief: Brief, branch: Branch, params: Adaptive, instruction: str, aside: Part | None = None) -> Prompt:
    """What the researcher sees before the next idea of a branch."""
    best = branch.incumbents[-1]
    where = f" on branch {branch.number}" if branch.number else ""
    standing = f"Baseline: {brief.baseline.line}\nBest so far{where}: {best.line}"
    past = [idea for idea in branch.log if idea.branch or not branch.number or params.remember == "all"]
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("history", "Ideas so far:", items=history(past)) if past else None,
            Part("metric", standing),
            *brief.files(best.code),
            aside,
            Part("instruction", instruction),
        ]
    )


def hint(found: Guidance, kept: Sequence[bool], params: Adaptive) -> Part | None:
    """The rules' hint in words."""
    if not found.hint:
        return None
    recent = kept[-(params.rule_b if found.hint == "B" else params.rule_a).window :]
    reach, dimension = f"{found.reach:.0%}", f"{found.dimension:.1f}"
    return Part("hint", HINTS[found.hint](kept=sum(recent), steps=len(recent), reach=reach, dimension=dimension))


class Space:
    """The vectors of codes; each code is embedded once."""

    def __init__(self, lab: Lab) -> None:
        """Nothing is embedded yet."""
        self.lab = lab
        self.seen: dict[Code, measures.Floats] = {}

    async def at(self, code: Code) -> measures.Floats:
        """The vector of a code, (d,)."""
        if code not in self.seen:
            self.seen[code] = np.array(await self.lab.embed(code))
        return self.seen[code]

    async def of(self, trials: Sequence[Trial]) -> measures.Floats:
        """The vectors of what was tried, (n, d)."""
        return np.array([await self.at(trial.code) for trial in trials])

    async def change(self, old: Code, new: Code) -> measures.Floats:
        """The way from one code to another, (d,)."""
        return await self.at(new) - await self.at(old)


async def attempt(lab: Lab, branch: Branch, idea: Idea, edit: Edit, **facts: Any) -> None:
    """Try an edit for an idea, which is kept if that is better than the incumbent."""
    if branch.number:
        facts["branch"] = branch.number
    trial = await lab.trial(edit, idea=idea.text, attempt=len(idea.trials) + 1, **facts)
    kept = lab.brief.better(trial, branch.incumbents[-1])
    if not idea.trials:
        branch.log.append(idea)
    idea.trials.append(trial)
    idea.kept = kept


async def retry(lab: Lab, branch: Branch, idea: Idea, params: Adaptive) -> None:
    """Another attempt at an idea that failed."""
    failed = idea.trials[-1]
    base = failed if params.debug_from == "crashed" else branch.incumbents[-1]
    edit = await lab.edit(base, DEBUG(idea=idea.text), failed.error)
    await attempt(lab, branch, idea, edit, action="debug")


async def improve(lab: Lab, branch: Branch, params: Adaptive, found: Guidance | None = None) -> None:
    """A new idea for the incumbent, with the rules' hint if they have one."""
    said = hint(found, branch.kept, params) if found else None
    idea = (await lab.ask("idea", idea_prompt(lab.brief, branch, params, IDEA(), said))).text
    edit = await lab.edit(branch.incumbents[-1], idea)
    facts = vars(found) if found else {}
    await attempt(lab, branch, Idea(idea, branch.number), edit, action="improve", **facts)


async def begin(lab: Lab, branch: Branch, siblings: Sequence[Branch], space: Space, params: Adaptive) -> None:
    """The first idea of a branch. Of those that the model gives, the one whose change is least like a sibling's."""
    begun = [sibling for sibling in siblings if sibling.ideas]
    changes = [await space.change(sibling.origin.code, sibling.trials[0].code) for sibling in begun]
    taken = [sibling.ideas[0].text for sibling in begun]
    given: list[tuple[float, str, Edit]] = []
    while not given or (given[-1][0] > params.distinct and len(given) < params.asks):
        aside = Part("taken", "Ideas that are taken:", items=tuple(taken)) if taken else None
        idea = (await lab.ask("idea", idea_prompt(lab.brief, branch, params, BEGIN(), aside))).text
        edit = await lab.edit(branch.origin, idea)
        change = await space.change(branch.origin.code, edit.code)
        given.append((max((measures.cosine(change, other) for other in changes), default=0.0), idea, edit))
        taken.append(idea)
    likeness, idea, edit = min(given, key=itemgetter(0))
    facts = {"likeness": likeness, "asked": len(given)}
    await attempt(lab, branch, Idea(idea, branch.number), edit, action="branch", **facts)


async def climb(lab: Lab, greedy: Branch, params: Adaptive) -> list[Trial]:
    """The greedy phase. Where branches begin once it has stalled; nowhere if the steps are spent."""
    starts: list[Trial] = []
    while lab.left and not starts:
        failing = greedy.failing(params.attempts)
        await (retry(lab, greedy, failing, params) if failing else improve(lab, greedy, params))
        if stalled(curve(greedy.trials, greedy.origin, lab.brief.metric), params.window, params.epsilon):
            starts = origins(greedy, lab.left, params.branches_from)
    return starts


async def search(lab: Lab, params: Adaptive) -> None:
    """Greedy hill climbing; once it stalls, branches from its best codes in turn, guided by where they have gone."""
    greedy = Branch(0, lab.brief.baseline, [])
    starts = await climb(lab, greedy, params)
    branches = [Branch(number, origin, greedy.log) for number, origin in enumerate(starts, 1)]
    space, far = Space(lab), params.max_reach
    for branch in cycle(branches):
        if not lab.left:
            break
        home = await space.at(greedy.origin.code)
        if far is None:
            far = measures.reach(await space.of(greedy.trials[-params.window - 1 :]), home)
        if failing := branch.failing(params.attempts):
            await retry(lab, branch, failing, params)
        elif not branch.ideas:
            await begin(lab, branch, branches, space, params)
        else:
            rules, codes = (params.rule_a, params.rule_b), await space.of(branch.trials)
            found = guidance(branch.kept, codes, home, far, *rules, params.centred)
            await improve(lab, branch, params, found)


RELEASED = {"debug_from": "incumbent", "asks": 1, "remember": "branches"}
"""The released program is the original. Its `max_reach` is another for each task: give it with the preset."""

STRATEGY = Strategy(
    "adaptive",
    search,
    Adaptive,
    purposes=("idea",),
    presets={"original": RELEASED, "released": RELEASED},
)
