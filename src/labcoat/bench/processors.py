"""Processors: a command runs on so many of them, and where possible on ones that no other command of ours runs on."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from labcoat.bench.leases import Lease


def usable() -> list[int]:
    """The processors that this process may use."""
    return sorted(os.sched_getaffinity(0))


def in_turn(numbers: Sequence[int], first: int) -> list[int]:
    """``numbers`` from the one at ``first`` on, around the end: other processes begin elsewhere."""
    start = first % len(numbers)
    return [*numbers[start:], *numbers[:start]]


def lease(count: int) -> tuple[Lease, list[int]]:
    """Hold ``count`` processors for one command.

    Returns:
        The lease, and the processors: those of the lease, and where too few are free others that it shares. All that
        there are where the machine has fewer.
    """
    order = in_turn(usable(), os.getpid())
    lease = Lease("cpus", order, count)
    return lease, [*lease.held, *(number for number in order if number not in lease.held)][:count]


def shared() -> list[int]:
    """One processor for a command that mostly waits: it holds none, and stays off the one that we lease first."""
    return in_turn(usable(), os.getpid())[-1:]


@contextmanager
def only(numbers: Collection[int]) -> Iterator[None]:
    """Let what this thread starts meanwhile run on these processors only; it inherits that before its first step."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, numbers)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
