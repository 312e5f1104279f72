"""One figure or claim of the paper, and what comes out of its own tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from labcoat.scoring.intervals import Estimate

Verdict = Literal["agrees", "differs", "cannot be re-derived", "not supported"]
VERDICTS: dict[str, str] = {
    "agrees": "comes out of the published tables: a figure within its rounding, a claim with its interval and test",
    "differs": "comes out otherwise",
    "cannot be re-derived": "needs values that are not published",
    "not supported": "an interval or a test, corrected for the number of tests, allows the opposite",
}


@dataclass(frozen=True)
class Check:
    """A claim, how it was published, what was found, and the verdict."""

    where: str
    claim: str
    published: str
    found: str
    verdict: Verdict
    estimate: Estimate | None = None
    """Of what was found, where it has an interval."""


def judged(holds: bool, otherwise: Verdict = "differs") -> Verdict:
    """``agrees``, or what it is otherwise."""
    return "agrees" if holds else otherwise


def near(found: float, published: float, slack: float) -> bool:
    """Whether two numbers are one, if they may be apart by ``slack`` through rounding."""
    return abs(found - published) <= slack + 1e-12


def listed(values: Mapping[str, float] | Iterable[tuple[str, float]], form: str = ".3f") -> str:
    """Names with numbers, for people."""
    pairs = values.items() if isinstance(values, Mapping) else values
    return ", ".join(f"{name} {value:{form}}" for name, value in pairs)


def interval(found: Estimate, form: str = "+.3f") -> str:
    """An estimate with its interval, for people."""
    if found.value is None or found.low is None or found.high is None:
        return "unknown"
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def above(found: Estimate) -> bool:
    """Whether the whole interval is above 0."""
    return found.low is not None and found.low > 0


def below(found: Estimate) -> bool:
    """Whether the whole interval is below 0."""
    return found.high is not None and found.high < 0
