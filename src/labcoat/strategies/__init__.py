"""The strategies: one file each, its prompt templates beside it, the sections in the same order in every file.

A strategy `x.py` whose rules are long has them in `x_rules.py`: pure functions and data, no prompts and no lab.

Besides those in the package, a strategy may lie in a file of yours, ``path/to/file.py:NAME``, or be installed: a
plug-in names it as an entry point of the group ``labcoat.strategies``.
"""

from __future__ import annotations

import difflib
import importlib
import re
import sys
import traceback
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from labcoat.errors import InputError
from labcoat.lab import Strategy

GROUP = "labcoat.strategies"
"""Entry points of this group are strategies, under the name that the strategy has itself."""


def names() -> list[str]:
    """Names of all strategies in the package."""
    files = [path.stem for path in Path(__file__).parent.glob("*.py")]
    return sorted(stem.replace("_", "-") for stem in files if stem != "__init__" and not stem.endswith("_rules"))


def plugins() -> list[str]:
    """Names of the installed strategies of other packages."""
    return sorted({entry.name for entry in metadata.entry_points(group=GROUP)} - {*names()})


def named(spec: str) -> tuple[Strategy, Mapping[str, Any]]:
    """The strategy and the parameter values that ``STRATEGY`` or ``STRATEGY@PRESET`` stands for.

    Raises:
        InputError: there is none of that name, or it has no such preset.
    """
    at = re.fullmatch(r"(.+)@([\w-]+)", spec, re.DOTALL)
    if at is None:
        return find(spec), {}
    strategy, preset = find(at[1]), at[2]
    if preset not in strategy.presets:
        known = ", ".join(strategy.presets) or "none"
        raise InputError(f"strategy {strategy.name}: no preset {preset!r}; it has: {known}")
    return strategy, strategy.presets[preset]


def find(name: str) -> Strategy:
    """The strategy of that name, or the one in a file: ``file.py:NAME``, or ``file.py`` for its ``STRATEGY``.

    Raises:
        InputError: there is none, with the nearest names; or a file or plug-in does not give one, and why.
    """
    in_file = re.fullmatch(r"(.+\.py)(?::(\w+))?", name, re.DOTALL)
    if in_file:
        path = Path(in_file[1])
        return _checked(str(path), vars(load(path)), in_file[2] or "STRATEGY")
    if name in names():
        return _checked(name, vars(importlib.import_module(f"labcoat.strategies.{name.replace('-', '_')}")), "STRATEGY")
    if name in plugins():
        return _installed(name)
    known = names() + plugins()
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    raise InputError(
        f"unknown strategy {name!r}: {hint} (`labcoat strategies` lists them; a file works too: path/to/file.py:NAME)"
    )


def load(path: Path) -> ModuleType:
    """The module that a file defines. It is run as it stands there now, and nothing is written beside it.

    Raises:
        InputError: there is no such file, or it fails, naming the line.
    """
    path = path.absolute()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise InputError(f"strategy file {path}: {error.strerror}") from None
    module = ModuleType(str(path), None)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where its classes look for the names in their annotations
    try:
        exec(compile(source, path, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise InputError(f"strategy file {_why(path, error)}") from error
    return module


def _installed(name: str) -> Strategy:
    entries = list(metadata.entry_points(group=GROUP, name=name))
    where = " and ".join(f"{entry.value} of {entry.dist.name if entry.dist else '?'}" for entry in entries)
    if len(entries) > 1:
        raise InputError(f"strategy {name!r}: several plug-ins name one so: {where}; uninstall all but one")
    try:
        found = entries[0].load()
    except (Exception, SystemExit) as error:
        raise InputError(f"strategy plug-in {name} ({where}): {type(error).__name__}: {error}") from error
    strategy = _checked(f"plug-in {name} ({where})", {name: found}, name)
    if strategy.name != name:
        raise InputError(f"strategy plug-in {name} ({where}): its Strategy is named {strategy.name!r}, not {name!r}")
    return strategy


def _checked(where: str, defined: Mapping[str, Any], name: str) -> Strategy:
    found = defined.get(name)
    if isinstance(found, Strategy):
        return found
    others = ", ".join(n for n, value in defined.items() if isinstance(value, Strategy)) or "none"
    wrong = f"is no Strategy but {type(found).__name__}" if name in defined else "is not there"
    raise InputError(f"strategy {where}: {name} {wrong}; strategies in it: {others} (see docs/add-a-strategy.md)")


def _why(path: Path, error: BaseException) -> str:
    """Where in the file it failed, and how."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
    return f"{path}{f':{lines[-1]}' if lines else ''}: {kind}{error}"
