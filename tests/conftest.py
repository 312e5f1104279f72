"""What the tests of the core share: runs of simulated tasks, with real parts and scripted models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import labcoat
from labcoat.history import History
from labcoat.lab import Lab, Params, Strategy

Search = Callable[[Lab, Params], Awaitable[None]]


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., History]:
    """Run a coroutine (or a named strategy) on a simulated task."""

    def run(strategy: Search | str, *, task: str = "sim/valley", steps: int = 12, **options: Any) -> History:
        chosen = strategy if isinstance(strategy, str) else Strategy("under-test", strategy)
        return labcoat.run(task=task, strategy=chosen, steps=steps, **({"runs": tmp_path / "runs"} | options))

    return run
