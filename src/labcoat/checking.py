"""The check of a task: every adversary of the suite, and the task's own trivial solutions, tried on it.

An adversary is data: a small file below ``bench/adversaries/<class>`` that acts inside a worker before the candidate's
code does. *Inert*: it finds nothing, and the score is that of the same code without it. *Refused*: a status of its own
and no score. *Neutralised*: a solution of the task's ``solutions`` folder gets what ``solutions/expected.toml`` says.
"""

from __future__ import annotations

import ast
import os
import re
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from labcoat.bench import home, outputs, process, sandbox
from labcoat.bench.dataset import problems
from labcoat.bench.outcome import Measure, Outcome, Status, error_text
from labcoat.bench.simulated import SimulatedBench
from labcoat.bench.suite import Adversary, Class, armed, patterns, suite
from labcoat.bench.worker import SandboxedBench
from labcoat.errors import CannotRunHere, InputError, of_field
from labcoat.manifest import Manifest
from labcoat.manifest.table import Table
from labcoat.own_check import look_around
from labcoat.task import Task
from labcoat.tree import Code, sha256

SEED = 0
MARK = "labcoat-adversary"
NO_SANDBOX = "not tried without a sandbox"
SELF_REPORTED = (
    "self-reported: the number is what the project's own code says. Adversaries that go for hidden answers or a scorer "
    "are not tried, as there are none; a candidate that prints a false number is believed"
)
TIGHT = {"timeout": 5.0, "memory_mb": 1024, "processes": 64, "disk_mb": 64}  # for what must run into a limit

Verdict = Literal["holds", "broken", "not run"]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """What became of one attempt."""

    adversary: str
    kind: Class
    attempts: str
    expected: str
    found: str
    verdict: Verdict


@dataclass(frozen=True)
class Checked:
    """The result of a check."""

    task: str
    sandbox: str
    note: str
    seconds: float
    rows: list[Row]

    @property
    def holds(self) -> bool:
        """Whether nothing that was tried is broken."""
        return all(row.verdict != "broken" for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "holds": self.holds}


class Expected(Table):
    """A table of ``solutions/expected.toml``: what a solution of that name must get on validation."""

    status: Status = "ok"
    val: float | None = None
    """The metric; not looked at when left out."""
    tolerance: float = 1e-6


class Tried(NamedTuple):
    """What a trial with adversaries gave."""

    outcome: Outcome
    by_name: dict[str, str]
    """What each of them found."""
    problem: str
    """What is wrong without being one's own finding; empty where nothing is."""


def check(
    task: Task,
    level: sandbox.Level | None = None,
    report: Report = lambda text: None,
    adversaries: Sequence[Adversary] | None = None,
) -> Checked:
    """Try the suite and the task's own solutions on a task.

    Args:
        task: the task.
        level: ``bwrap``, or ``none``, where those that only a sandbox holds back are not tried.
        report: called with a line of text before each attempt.
        adversaries: other ones than those of the suite.

    Raises:
        InputError: the baseline does not run, or ``expected.toml`` is wrong.
        CannotRunHere: no sandbox here, or nothing can be measured.
    """
    started = time.monotonic()
    solutions = known_solutions(task)
    if task.manifest.simulation:
        note = "simulated: no candidate code is executed, so only the task's solutions are tried"
        with closing(SimulatedBench(task)) as bench:
            bench.prepare()
            rows = list(neutralised(task, bench, solutions, report))
        return Checked(task.id, "none needed", note, time.monotonic() - started, rows)
    if task.manifest.integrity == "self-reported":
        rows = [
            Row(a, "inert", b, c, found, "holds" if fine else "broken")
            for a, b, c, found, fine in look_around(task, sandbox.required(level), report)
        ]
        return Checked(task.id, "bwrap", SELF_REPORTED, time.monotonic() - started, rows)
    chosen = sandbox.choose(level, constants_only=False)
    tried = _Check(task, chosen, report, suite() if adversaries is None else adversaries)
    rows = [*tried.inert(), *tried.refused(), *tried.neutralised(solutions)]
    note = "" if chosen.level == "bwrap" else "without a sandbox little holds: what only a sandbox stops was not tried"
    return Checked(task.id, chosen.level, note, time.monotonic() - started, rows)


