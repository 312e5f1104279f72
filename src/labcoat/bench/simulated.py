"""The bench of simulated tasks: a trial is a pure function of the constants in the candidate's code.

No process runs and no candidate code is executed: constants are read from the syntax tree. Such a trial takes
microseconds, its landscape and its optimum are known, and it passes through the same lab, journal and editor as a
real one.
"""

from __future__ import annotations

import ast
import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from labcoat.bench.constraints import judge
from labcoat.bench.outcome import Measure, Outcome
from labcoat.errors import InputError
from labcoat.landscape import Landscape
from labcoat.task import Task
from labcoat.tree import Code

Simulate = Callable[[Mapping[str, object], str, int], dict[str, float]]


class SimulatedBench:
    """Runs a task that has a ``[simulation]`` table."""

    def __init__(self, task: Task) -> None:
        """``task`` names the module that holds ``simulate(constants, split, seed)``, or the knobs of a landscape."""
        self.task = task
        self._baselines: dict[tuple[str, int], Outcome] = {}

    def prepare(self) -> None:
        """Nothing to fetch and nothing to build."""

    def facts(self) -> dict[str, Any]:
        """What ran where, for run.json."""
        return {
            "sandbox": {"level": "none needed", "enforced": {"code": "read, never executed"}},
            "environment": {"lock": "", "lock_hash": ""},
        }

    def close(self) -> None:
        """Nothing is open."""

    def baseline(self, seed: int) -> Outcome:
        """The untouched code on validation."""
        return self._baseline("val", seed)

    @contextmanager
    def trial(self, code: Code, seed: int) -> Iterator[tuple[Outcome, Path | None]]:
        """``code`` on validation. There is no artefact: the code is all that the test needs."""
        yield self._measure(code, "val", seed), None

    def test(self, artefact: Path | None, code: Code, seed: int) -> Outcome:
        """``code`` on test."""
        return self._measure(code, "test", seed)

    def baseline_test(self, seed: int) -> Outcome:
        """The untouched code on test."""
        return self._baseline("test", seed)

    def _baseline(self, split: str, seed: int) -> Outcome:
        """The untouched code, measured once: every trial is judged beside it."""
        if (split, seed) not in self._baselines:
            self._baselines[split, seed] = self._measure(self.task.baseline, split, seed)
        return self._baselines[split, seed]

    @cached_property
    def _simulate(self) -> Simulate:
        simulation = self.task.manifest.simulation
        assert simulation is not None, "the task has a [simulation] table"
        if simulation.landscape:
            return Landscape(simulation.landscape)
        path = self.task.folder / (simulation.module or "")
        spec = importlib.util.spec_from_file_location(f"labcoat_simulation_{self.task.hash[:8]}", path)
        if spec is None or spec.loader is None:
            raise InputError(f"{path}: simulation.module: not a Python file")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            simulate: Simulate = module.simulate
        except Exception as error:  # whatever the task's author wrote
            raise InputError(f"{path}: simulation.module: {type(error).__name__}: {error}") from error
        return simulate

    def _measure(self, code: Code, split: str, seed: int) -> Outcome:
        manifest, simulate = self.task.manifest, self._simulate
        try:
            values = constants(code, self.task.editable_files(code))
            measured = simulate(values, split, seed)
        except (ValueError, ArithmeticError, SyntaxError) as error:
            return Outcome("crash", seed, error=f"{type(error).__name__}: {error}")
        except Exception as error:
            path = self.task.folder / "task.toml"
            raise InputError(f"{path}: simulation.module failed: {type(error).__name__}: {error}") from error
        if not all(math.isfinite(value) for value in measured.values()):
            return Outcome("bad_output", seed, error=f"not finite: {measured}")
        metrics = {name: Measure([value], [None]) for name, value in measured.items()}
        reference = metrics if code == self.task.baseline else self._baseline(split, seed).metrics
        status, slack, text = judge(manifest, metrics, reference, split == "test")
        return Outcome(status, seed, metrics, slack, text)


def constants(code: Code, paths: list[str]) -> dict[str, object]:
    """The numbers, switches and strings that the files assign to names at top level.

    Raises:
        SyntaxError: a file is no Python.
    """
    found: dict[str, object] = {}
    for path in paths:
        for statement in ast.parse(code.text(path), filename=path).body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                value = statement.value
                sign = -1 if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) else 1
                constant = value.operand if isinstance(value, ast.UnaryOp) else value
                if isinstance(constant, ast.Constant) and isinstance(constant.value, bool | int | float | str):
                    plain = constant.value if sign == 1 or isinstance(constant.value, str) else -constant.value
                    found.update({target.id: plain for target in targets if isinstance(target, ast.Name)})
    return found
