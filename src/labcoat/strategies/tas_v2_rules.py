"""The rules of The AI Scientist v2: what a batch is made from, and when a stage ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from labcoat.lab import Metric, Trial

STARS = {2: "tune", 4: "ablate"}
"""Stages whose trials all edit the one that the stage began with."""


@dataclass(frozen=True)
class Segment:
    """A stretch of the search with a journal of its own: a stage, or under the original's rules a sub-stage.

    A trial whose parent is not in the journal is the root of a tree.
    """

    stage: int = 1
    sub: int = 1
    number: int = 1  # counts segments of either kind
    drafts: int = 0
    centre: Trial | None = None  # the best of the stage before
    tree: tuple[Trial, ...] = ()
    batches: int = 0
    aim: str = ""  # what the model set to a sub-stage


def ranked(tree: Sequence[Trial], metric: Metric) -> list[Trial]:
    """The good trials, best first; among equals the first comes first."""
    sign = -1 if metric.direction == "higher" else 1
    return sorted((t for t in tree if t.ok and t.value is not None), key=lambda t: sign * (t.value or 0.0))


def debug_depth(trial: Trial) -> int:
    """How many failed trials in a row a trial comes from."""
    depth = 0
    while trial.parent and not trial.parent.ok:
        trial, depth = trial.parent, depth + 1
    return depth


def select(
    at: Segment, order: Sequence[Trial], slots: int, debug_prob: float, max_debug_depth: int, rng: Random
) -> list[Trial | None]:
    """The parents of a batch, None for a draft. ``order`` has the good trials, the most wanted first.

    A failed leaf is drawn from all trees and refused if its tree is taken. The loop ends: a tree that others wait for
    has a leaf that did not fail, hence a good trial.
    """
    tree = {*at.tree}
    inner = {t.parent for t in at.tree}
    leaves = [t for t in at.tree if t not in inner]
    failed = [t for t in leaves if not t.ok and debug_depth(t) <= max_debug_depth]
    star = at.stage in STARS

    def root(trial: Trial) -> Trial:
        while trial.parent in tree:
            trial = trial.parent
        return trial

    viable = {root(t) for t in leaves if t.ok}
    drafts = at.drafts - sum(root(t) is t for t in at.tree)
    used: set[Trial] = set()

    def free(trial: Trial) -> bool:
        return root(trial) not in used or len(used) >= len(viable)

    picks: list[Trial | None] = []
    while len(picks) < slots:
        if drafts > 0:  # those of this batch are not counted
            picks.append(None)
        elif rng.random() < debug_prob and failed and free(leaf := rng.choice(failed)):
            picks.append(leaf)
            used.add(root(leaf))
        elif star or not order:
            picks.append(at.centre if star else None)
        elif chosen := next(filter(free, order), None):
            picks.append(chosen)
            used.add(root(chosen))
    return picks


def ends(total: int, shares: Sequence[float]) -> list[int]:
    """The numbers of steps after which the stages end: shares rounded down, the last one has the rest."""
    return [*accumulate(int(total * share + 1e-9) for share in shares), total]


def by_shares(at: Segment, best: Trial | None, done: int, stages: Sequence[int], carry: bool) -> Segment:
    """What comes after a batch: the stage whose share it is now, but stage 1 until something works.

    ``stages`` has the numbers of steps after which they end.
    """
    best = best or at.centre
    stage = sum(end <= done for end in stages[:3]) + 1 if best else 1
    return at if stage == at.stage else begin(stage, best, at.number + 1, carry)


def room(at: Segment, done: int, stages: Sequence[int], workers: int) -> int:
    """Trials that the next batch may have: no more than its stage has left, unless that is overdue."""
    left = stages[at.stage - 1] - done
    return min(workers, left) if left > 0 else workers


def complete(at: Segment, best: Trial | None, caps: Sequence[int]) -> bool | None:
    """Whether a stage is complete by the original's rules; None where a model is to judge."""
    if len(at.tree) >= caps[at.stage - 1]:
        return True
    if at.number == 2 and best and best is not at.tree[0]:
        return None
    return at.number == 1 and best is not None


def after(at: Segment, best: Trial | None, caps: Sequence[int], carry: bool) -> Segment | None:
    """What comes after a stage that is complete by the original's rules; None where the experiment ends."""
    given_up = (at.number == 1 and len(at.tree) >= caps[0]) or (at.number <= 4 and not best)
    return None if given_up or at.stage == 4 else begin(at.stage + 1, best, at.number + 1, carry)


def begin(stage: int, best: Trial | None, number: int, carry: bool) -> Segment:
    """The first segment of a stage, with the best so far in its journal if that is to be carried."""
    drafts = 0 if carry or stage in STARS else 1
    return Segment(stage, 1, number, drafts, best, (best,) if best and carry else ())
