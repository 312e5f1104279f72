"""What the tests of the core share: runs of simulated tasks, with real parts and scripted models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import labcoat
from labcoat.history import History
from labcoat.lab import Lab, Params, Strategy

# What a property takes is a matter of the machine and its load, and no property.
settings.register_profile("labcoat", deadline=None)
settings.load_profile("labcoat")

Search = Callable[[Lab, Params], Awaitable[None]]


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., History]:
    """Run a coroutine (or a named strategy) on a simulated task."""

    def run(strategy: Search | str, *, task: str = "sim/valley", steps: int = 12, **options: Any) -> History:
        chosen = strategy if isinstance(strategy, str) else Strategy("under-test", strategy)
        return labcoat.run(task=task, strategy=chosen, steps=steps, **({"runs": tmp_path / "runs"} | options))

    return run
