"""Whether a strategy touches anything but its lab: no files, clocks, processes, and no randomness but the lab's.

What its files import is read, wherever in them it stands, and what any module could call is made to refuse while the
strategy's own code runs. That finds slips, and is no sandbox: strategies are trusted code.
"""

from __future__ import annotations

import ast
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

SHARED = tuple(name for name in random.__all__ if hasattr(getattr(random, name), "__self__"))
"""Functions of ``random`` that share the hidden generator; ``random.Random`` may be used."""
OUTSIDE = {
    "asyncio", "concurrent", "ctypes", "datetime", "http", "io", "multiprocessing", "numpy.random", "os", "posix",
    "random.SystemRandom", "secrets", "shutil", "signal", "socket", "subprocess", "tempfile", "threading", "time",
    "urllib", "uuid", *(f"random.{name}" for name in SHARED),
}  # fmt: skip
"""What a strategy has no use for: all that it may know comes from its lab."""
UNSEEDED = {"Random", "SystemRandom", "default_rng"}
"""Generators that draw their seed from the machine if they are given none."""

FUNCTIONS: list[tuple[ModuleType, tuple[str, ...]]] = [
    (builtins, ("open", "input")),
    (io, ("open",)),
    (os, ("getenv", "getpid", "listdir", "open", "scandir", "stat", "system", "urandom")),
    (
        time,
        ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "sleep", "time", "time_ns"),
    ),
    (random, SHARED),
]
"""What is made to refuse."""


def leading_outside(strategy: Strategy) -> list[str]:
    """What in the strategy's files leads outside: imports, and generators without a seed."""
    texts = [text for name, text in strategy.source().items() if name.endswith(".py")]
    return list(dict.fromkeys(name for text in texts for node in ast.walk(ast.parse(text)) for name in _leads(node)))


def _leads(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(aliases):
            names = [alias.name for alias in aliases]
        case ast.ImportFrom(str(module), aliases, 0):
            names = [f"{module}.{alias.name}" for alias in aliases]
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name), [], []) if name in UNSEEDED:
            return [f"{name}() without a seed"]
        case _:
            return []
    return [name for name in names if any(f"{name}.".startswith(f"{out}.") for out in OUTSIDE)]


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
