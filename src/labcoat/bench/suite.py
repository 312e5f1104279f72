"""The adversary suite: read from its folder, and put in front of a task's baseline."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from labcoat.errors import InputError
from labcoat.manifest.phase import Phase
from labcoat.task import Task
from labcoat.tree import Code

SUITE = Path(__file__).parent / "adversaries"
Class = Literal["inert", "refused", "neutralised"]


@dataclass(frozen=True)
class Adversary:
    """One file of the suite."""

    kind: Class
    name: str
    source: str

    @property
    def attempts(self) -> str:
        """What it attempts: its docstring."""
        return " ".join((ast.get_docstring(self._tree) or "").split())

    @property
    def expected(self) -> tuple[str, ...]:
        """The statuses that refuse it."""
        found = self._says.get("EXPECT", ())
        return (found,) if isinstance(found, str) else tuple(found)

    @property
    def reason(self) -> str:
        """A pattern that the error must match, so that nothing is refused for another reason."""
        return str(self._says.get("SAYS", ""))

    @property
    def phase(self) -> str:
        """The only phase that it acts in; empty for every one."""
        return str(self._says.get("IN", ""))

    @property
    def sandbox_only(self) -> bool:
        """Whether only a sandbox holds it back, so that without one it is not even tried."""
        return bool(self._says.get("SANDBOX_ONLY"))

    @cached_property
    def _tree(self) -> ast.Module:
        return ast.parse(self.source, f"{self.kind}/{self.name}.py")

    @cached_property
    def _says(self) -> dict[str, Any]:
        """The literals that the file assigns to names in capitals: it is read and not run."""
        found = {}
        for line in self._tree.body:
            if isinstance(line, ast.Assign) and isinstance(target := line.targets[0], ast.Name):
                if target.id in ("EXPECT", "SAYS", "IN", "SANDBOX_ONLY"):
                    found[target.id] = ast.literal_eval(line.value)
        return found


def suite(folder: Path = SUITE) -> list[Adversary]:
    """The adversaries that every task meets, in order."""
    kinds: tuple[Class, ...] = ("inert", "refused")
    return [Adversary(kind, p.stem, p.read_text()) for kind in kinds for p in sorted((folder / kind).glob("*.py"))]


def patterns(phase: Phase) -> list[str]:
    """Patterns of the phase's arguments, the program left out, with a group for each folder."""
    found = []
    for part in phase.argv[1:]:
        fields = list(string.Formatter().parse(part))
        found.append("".join(re.escape(text) + (f"(?P<{field}>.*)" if field else "") for text, field, _, _ in fields))
    return found


def armed(task: Task, adversaries: Sequence[Adversary], setup: dict[str, Any]) -> Code:
    """The baseline with ``adversaries`` in front of every editable Python file; the first that is imported acts."""
    prelude = f"exec({(SUITE / 'adversary.py').read_text()!r}, {{'SETUP': {setup!r}}})\n"
    code = task.baseline
    paths = [path for path in task.editable_files(code) if path.endswith(".py")]
    if not paths:
        raise InputError(f"{task.folder}/task.toml: files.editable: names no Python file, so no adversary can act")
    return code.put({path: in_front(code.text(path), prelude) for path in paths})


def in_front(source: str, prelude: str) -> str:
    """``source`` with the line ``prelude`` before all its statements but the docstring and ``from __future__``."""
    end = 0
    for at, statement in enumerate(ast.parse(source).body):
        docstring = at == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if docstring or future or statement.lineno <= end:  # the last: after a semicolon
            end = statement.end_lineno or end
    lines = source.splitlines(keepends=True)
    before = "".join(lines[:end])
    return before + ("" if before.endswith("\n") or not before else "\n") + prelude + "".join(lines[end:])