class _Check:
    """One check of a task that runs code."""

    def __init__(self, task: Task, chosen: sandbox.Sandbox, report: Report, adversaries: Sequence[Adversary]) -> None:
        self.task, self.sandbox, self.report = task, chosen, report
        self.adversaries = adversaries
        self.before = process.descendants({os.getpid()})

    def inert(self) -> Iterator[Row]:
        """All at once, twice, as the second trial must see nothing of the first; one by one if that goes wrong."""
        chosen = [a for a in self.adversaries if a.kind == "inert"]
        tried = [a for a in chosen if self._can(a)]
        expected = "nothing found, the baseline's score"
        wrong: dict[str, str] = {}
        whole = ""
        with self._bench(self.task.manifest) as bench:
            baseline = measured(self.task, bench.baseline(SEED))
            for again in ("together", "together again") if tried else ():
                self.report(f"inert: {len(tried)} adversaries {again}")
                found = self._try(bench, tried)
                wrong |= found.by_name
                whole = whole or found.problem or difference(found.outcome, baseline)
            for a in tried if whole else ():
                self.report(f"inert: {a.name} alone")
                found = self._try(bench, [a])
                if problem := found.problem or difference(found.outcome, baseline):
                    wrong.setdefault(a.name, problem)
            if whole and not wrong:
                with bench.trial(self.task.baseline, SEED) as (control, _):
                    changes = difference(control, baseline)
                cause = f"the unchanged code itself differs: {changes}" if changes else whole
                yield Row("all together", "inert", "All of the following at once.", expected, cause, "broken")
        for a in chosen:
            if a not in tried:
                yield Row(a.name, "inert", a.attempts, expected, NO_SANDBOX, "not run")
            else:
                problem = wrong.get(a.name, "")
                yield Row(a.name, "inert", a.attempts, expected, problem, "broken" if problem else "holds")

    def refused(self) -> Iterator[Row]:
        """One by one, within tight limits; the candidate's own code never runs.

        The baseline is kept by now, so it is not measured within these limits.
        """
        chosen = [a for a in self.adversaries if a.kind == "refused"]
        with self._bench(tight(self.task.manifest)) as bench:
            for number, a in enumerate(chosen, 1):
                expected = " or ".join(a.expected)
                if not self._can(a) or (a.phase and not self._runs_candidate(a.phase)):
                    why = NO_SANDBOX if not self._can(a) else f"no phase {a.phase} of this task runs a candidate's code"
                    yield Row(a.name, "refused", a.attempts, expected, why, "not run")
                    continue
                self.report(f"refused: {a.name} ({number} of {len(chosen)})")
                found = self._try(bench, [a])
                problem = found.problem or unlike(a, found.outcome)
                said = f"{found.outcome.status}: {gist(found.outcome.error)}".removesuffix(": ")
                verdict: Verdict = "broken" if problem else "holds"
                yield Row(a.name, "refused", a.attempts, expected, f"{problem}; {said}" if problem else said, verdict)

    def neutralised(self, solutions: dict[str, Expected | None]) -> Iterator[Row]:
        """The task's own trivial solutions."""
        if solutions:
            with self._bench(self.task.manifest) as bench:
                yield from neutralised(self.task, bench, solutions, self.report)

    def _runs_candidate(self, name: str) -> bool:
        phase = self.task.phase(name)
        return phase is not None and phase.code == "candidate"

    def _can(self, adversary: Adversary) -> bool:
        return self.sandbox.level == "bwrap" or not adversary.sandbox_only

    @contextmanager
    def _bench(self, manifest: Manifest) -> Iterator[SandboxedBench]:
        """A bench of the task, perhaps with other limits: its hash, data and kept baseline are the task's."""
        with SandboxedBench(Task(self.task.folder, manifest), self.sandbox, self.report) as bench:
            bench.prepare()
            yield bench

    def _try(self, bench: SandboxedBench, adversaries: Sequence[Adversary]) -> Tried:
        """A trial with these in front of the baseline's code."""
        code = armed(self.task, adversaries, self._setup(bench, adversaries))
        with bench.trial(code, SEED) as (outcome, _):
            left = alive() - self.before
        said = "\n".join(execution.stderr for execution in outcome.executions)
        found: dict[str, list[str]] = {}
        for name, what in re.findall(rf"^{MARK} found (\w+): (.*)$", said, re.MULTILINE):
            found.setdefault(name, []).append(what)
        acted = Counter(re.findall(rf"^{MARK} ran (\w+)$", said, re.MULTILINE))
        its_own = sum(execution.tree == code.sha for execution in outcome.executions)  # not those of a harness
        least = its_own if adversaries[0].kind == "inert" else 1
        problem = f"{len(left)} processes are alive afterwards" if left else ""
        if idle := [a.name for a in adversaries if acted[a.name] < least]:
            why = gist(outcome.error) or "no editable file is imported there"
            problem = problem or f"{', '.join(idle)} did not act in every phase: {why}"
        return Tried(outcome, {name: summary(what) for name, what in found.items()}, problem)

    def _setup(self, bench: SandboxedBench, adversaries: Sequence[Adversary]) -> dict[str, Any]:
        """What the adversaries are told, as ``adversary.py`` reads it."""
        manifest, first = bench.task.manifest, bench.dataset.val[0]
        resources = manifest.phase[0].resources
        alone = adversaries[0].kind == "refused"
        return {
            "phases": {phase.name: patterns(phase) for phase in manifest.phase},
            "outputs": [
                (o.name, np.dtype(o.dtype[0]).str, o.dtype, outputs.shape_of(o, first.dims)) for o in manifest.output
            ],
            "metric": manifest.metric.name,
            "best": manifest.metric.best or 0.0,
            "memory": resources.memory_mb << 20,
            "disk": resources.disk_mb << 20,
            "processes": resources.processes,
            "hidden": {} if alone else self._hidden(bench),
            "adversaries": [(a.name, a.source, a.phase) for a in adversaries],
            "alone": alone,
        }

    def _hidden(self, bench: SandboxedBench) -> dict[str, list[tuple[int, str]]]:
        """Files that no candidate may see, in sets that are of use as a whole: size and hash of each."""
        data = bench.dataset.folder
        found = {
            f"{part} of {split}/{problem.name}": contents(getattr(problem, part))
            for split, parts in (("val", ["answers"]), ("test", ["answers", "inputs"]))
            for problem in problems(data / split)
            for part in parts
        }
        if (data / "refit").exists():
            found["refit"] = contents(data / "refit")
        folder = self.task.folder
        for path in [*folder.glob("*.*"), *folder.glob("solutions/*/*")]:
            found[path.relative_to(folder).as_posix()] = contents(path)
        found["the salt"] = contents(home.home() / "salt")
        for source in self.task.manifest.data.source:
            found[source.member] = contents(data.parent / "sources" / source.sha256)
        known = {sha256(file.read()) for file in self.task.baseline.values()}  # a solution may change one file of many
        return {what: files for what, files in found.items() if files and not {sha for _, sha in files} <= known}


