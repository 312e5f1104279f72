"""Budget: what a run spends, and its limits beside its steps, charged by what the journal records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from labcoat.errors import InputError, Stopped

SPENT = "spent"
"""Kind of the note on what a model call had used when it was given up."""
INPUT = ("input_uncached", "cache_read", "cache_write")
PARTS = (*INPUT, "output", "of_which_reasoning")


class LimitReached(Stopped):
    """A limit is reached. The run can be resumed with a higher one."""

    def __init__(self, name: str, limit: float, spent: float | None, ahead: float = 0.0) -> None:
        """``name`` is the limit's field; ``spent`` is None where it is not known, ``ahead`` what comes next."""
        if spent is None:
            text = f"{name} is limited to {limit:g}, but what was spent is unknown: drop that limit"
        else:
            more = f", the next prompt takes about {ahead:g}" if spent < limit else ""
            text = f"limit reached: {name} = {limit:g} (spent {spent:g}{more}); raise it"
        super().__init__(f"{text} and give the same command again")
        self.name = name
        self.limit = limit
        self.spent = spent


@dataclass(frozen=True)
class Limits:
    """Limits are not identity: a run that one of them stopped goes on when it is raised. None means no limit."""

    calls: int | None = None
    """Model calls."""
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    """Time spent in calls and trials, over all sittings."""

    def __post_init__(self) -> None:
        """Refuse what is no limit.

        Raises:
            InputError: naming the limit.
        """
        for name, value in self.to_json().items():
            if not 0 < value < math.inf:
                raise InputError(f"limit on {name} (--max-{name}): {value} is not a positive number")

    def to_json(self) -> dict[str, float]:
        """The limits that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass
class Spent:
    """Sums over effects: model calls, their tokens by part, money and time."""

    calls: int = 0
    input_uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    of_which_reasoning: int = 0
    usd: float | None = 0.0
    """None once a call had no known price."""
    seconds: float = 0.0

    @classmethod
    def of(cls, events: Iterable[Mapping[str, Any]]) -> Spent:
        """The sums over these effects."""
        spent = cls()
        for event in events:
            spent.add(event)
        return spent

    @classmethod
    def sum(cls, several: Iterable[Spent]) -> Spent:
        """The sum of sums."""
        total = cls()
        for spent in several:
            total.calls += spent.calls
            total.seconds += spent.seconds
            total._add(vars(spent), spent.usd)
        return total

    @property
    def input(self) -> int:
        """All tokens that went in."""
        return sum(getattr(self, part) for part in INPUT)

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input + self.output

    def add(self, event: Mapping[str, Any]) -> None:
        """Count a finished effect, or what was spent on a call that was given up."""
        self.seconds += event.get("seconds", 0.0)
        if reply := reply_of(event):
            self.add_call(reply["usage"], reply["cost"])

    def add_call(self, usage: Mapping[str, int], cost: float | None) -> None:
        """Count a model call."""
        self.calls += 1
        self._add(usage, cost)

    def _add(self, tokens: Mapping[str, Any], cost: float | None) -> None:
        for part in PARTS:
            if count := tokens.get(part):
                setattr(self, part, getattr(self, part) + count)
        self.usd = None if cost is None or self.usd is None else self.usd + cost

    def to_json(self) -> dict[str, Any]:
        """The stable form of the listings."""
        own = asdict(self) | {"seconds": round(self.seconds, 3)}
        return {"calls": own.pop("calls"), "tokens": self.tokens, **own}


def reply_of(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """The reply of an effect that asked a model; None of any other."""
    result = event["result"]
    return result.get("reply") if isinstance(result, dict) else None


class Budget:
    """What was spent, against the limits. Checked before each effect that goes live."""

    def __init__(self, limits: Limits) -> None:
        """Nothing is spent yet; events of earlier sittings are charged while they are replayed."""
        self.limits = limits
        self.spent = Spent()

    def check(self, call: Mapping[str, float | None] | None = None) -> None:
        """Stop before the next effect if a limit is reached, or before a ``call`` if what it takes would pass one.

        Args:
            call: what a model call is known to take before it is made, by limit; None for any other effect, before
                which time alone counts.

        Raises:
            LimitReached: naming the limit; also where money is limited and a price is not known.
        """
        coming = {"seconds": 0.0} | dict(call or {})
        for name, limit in self.limits.to_json().items():
            if name not in coming:
                continue
            spent, ahead = getattr(self.spent, name), coming[name]
            if spent is None or ahead is None:
                raise LimitReached(name, limit, None)
            if spent >= limit or spent + ahead > limit:
                raise LimitReached(name, limit, spent, ahead)
