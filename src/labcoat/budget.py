"""Budget: the limits of a run beside its steps, charged by what the journal records."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from labcoat.errors import InputError, Stopped

SPENT = "spent"
"""Kind of the note on what a model call had used when it was given up."""


class LimitReached(Stopped):
    """A limit is reached. The run can be resumed with a higher one."""

    def __init__(self, name: str, limit: float, spent: float | None) -> None:
        """``name`` is the limit's field; ``spent`` is None where it is not known."""
        if spent is None:
            text = f"{name} is limited to {limit:g}, but the model's price is unknown: drop that limit"
        else:
            text = f"limit reached: {name} = {limit:g} (spent {spent:g}); raise it"
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
                raise InputError(f"limit on {name}: {value} is not a positive number")

    def to_json(self) -> dict[str, float]:
        """The limits that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Budget:
    """What was spent, against the limits. Checked before each effect that goes live."""

    def __init__(self, limits: Limits) -> None:
        """Nothing is spent yet; events of earlier sittings are charged while they are replayed."""
        self.limits = limits
        self.calls = 0
        self.tokens = 0
        self.usd: float | None = 0.0
        """None once a call had no known price."""
        self.seconds = 0.0

    def charge(self, event: dict[str, Any]) -> None:
        """Count a finished effect, or what was spent on one that was not finished."""
        self.seconds += event.get("seconds", 0.0)
        result = event["result"]
        if isinstance(result, dict) and "reply" in result:
            self.seconds -= result["reply"].get("waited", 0.0)
            usage, cost = result["reply"]["usage"], result["reply"]["cost"]
            self.calls += 1
            self.tokens += sum(usage[part] for part in ("input_uncached", "cache_read", "cache_write", "output"))
            self.usd = None if cost is None or self.usd is None else self.usd + cost

    def check(self, *, calls: bool) -> None:
        """Stop before the next effect if a limit is reached; those on model calls count only before ``calls``.

        Raises:
            LimitReached: naming the limit; also where money is limited and a price is not known.
        """
        for name, limit in self.limits.to_json().items():
            spent = getattr(self, name)
            if (calls or name == "seconds") and (spent is None or spent >= limit):
                raise LimitReached(name, limit, spent)