def contents(path: Path) -> list[tuple[int, str]]:
    """Size and hash of every file at or below ``path``."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return [(file.stat().st_size, sha256(file.read_bytes())) for file in files]


def tight(manifest: Manifest) -> Manifest:
    """The same task with limits that are reached soon."""
    phases = []
    for phase in manifest.phase:
        limits = {name: min(getattr(phase.resources, name), most) for name, most in TIGHT.items() if name != "timeout"}
        resources = phase.resources.model_copy(update=limits)
        timeout = min(phase.timeout, TIGHT["timeout"])
        phases.append(phase.model_copy(update={"timeout": timeout, "resources": resources}))
    return manifest.model_copy(update={"phase": phases})


def measured(task: Task, baseline: Outcome) -> Outcome:
    """The baseline, if it has a score to compare with."""
    if not baseline.metrics:
        raise CannotRunHere(f"{task.id}: the unchanged code cannot be measured here\n{error_text(baseline)}")
    return baseline


def alive() -> set[int]:
    """Processes below this one that still run, the scorer's left out."""
    found = set()
    for pid in process.descendants({os.getpid()}):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if command and b"score_server.py" not in command:  # empty: it has ended
            found.add(pid)
    return found


def difference(outcome: Outcome, baseline: Outcome) -> str:
    """How an outcome differs from the baseline's; empty where it does not."""
    if outcome.status != baseline.status:
        return f"{outcome.status} and not {baseline.status}: {gist(outcome.error)}"
    for name, measure in baseline.metrics.items():
        other = outcome.metrics.get(name, Measure([], []))
        if other.values != measure.values:
            return f"{name} is {other.values} and not {measure.values}"
    return ""


