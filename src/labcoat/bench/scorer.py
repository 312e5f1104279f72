"""Our side of the scorer: one long-lived process per split, which alone sees the answers.

It gets verified outputs and gives metrics. If it dies, hangs or answers nonsense, that is our error or the task's, and
never a score.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labcoat.bench import scratch
from labcoat.bench.command import Bind, Command, Limits, Sandbox, variables
from labcoat.bench.dataset import Problem
from labcoat.bench.environment import Environment
from labcoat.bench.outputs import BadOutput
from labcoat.bench.streams import HeadTail
from labcoat.errors import CannotRunHere
from labcoat.task import Task

START_TIMEOUT = 120.0  # imports of the task's libraries, on a busy machine
LONGEST_LINE = 1 << 20


class ScorerFailed(CannotRunHere):
    """The scorer died, hung or answered nonsense: an error of the task or of the machine, never a score."""


class Lines:
    """Standard output of the scorer, cut into lines."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._held = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._held = (self._held + data)[: LONGEST_LINE + 1]

    @property
    def too_long(self) -> bool:
        """Whether more has come than any reply is long."""
        return len(self._held) > LONGEST_LINE

    def next(self) -> bytes | None:
        """The next whole line, if there is one."""
        line, end, rest = self._held.partition(b"\n")
        if not end:
            return None
        self._held = rest
        return line


class Scorer:
    """The scorer of one split. Start it early: it imports its libraries while the candidate trains."""

    def __init__(
        self, task: Task, environment: Environment, sandbox: Sandbox, problems: Sequence[Problem], folder: Path
    ) -> None:
        """Start the process; ``folder`` is scratch that lives longer than it."""
        self._task, self._limits = task, task.manifest.score
        self._outputs = scratch.own(folder / "outputs", None, 0o755)
        program = scratch.own(folder / "program", None, 0o755)
        for source in (task.folder / "scorer.py", Path(__file__).with_name("score_server.py")):
            shutil.copyfile(source, program / source.name)
            (program / source.name).chmod(0o644)
        code, outputs = Bind(program, "/scorer"), Bind(self._outputs, "/outputs")
        split = Bind(problems[0].answers.parents[1], "/split")  # all in one: bwrap takes 3,000 folders and no more
        at = sandbox.path
        argv = [environment.interpreter(at), f"{at(code)}/score_server.py", f"{at(code)}/scorer.py"]
        command = Command(
            argv=[*argv, at(outputs), at(split)],
            binds=[code, outputs, split],
            program=environment.binds,
            env=variables(cpus=1) | environment.variables(at),
            limits=Limits(self._limits.timeout, self._limits.memory_mb),
            cwd="/scorer",
            role="scorer",
        )
        self._lines, self._said = Lines(), HeadTail()
        self._child = sandbox.start(command, stdout=self._lines, stderr=self._said, stdin=True)
        self._ready = False
        self._count = 0

    def score(self, problem: Problem, outputs: Mapping[str, bytes]) -> dict[str, tuple[float, float | None]]:
        """Value and standard error of each metric for verified outputs.

        Raises:
            BadOutput: the scorer refuses these outputs, with its reason.
            ScorerFailed: the scorer itself failed.
        """
        if not self._ready:
            self._reply(START_TIMEOUT)
            self._ready = True
        self._count += 1
        folder = scratch.own(self._outputs / str(self._count), None, 0o755)
        try:
            for name, content in outputs.items():
                (folder / name).write_bytes(content)
                (folder / name).chmod(0o644)
            self._send({"id": self._count, "problem": problem.name, "folder": folder.name})
            reply = self._reply(self._limits.timeout)
        finally:
            scratch.remove(folder)
        if reply.get("id") != self._count:
            raise self._failed(f"answered {reply} to request {self._count}")
        if isinstance(reply.get("bad"), str):
            raise BadOutput(reply["bad"][:1000])
        if "failed" in reply:
            raise self._failed(f"failed:\n{str(reply['failed'])[-2000:]}")
        return self._measures(reply)

    def _measures(self, reply: dict[str, Any]) -> dict[str, tuple[float, float | None]]:
        try:
            found = {str(name): (float(m["value"]), m["se"]) for name, m in reply["metrics"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._failed(f"answered {str(reply)[:300]}") from None
        manifest = self._task.manifest
        needed = [manifest.metric.name, *(c.metric for c in manifest.constraint if c.kind == "enforced")]
        if lacking := [name for name in needed if name not in found]:
            raise self._failed(f"measured no {', '.join(lacking)}; it gave {', '.join(found)}")
        return found

    def _send(self, request: dict[str, Any]) -> None:
        assert self._child.process.stdin is not None
        try:
            self._child.process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise self._failed("has ended") from None

    def _reply(self, timeout: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout
        running = True
        while (line := self._lines.next()) is None:
            if self._lines.too_long:
                raise self._failed(f"wrote a line of more than {LONGEST_LINE} bytes")
            if self._child.ended == "memory":
                raise self._failed(f"used more than {self._limits.memory_mb} MiB (score.memory_mb)")
            if not running:
                self._child.close()
                raise self._failed(f"ended with exit code {self._child.process.returncode}")
            if time.monotonic() > deadline:
                raise self._failed(f"did not answer within {timeout:g} s (score.timeout)")
            running = self._child.turn(deadline)
        try:
            reply = json.loads(line)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise self._failed(f"answered {line[:300]!r}")
        return reply

    def _failed(self, what: str) -> ScorerFailed:
        said = self._said.text().strip()
        tail = f"; it said:\n{said[-2000:]}" if said else ""
        return ScorerFailed(f"{self._task.folder / 'scorer.py'}: the scorer {what}{tail}")

    def close(self) -> None:
        """End the process."""
        self._child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
