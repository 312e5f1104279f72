"""The strategies: one file each, its prompt templates beside it, the sections in the same order in every file."""

from __future__ import annotations

import difflib
import importlib
from pathlib import Path

from labcoat.errors import InputError
from labcoat.lab import Strategy


def names() -> list[str]:
    """Names of all strategies in the package."""
    return sorted(p.stem.replace("_", "-") for p in Path(__file__).parent.glob("*.py") if p.stem != "__init__")


def find(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        InputError: there is none, with the nearest names.
    """
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=2, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names())}"
        raise InputError(f"unknown strategy {name!r}: {hint} (`labcoat strategies` lists them)")
    module = importlib.import_module(f"labcoat.strategies.{name.replace('-', '_')}")
    strategy: Strategy = module.STRATEGY
    return strategy
