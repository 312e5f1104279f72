"""Every pair of arms with all that is to be said about their difference."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

from labcoat.scoring.intervals import Estimate, bootstrap
from labcoat.scoring.multiple import benjamini_hochberg, holm
from labcoat.scoring.paired import Cell, Signs, Without, differences, leads, leave_one_out, permutation_test, sign_test
from labcoat.scoring.power import Needed, needed_by


@dataclass(frozen=True)
class Contrast:
    """How far ``arm`` is ahead of ``other``: the mean over tasks of the mean over the rounds that both have."""

    arm: str
    other: str
    by_task: Mapping[str, Sequence[float]] = field(repr=False)
    """By how much it is ahead in the rounds of each task."""
    lead: Estimate
    """With an interval from a bootstrap over tasks."""
    signs: Signs
    """Over tasks."""
    p: float
    """Permutation test, the arms exchanged task by task."""
    holm: float
    """``p`` for this many pairs, after Holm."""
    benjamini_hochberg: float
    without: Without
    """The lead with one task left out."""
    needed: Needed
    """What would tell the two apart."""

    @property
    def tasks(self) -> int:
        """Tasks that both have."""
        return len(self.by_task)

    @property
    def cells(self) -> int:
        """Rounds on these that both have."""
        return sum(map(len, self.by_task.values()))

    @cached_property
    def p_cells(self) -> float:
        """``p`` cell by cell, as if rounds on one task were independent; in no table, as they are not."""
        return permutation_test([value / len(values) for values in self.by_task.values() for value in values])

    def to_json(self) -> dict[str, Any]:
        """Plain data; docs/json.md describes it as a Pair."""
        return {
            "arm": self.arm,
            "other": self.other,
            "lead": asdict(self.lead),
            "ahead": self.signs.ahead,
            "behind": self.signs.behind,
            "ties": self.signs.ties,
            "p_sign": self.signs.p,
            "p": self.p,
            "holm": self.holm,
            "benjamini_hochberg": self.benjamini_hochberg,
            "flips": list(self.without.flips),
            "rounds_here": self.needed.rounds_here,
            "rounds": self.needed.rounds,
            "tasks": self.needed.tasks,
        }


def contrasts(arms: Mapping[str, Mapping[Cell, float]]) -> list[Contrast]:
    """All pairs of arms, in their order; a pair without a common cell has no contrast."""
    pairs = {(a, b): differences(arms[a], arms[b]) for a, b in itertools.combinations(arms, 2)}
    found = {pair: by_task for pair, by_task in pairs.items() if by_task}
    ahead = {pair: leads(by_task) for pair, by_task in found.items()}
    p = [permutation_test(list(lead.values())) for lead in ahead.values()]
    return [
        Contrast(
            *pair,
            by_task=found[pair],
            lead=bootstrap(list(ahead[pair].values()), fmean),
            signs=sign_test(list(ahead[pair].values())),
            p=own,
            holm=strict,
            benjamini_hochberg=mild,
            without=leave_one_out(ahead[pair]),
            needed=needed_by(found[pair]),
        )
        for pair, own, strict, mild in zip(found, p, holm(p), benjamini_hochberg(p), strict=True)
    ]
