"""Patience: how long to wait for an endpoint that is away, and when to give up."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST = 1.0
LONGEST = 60.0
"""Seconds between two tries, where the endpoint does not say how long to wait."""
LONGEST_ASKED = 300.0
"""The same where it does."""

Sleep = Callable[[float], None]


class OutOfPatience(Exception):
    """The whole time is waited."""


class Patience:
    """The waits of one call. They get longer, and together they have an end."""

    def __init__(self, seconds: float, sleep: Sleep = time.sleep) -> None:
        """``seconds`` is the most that is waited in all."""
        self.left = seconds
        self.waited = 0.0
        self._sleep = sleep
        self._tries = 0
        self._random = random.Random()  # many runs that were turned away together must not come back together

    def wait(self, asked: float | None, tell: Callable[[float], None]) -> None:
        """Wait once, ``asked`` seconds if the endpoint named a time; ``tell`` hears for how long.

        Raises:
            OutOfPatience: before a wait that would be too long.
        """
        seconds = pause(self._tries, asked, self._random.random())
        if seconds > self.left:
            raise OutOfPatience
        self._tries += 1
        tell(seconds)
        self._sleep(seconds)
        self.waited += seconds
        self.left -= seconds


def pause(tries: int, asked: float | None, draw: float) -> float:
    """Seconds to wait after so many waits: what is asked for, else doubling; ``draw`` in [0, 1) spreads them."""
    if asked is not None:
        return min(asked, LONGEST_ASKED) + draw * FIRST
    return float(min(LONGEST, FIRST * 2 ** min(tries, 30)) * (0.5 + draw / 2))


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """What the header of that name asks for, in seconds; None where it is missing or makes no sense."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            seconds = _seconds(headers.get("retry-after", ""), now or datetime.now(UTC))
    except (ValueError, TypeError, OverflowError):
        return None
    return seconds if 0 <= seconds < math.inf else None


def _seconds(text: str, now: datetime) -> float:
    try:
        return float(text)
    except ValueError:
        when = parsedate_to_datetime(text)
        return (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds()
