"""AIDE: a tree of solutions, grown by improving the best one and by debugging failed leaves at random.

Source: Jiang et al. 2025 (arXiv 2502.13138), WecoAI/aideml; its port in FML-bench, section 4 and appendix B.
    1. while fewer than `num_drafts` drafts are in the tree: draft a solution, a child of the baseline;
    2. else, with probability `debug_prob`: debug a failed leaf, drawn uniformly from those that have at most
       `max_debug_depth` failures in a row before them, if there is one;
    3. else improve the best valid solution, the first among equals; if there is none yet, draft another. Back to 1.
Every solution stays in the tree. A draft and an improvement are proposed with the memory in sight: idea, metric and
review of each valid solution. A repair is not: it sees the code and its error.

Ours differs from the original and from the released port, for these reasons:
    - the model is asked for the idea, which then is the editor's instruction and goes into the memory. The port sends
      a general instruction and remembers its first 300 characters, so its memory does not say what was tried;
    - a review sees the idea, the change and the metric before and after; the port's sees neither code nor change;
    - a trial has failed if the lab says so, and a violated constraint is a failure; in the original a model judges,
      and a metric that is an integer counts as missing. So nothing depends on the review of a failed trial, and none
      is asked for;
    - who debugs is told the idea that failed and the end of the error; the original leaves out the idea, and the port
      cuts off the last lines of a traceback, with the exception;
    - an edit that was rejected has failed like any other trial and can be debugged; the port validates the unchanged
      code, which enters the tree as a valid solution with its parent's metric;
    - a draft edits the baseline, as in the port, and every prompt but that of a repair names the baseline's metric;
      the original writes a program from nothing. The baseline itself is not in the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from pydantic import Field

from labcoat.lab import Brief, Lab, Params, Part, Prompt, Strategy, Template, Trial, diff

DRAFT = Template(__file__, "draft")
IMPROVE = Template(__file__, "improve")
DEBUG = Template(__file__, "debug")
REPAIR = Template(__file__, "repair")
REVIEW = Template(__file__, "review")

Better = Callable[[Trial, Trial], bool]


class AIDE(Params):
    """Parameters of AIDE."""

    num_drafts: int = Field(5, ge=0)
    """Drafts before the tree is grown. Original: 5; released port: 5."""
    debug_prob: float = Field(0.5, ge=0, le=1)
    """Probability that a step debugs, if there is something to debug. Original: 0.5; released port: 0.5."""
    max_debug_depth: int = Field(3, ge=0)
    """Failures in a row that a failed leaf may have before it to be debugged. Original: 3; released port: 3."""


def choose(tree: Sequence[Trial], params: AIDE, better: Better, rng: Random) -> Trial | None:
    """The solution that the next one grows from; None for another draft."""
    if sum(is_draft(node) for node in tree) < params.num_drafts:
        return None
    if rng.random() < params.debug_prob and (failed := debuggable(tree, params.max_debug_depth)):
        return rng.choice(failed)
    return best(tree, better)


def is_draft(node: Trial) -> bool:
    """Whether a solution was made from the baseline."""
    return node.parent is not None and node.parent.parent is None


def debuggable(tree: Sequence[Trial], max_depth: int) -> list[Trial]:
    """The failed leaves at most ``max_depth`` repairs deep, in the order in which they were tried."""
    inner = {node.parent for node in tree}
    return [node for node in tree if not node.ok and node not in inner and debug_depth(node) <= max_depth]


def debug_depth(node: Trial) -> int:
    """How many failed solutions in a row a solution comes from."""
    depth = 0
    while node.parent is not None and not node.parent.ok:
        node, depth = node.parent, depth + 1
    return depth


def best(tree: Sequence[Trial], better: Better) -> Trial | None:
    """The best valid solution, the first among equals; None if there is none."""
    top: Trial | None = None
    for node in tree:
        if node.ok and (top is None or better(node, top)):
            top = node
    return top


def remembered(trial: Trial, review: str) -> str:
    """What the memory keeps of a valid solution."""
    said = {"Idea": trial.facts["idea"], "Repair": trial.facts.get("repair", ""), "Review": review}
    lines = (f"  {name}: {' '.join(text.split())}" for name, text in said.items() if text)
    return "\n".join([f"- {trial.line}", *lines])


def idea_prompt(brief: Brief, base: Trial, memory: Sequence[str]) -> Prompt:
    """What the model sees before it proposes a draft, or an improvement of ``base``."""
    drafting = base is brief.baseline
    standing = [f"Baseline: {base.line}"] if drafting else [f"Baseline: {brief.baseline.line}", f"Best: {base.line}"]
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("history", "Solutions so far, oldest first:", items=tuple(memory)) if memory else None,
            Part("metric", "\n".join(standing)),
            *brief.files(base.code),
            Part("instruction", DRAFT() if drafting else IMPROVE()),
        ]
    )


def debug_prompt(brief: Brief, failed: Trial) -> Prompt:
    """What the model sees before it proposes a repair."""
    return Prompt.of(
        [
            Part("task", brief.prompt),
            *brief.files(failed.code),
            Part("error", f"The trial of these files was not valid:\n{failed.error}"),
            Part("instruction", DEBUG(idea=failed.facts["idea"])),
        ]
    )


def review_prompt(brief: Brief, base: Trial, trial: Trial) -> Prompt:
    """What the model sees of a valid trial that it reviews for the memory."""
    standing = [f"Baseline: {brief.baseline.line}", f"Before the change: {base.line}", f"After it: {trial.line}"]
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("idea", f"Idea: {trial.facts['idea']}"),
            Part("change", f"What was changed:\n{diff(base.code, trial.code)}"),
            Part("metric", "\n".join(standing)),
            Part("instruction", REVIEW()),
        ]
    )


async def grow(lab: Lab, base: Trial, memory: Sequence[str]) -> Trial:
    """A draft or an improvement."""
    action = "draft" if base is lab.brief.baseline else "improve"
    idea = (await lab.ask("idea", idea_prompt(lab.brief, base, memory))).text
    edit = await lab.edit(base, idea)
    return await lab.trial(edit, action=action, idea=idea)


async def debug(lab: Lab, failed: Trial) -> Trial:
    """A repair."""
    idea = failed.facts["idea"]
    repair = (await lab.ask("idea", debug_prompt(lab.brief, failed))).text
    edit = await lab.edit(failed, REPAIR(idea=idea, repair=repair), failed.error)
    return await lab.trial(edit, action="debug", idea=idea, repair=repair)


async def search(lab: Lab, params: AIDE) -> None:
    """A tree of solutions: some drafts, then improve the best one or, by chance, debug a failed leaf."""
    tree: list[Trial] = []
    memory: list[str] = []
    while lab.left:
        base = choose(tree, params, lab.brief.better, lab.rng) or lab.brief.baseline
        trial = await (grow(lab, base, memory) if base.ok else debug(lab, base))
        tree.append(trial)
        if trial.ok and lab.left:
            review = await lab.ask("review", review_prompt(lab.brief, base, trial))
            memory.append(remembered(trial, review.text))


STRATEGY = Strategy(
    "aide",
    search,
    AIDE,
    purposes=("idea", "review"),
    presets={"original": {}, "released": {}},  # both have our defaults
)
