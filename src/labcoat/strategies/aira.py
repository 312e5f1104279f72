"""AIRA: a Monte-Carlo tree search over solutions, without rollouts.

Source: Toledo et al. 2025 (arXiv 2507.02554), facebookresearch/aira-dojo, its MCTS solver; its port in FML-bench,
section 4 and appendix B.
    1. from the root, the baseline, go to the child with the largest UCT value until a node has no children:
       U = Q + `uct_c` * sqrt(ln N(parent) / N(child)), Q the mean value of the child, normalised between the worst and
       the best valid value of the whole tree; the child that was made first among equals;
    2. give that leaf `num_children` children: drafts below the root, improvements elsewhere;
    3. repair a child that failed, and what comes out of it, in at most `max_debug_depth` trials;
    4. after each child that is valid, with or without repairs, add its value to the mean of each node from the root to
       it, repairs included. Back to 1 when all children are made.
So drafts are made in the first expansion only, and the value of a node is the mean over all that grew from it. A draft
and an improvement are proposed with the memory in sight: idea, metric and review of each valid solution.

Ours differs from the original and from the released port, for these reasons:
    - a child that could not be repaired counts as a visit with the worst value so far, and is not grown from; a node
      that has no other children gets new ones. In the original and the port it counts for nothing: the leaf stays the
      preferred one, the next walk ends at its broken child, and broken code is "improved" until something there
      succeeds (`failures="ignored"` gives that rule);
    - the search ends with its last trial. The original stops `num_children` at the steps that are left, which is none
      at the step limit, and then loops without doing anything until its clock of 24 hours;
    - a draft has as many repairs as an improvement, as in the port. The original takes the root for a failure and
      gives a draft one less;
    - an edit that was rejected has failed like any other trial and is repaired; the port validates the unchanged code
      and takes it for a valid solution with its parent's metric;
    - values of a metric where lower is better are normalised to [0, 1] as well; in the original all are off by one
      constant, which changes no choice;
    - all valid solutions are remembered, oldest left out first where there is no room, as in the original, and the
      port remembers ten, with a label such as "draft 2" in the place of the idea. A review sees the change; the
      port's does not. Only valid trials are reviewed: whether a trial failed, the lab says, and not a model;
    - who repairs is told the idea and the repairs that failed, and sees the end of the error; the port shows the
      beginning;
    - few children and few repairs, as in the port, because a search has 100 trials and not the original's 10,000; and
      the original's `uct_c`, because the port's hardly leaves the root: on the simulated tasks each of the two finds
      less with the number of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, log, sqrt
from typing import Literal

from pydantic import Field

from labcoat.lab import Brief, Lab, Metric, Params, Part, Prompt, Strategy, Template, Trial, diff

DRAFT = Template(__file__, "draft")
IMPROVE = Template(__file__, "improve")
DEBUG = Template(__file__, "debug")
REPAIR = Template(__file__, "repair")
REVIEW = Template(__file__, "review")


class AIRA(Params):
    """Parameters of AIRA."""

    num_children: int = Field(2, ge=1)
    """Children that a leaf is given. Original: 5; released port: 2."""
    uct_c: float = Field(0.25, ge=0)
    """Weight of a child that was seldom visited. Original: 0.25; released port: 1.41."""
    max_debug_depth: int = Field(3, ge=0)
    """Repairs in a row of one child. Original: 20; released port: 3."""
    failures: Literal["worst", "ignored"] = "worst"
    """What a child that could not be repaired counts: the worst value so far, or nothing, and then its broken code may
    be improved. Original: ignored; released port: ignored."""


@dataclass(eq=False)
class Node:
    """A solution in the tree, with what was found at it and below it."""

    trial: Trial
    children: list[Node] = field(default_factory=list)
    visits: int = 0
    total: float = 0.0
    """Sum of the metric over the visits."""

    def add(self, trial: Trial) -> Node:
        """A new child."""
        self.children.append(Node(trial))
        return self.children[-1]


class Tree:
    """The tree, and the two rules of the search: where it grows, and what is learned from a child."""

    def __init__(self, root: Trial, metric: Metric, params: AIRA) -> None:
        """The value of the root itself plays no role."""
        self.root = Node(root)
        self.metric = metric
        self.params = params
        self.worst: float | None = None
        self.best: float | None = None

    def select(self) -> list[Node]:
        """The way from the root to the leaf that is grown from next."""
        path = [self.root]
        while children := self.eligible(path[-1]):
            path.append(max(children, key=partial(self.uct, path[-1])))  # the first among equals
        return path

    def eligible(self, node: Node) -> list[Node]:
        """The children that may be walked to."""
        return [child for child in node.children if child.visits or self.params.failures == "ignored"]

    def uct(self, parent: Node, child: Node) -> float:
        """What speaks for a child: its mean on a scale from worst to best, and how seldom it was visited."""
        if not child.visits:
            return -inf
        return self.scaled(child.total / child.visits) + self.params.uct_c * sqrt(log(parent.visits) / child.visits)

    def scaled(self, value: float) -> float:
        """Where a value lies between the worst, 0, and the best of the tree, 1."""
        if self.worst is None or self.best is None or self.worst == self.best:
            return 0.5
        return (value - self.worst) / (self.best - self.worst)

    def learn(self, path: Sequence[Node], chain: Sequence[Node]) -> None:
        """Count a child of the end of ``path``, with its repairs, that is valid in the end or was given up."""
        value = chain[-1].trial.value
        if value is not None:
            self.worst = value if self.worst is None or self.metric.better(self.worst, value) else self.worst
            self.best = value if self.best is None or self.metric.better(value, self.best) else self.best
            visit([*path, *chain], value)
        elif self.params.failures == "worst" and self.worst is not None:
            visit(path, self.worst)


def visit(path: Sequence[Node], value: float) -> None:
    """Add a value to all nodes of a path."""
    for node in path:
        node.visits += 1
        node.total += value


def remembered(trial: Trial, review: str) -> str:
    """What the memory keeps of a valid solution."""
    said = {"Idea": trial.facts["idea"], "Repair": trial.facts.get("repair", ""), "Review": review}
    lines = (f"  {name}: {' '.join(text.split())}" for name, text in said.items() if text)
    return "\n".join([f"- {trial.result}", *lines])


def idea_prompt(brief: Brief, base: Trial, memory: Sequence[str]) -> Prompt:
    """What the model sees before it proposes a draft, or an improvement of ``base``."""
    drafting = base is brief.baseline
    baseline = f"Baseline: {brief.baseline.result}"
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("history", "Solutions so far, oldest first:", items=tuple(memory)) if memory else None,
            Part("metric", baseline if drafting else f"{baseline}\nThese files: {base.result}"),
            *brief.files(base.code),
            Part("error", base.error),
            Part("instruction", DRAFT() if drafting else IMPROVE()),
        ]
    )


def debug_prompt(brief: Brief, failed: Sequence[Trial]) -> Prompt:
    """What the model sees before it proposes a repair of the last of ``failed``; the others led to it."""
    *earlier, last = failed
    repairs = tuple(f"- {' '.join(trial.facts['repair'].split())}\n  {trial.result}" for trial in failed[1:])
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("history", "Repairs that failed:", items=repairs) if earlier else None,
            *brief.files(last.code),
            Part("error", f"The trial of these files was not valid:\n{last.error}"),
            Part("instruction", DEBUG(idea=last.facts["idea"])),
        ]
    )


def review_prompt(brief: Brief, base: Trial, trial: Trial) -> Prompt:
    """What the model sees of a valid solution that it reviews for the memory."""
    before, after = f"Before the change: {base.result}", f"After it: {trial.result}"
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("idea", f"Idea: {trial.facts['idea']}"),
            Part("change", f"What was changed:\n{diff(base.code, trial.code)}"),
            Part("metric", f"Baseline: {brief.baseline.result}\n{before}\n{after}"),
            Part("instruction", REVIEW()),
        ]
    )


async def propose(lab: Lab, base: Trial, memory: Sequence[str]) -> Trial:
    """A draft or an improvement."""
    idea = (await lab.ask("idea", idea_prompt(lab.brief, base, memory))).text
    edit = await lab.edit(base, idea, base.error)
    return await lab.trial(edit, action="draft" if base is lab.brief.baseline else "improve", idea=idea)


async def repair(lab: Lab, failed: Sequence[Trial]) -> Trial:
    """A repair of the last of ``failed``."""
    last, idea = failed[-1], failed[-1].facts["idea"]
    how = (await lab.ask("idea", debug_prompt(lab.brief, failed))).text
    edit = await lab.edit(last, REPAIR(idea=idea, repair=how), last.error)
    return await lab.trial(edit, action="debug", idea=idea, repair=how)


async def search(lab: Lab, params: AIRA) -> None:
    """Monte-Carlo tree search: grow several children where the mean is good or little was tried, repair failures."""
    tree = Tree(lab.brief.baseline, lab.brief.metric, params)
    memory: list[str] = []
    while lab.left:
        path = tree.select()
        base = path[-1].trial
        for _ in range(params.num_children):
            if not lab.left:
                return
            chain = [path[-1].add(await propose(lab, base, memory))]
            while not chain[-1].trial.ok and lab.left and len(chain) <= params.max_debug_depth:
                chain.append(chain[-1].add(await repair(lab, [node.trial for node in chain])))
            tree.learn(path, chain)
            if chain[-1].trial.ok and lab.left:
                review = await lab.ask("review", review_prompt(lab.brief, base, chain[-1].trial))
                memory.append(remembered(chain[-1].trial, review.text))


STRATEGY = Strategy(
    "aira",
    search,
    AIRA,
    purposes=("idea", "review"),
    presets={
        "original": {"num_children": 5, "max_debug_depth": 20, "failures": "ignored"},
        "released": {"uct_c": 1.41, "failures": "ignored"},
    },
)
