"""Ledger: what a run spent, by purpose and by step, folded from its journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labcoat.budget import SPENT, Spent, reply_of
from labcoat.fork import shared
from labcoat.journal import Event, Journal, split


@dataclass(frozen=True)
class Ledger:
    """The effects of a run, summed up."""

    total: Spent
    """Of this run alone."""
    by_purpose: dict[str, Spent]
    """Its model calls."""
    by_step: dict[int | None, Spent]
    """What led to each step, and the step itself; None for what belongs to none, such as confirm and test."""
    shared: Spent
    """What a fork took over: its origin paid for it."""

    @classmethod
    def of(cls, journal: Journal, steps: Mapping[str, int]) -> Ledger:
        """Read a journal; ``steps`` numbers the keys of baseline and trials.

        A step has what its scope asked for since the step before.
        """
        taken, _ = shared(journal)
        own: list[Event] = []
        theirs: list[Event] = []
        for event in journal.events:
            if event["kind"] == SPENT:
                own.append(event)
            elif journal.finished(event["key"]) is event:
                (theirs if event["key"] in taken else own).append(event)
        by_purpose: dict[str, Spent] = defaultdict(Spent)
        by_step: dict[int | None, Spent] = defaultdict(Spent)
        waiting: dict[str, list[Event]] = defaultdict(list)
        for event in own:
            scope, number = split(event["key"])
            if reply_of(event):
                by_purpose[(event["result"] if event["kind"] == SPENT else event["request"])["purpose"]].add(event)
            if event["key"] in steps:
                for part in [*waiting.pop(scope, []), event]:
                    by_step[steps[event["key"]]].add(part)
            elif number is not None:
                waiting[scope].append(event)
            else:
                by_step[None].add(event)
        for rest in waiting.values():
            for event in rest:
                by_step[None].add(event)
        ordered = sorted(by_step.items(), key=lambda item: (item[0] is None, item[0] or 0))
        return cls(Spent.sum(by_step.values()), dict(by_purpose), dict(ordered), Spent.of(theirs))

    def to_json(self) -> dict[str, Any]:
        """The stable form of the listings."""
        return self.total.to_json() | {
            "by_purpose": {purpose: spent.to_json() for purpose, spent in self.by_purpose.items()},
            "by_step": [{"step": step, **spent.to_json()} for step, spent in self.by_step.items()],
        }
