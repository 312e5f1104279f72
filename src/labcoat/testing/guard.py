"""Whether a strategy touches anything but its lab: no files, clocks, processes, and no randomness but the lab's.

Names that its module has imported are looked at, and what any module could call is made to refuse while the strategy's
own code runs. That finds slips, and is no sandbox: strategies are trusted code.
"""

from __future__ import annotations

import builtins
import io
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from labcoat.lab import Strategy

OUTSIDE = {
    "asyncio", "datetime", "io", "multiprocessing", "numpy.random", "os", "posix", "secrets", "shutil", "socket",
    "subprocess", "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
"""Modules that a strategy has no use for: all that it may know comes from its lab."""

FUNCTIONS: list[tuple[ModuleType, tuple[str, ...]]] = [
    (builtins, ("open", "input")),
    (io, ("open",)),
    (os, ("getenv", "getpid", "listdir", "open", "scandir", "stat", "system", "urandom")),
    (time, ("monotonic", "perf_counter", "process_time", "sleep", "time", "time_ns")),
    (random, tuple(name for name in random.__all__ if hasattr(getattr(random, name), "__self__"))),
]
"""What is made to refuse. Of ``random`` those that share the hidden generator; ``random.Random`` may be used."""


def imported(strategy: Strategy) -> list[str]:
    """Names in the strategy's module that lead outside."""
    found = []
    for name, value in vars(sys.modules[strategy.search.__module__]).items():
        module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        shared = getattr(value, "__self__", None) is random.random.__self__  # type: ignore[attr-defined]
        if module in OUTSIDE or shared:
            found.append(name)
    return found


@contextmanager
def refusing(touched: list[str]) -> Iterator[None]:
    """While this is open, what leads outside raises PermissionError and is noted in ``touched``."""
    own = threading.get_ident()

    def refuse(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def refused(*args: Any, **options: Any) -> Any:
            if threading.get_ident() != own:  # a thread of whoever runs the check
                return function(*args, **options)
            touched.append(name)
            raise PermissionError(f"a strategy may not call {name}")

        return refused

    places = [(module, name, getattr(module, name)) for module, names in _functions() for name in names]
    try:
        for module, name, function in places:
            setattr(module, name, refuse(f"{module.__name__}.{name}", function))
        yield
    finally:
        for module, name, function in places:
            setattr(module, name, function)


def _functions() -> list[tuple[ModuleType, tuple[str, ...]]]:
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is None:
        return FUNCTIONS
    shared = ("choice", "normal", "permutation", "rand", "randint", "randn", "random", "shuffle", "uniform")
    return [*FUNCTIONS, (numpy_random, shared)]
