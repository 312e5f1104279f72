"""What a search did, effect by effect, for comparing it with another that must be the same."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

from labcoat import strategies
from labcoat.lab import Strategy
from labcoat.testing.case import Case, mixed
from labcoat.testing.world import Search, World

Story = list[list[str]]
"""Of every effect its key, its kind, the hash of all that it depended on, and what it gave."""


def story(search: Search) -> Story:
    """The story of a search, in the order of the numbering."""
    return [[e["key"], e["kind"], e["hash"], json.dumps(e["result"], sort_keys=True)] for e in search.events]


def same(case: Case, one: Story, other: Story, when: str) -> None:
    """Check that two stories are one.

    Raises:
        Broken: naming the first effect that differs.
    """
    for a, b in zip(one, other, strict=False):
        if a != b:
            case.broken(f"{when} it does something else from {a[1]} {a[0]} on")
    if len(one) != len(other):
        case.broken(f"{when} it does {len(other)} things and not {len(one)}")


def elsewhere(case: Case) -> Story:
    """The story of the case's search in another process, with another hash seed.

    Raises:
        Broken: it does not run there.
    """
    file, module = str(case.strategy.path), case.strategy.search.__module__
    question = {
        "file": file, "module": None if module in ("__main__", file) else module, "strategy": case.strategy.name,
        "params": dict(case.params), "steps": case.steps,
    }  # fmt: skip
    path = os.pathsep.join(sys.path)
    child = subprocess.run(
        [sys.executable, "-c", "from labcoat.testing.story import tell; tell()"],
        input=json.dumps(question), capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONHASHSEED": "4711", "PYTHONPATH": path},
    )  # fmt: skip
    if child.returncode:
        case.broken(f"it does not run in another process:\n{child.stderr.strip()[-1500:]}")
    told: Story = json.loads(child.stdout)
    return told


def tell() -> None:
    """In another process: carry out the search that standard input describes, and print its story."""
    asked = json.load(sys.stdin)
    module = importlib.import_module(asked["module"]) if asked["module"] else strategies.load(Path(asked["file"]))
    found = {id(value): value for value in vars(module).values() if isinstance(value, Strategy)}.values()
    named = [strategy for strategy in found if strategy.name == asked["strategy"]]
    if not named:
        sys.exit(f"{asked['file']}: the Strategy {asked['strategy']} is not at the top level of the module")
    search = World(mixed(asked["steps"])).search(named[0], asked["params"], steps=asked["steps"])
    json.dump(story(search), sys.stdout)
