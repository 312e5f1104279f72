"""Where code runs: data and environments, workspace, sandbox, limits, worker, scorer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from labcoat.bench.outcome import Outcome
from labcoat.tree import Code


class Bench(Protocol):
    """What runs code, over the life of a run: sandboxed for real tasks, a pure function for simulated ones."""

    def prepare(self) -> None:
        """Make ready what is missing (environment, data)."""
        ...

    def facts(self) -> dict[str, Any]:
        """What ran where and what was enforced, for run.json."""
        ...

    def baseline(self, seed: int) -> Outcome:
        """Outcome of the untouched code on validation."""
        ...

    def baseline_test(self, seed: int) -> Outcome:
        """Outcome of the untouched code on the hidden split."""
        ...

    def trial(self, code: Code, seed: int) -> AbstractContextManager[tuple[Outcome, Path | None]]:
        """Outcome of ``code`` on validation, and the folder of its artefact for as long as the context is open."""
        ...

    def test(self, artefact: Path | None, code: Code, seed: int) -> Outcome:
        """Outcome of ``code`` on the hidden split, predicted from its kept artefact."""
        ...

    def close(self) -> None:
        """End what is still open."""
        ...