def unlike(adversary: Adversary, outcome: Outcome) -> str:
    """What is wrong with the outcome of an adversary that must be refused; empty where nothing is."""
    if outcome.metrics:
        return "it has a score"
    if outcome.status not in adversary.expected:
        return "another status"
    if not re.search(adversary.reason, gist(outcome.error)):
        return "refused for another reason"
    return ""


def gist(error: str) -> str:
    """The line of an error that says most: the last of a traceback (which shows our prelude too), else the first."""
    lines = [line for line in error.splitlines() if line.strip() and not line.startswith(MARK)] or [""]
    return (lines[-1] if "Traceback" in error else lines[0])[:200]


def summary(what: list[str], most: int = 3) -> str:
    """A few of many findings."""
    distinct = list(dict.fromkeys(what))
    more = f" and {len(distinct) - most} more" if len(distinct) > most else ""
    return f"found {', '.join(distinct[:most])}{more}"


def known_solutions(task: Task) -> dict[str, Expected | None]:
    """The folders in ``solutions`` with what each must get; None where ``expected.toml`` does not say.

    Raises:
        InputError: ``expected.toml`` is wrong.
    """
    folder, path = task.folder / "solutions", task.folder / "solutions" / "expected.toml"
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    try:
        expected = TypeAdapter(dict[str, Expected]).validate_python(tomllib.loads(path.read_text()))
    except FileNotFoundError:
        expected = {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc']))}: {of_field(e)}" for e in error.errors()]
        raise InputError("\n".join([f"{path}: {len(lines)} field(s) to correct", *lines])) from None
    if missing := sorted(set(expected) - set(names)):
        raise InputError(f"{path}: {', '.join(missing)}: no such folder beside it")
    return {name: expected.get(name) for name in names}


def neutralised(
    task: Task, bench: SandboxedBench | SimulatedBench, solutions: dict[str, Expected | None], report: Report
) -> Iterable[Row]:
    """Every solution of the task, measured."""
    for name, expected in solutions.items():
        folder = task.folder / "solutions" / name
        code = Code.read(folder)
        if strange := [path for path in code if not task.is_editable(path)]:
            raise InputError(f"{folder / strange[0]}: not an editable file of {task.id}")
        said = summary_of(folder)
        if expected is None:
            why = "solutions/expected.toml does not say what it must get"
            yield Row(name, "neutralised", said, "-", why, "not run")
            continue
        report(f"neutralised: {name}")
        with bench.trial(task.baseline.put({path: file.read() for path, file in code.items()}), SEED) as (outcome, _):
            measure = outcome.metrics.get(task.metric.name)
        value = None if measure is None else measure.mean
        right = outcome.status == expected.status and (
            expected.val is None or (value is not None and abs(value - expected.val) <= expected.tolerance)
        )
        wanted = expected.status if expected.val is None else f"{expected.status}, {expected.val:g}"
        found = outcome.status if value is None else f"{outcome.status}, {value:.6g}"
        found += f": {gist(outcome.error)}" if not right and outcome.error else ""
        yield Row(name, "neutralised", said, wanted, found, "holds" if right else "broken")


def summary_of(folder: Path) -> str:
    """What a solution says of itself: the first docstring of its Python files."""
    for path in sorted(folder.rglob("*.py")):
        if said := ast.get_docstring(ast.parse(path.read_bytes())):
            return said.splitlines()[0]
    return ""
