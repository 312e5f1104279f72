"""Live progress of a run: a line for each trial, and a bar where there is a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from labcoat.cli.output import printable, short
from labcoat.history import History
from labcoat.journal import Event
from labcoat.plan import Plan
from labcoat.record import RECORD
from labcoat.report.counting import Count

BETWEEN_LINES = 10.0
"""Seconds between two lines of a count."""


class Progress:
    """An observer of the journal. Use as a context, pass as ``observers=[progress]``."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        """What was done before is read from ``folder``, or from the run that a new fork takes it from."""
        self.plan = plan
        self.metric = plan.task.metric
        self.done = 0
        self.best: float | None = None
        self.best_step = 0
        self.begun = (folder / RECORD).exists()
        source, last = folder, plan.steps
        if plan.origin and not self.begun:
            source, last = plan.origin.folder, plan.origin.step
        if (source / RECORD).exists():
            history = History(source)
            steps = history.steps[: last + 1]
            self.done = max(0, len(steps) - 1)
            if best := history.best_of(steps):
                self.best, self.best_step = best.value(self.metric.name), best.number
        self._earlier = self.done
        self._begin: float | None = None  # of the search: preparing takes its own time
        self._named = False  # the metric, once above all lines
        self._name_width = max(len("test/baseline"), len(f"step {plan.steps}/{plan.steps}"))
        self._bar = _bar("trials", plan.steps, self.done) if sys.stderr.isatty() else None

    @property
    def reached(self) -> str:
        """How far the search is."""
        return f"after step {self.done}" if self.done else "before the first step"

    def report(self, text: str) -> None:
        """Say that something takes time."""
        self._line(f"  {text}")

    def __call__(self, event: Event) -> None:
        """Show an event."""
        kind = event["kind"]
        if self._begin is None and kind in ("ask", "edit", "trial"):
            self._begin = time.monotonic() - event.get("seconds", 0.0)
        if kind == "endpoint":
            self.report(event["result"]["says"])
        if event["state"] != "finished":
            return
        if kind == "baseline":
            self._step(event, "baseline")
            if "warning" in event["result"]:
                self._line(f"warning: {event['result']['warning']}")
        elif kind == "trial":
            self.done += 1
            self._step(event, f"step {self.done}/{self.plan.steps}")
        elif kind == "search":
            self._line("search finished")
        elif kind in ("measure", "test"):
            self._value(event, _name(event["key"]), f"seed {event['request']['seed']}")

    def _step(self, event: Event, name: str) -> None:
        value = self._mean(event)
        if (
            value is not None
            and event["result"]["status"] == "ok"
            and (self.best is None or self.metric.better(value, self.best))
        ):
            self.best, self.best_step = value, self.done
        best = "" if self.best is None else f"best {short(self.best)} (step {self.best_step})"
        self._value(event, name, f"{best:<21}  {event['seconds']:5.2f} s  {self._eta()}")
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.done)

    def _value(self, event: Event, name: str, more: str) -> None:
        if not self._named:
            self._line(self.plan.task.manifest.headline)
            self._named = True
        value, status = self._mean(event), event["result"]["status"]
        shown = "" if value is None else short(value)
        self._line(f"{name:>{self._name_width}}  {status}{shown:>{20 - len(status)}}  {more}")

    def _mean(self, event: Event) -> float | None:
        values = event["result"]["metrics"].get(self.metric.name, {}).get("values")
        return sum(values) / len(values) if values else None

    def _eta(self) -> str:
        fresh = self.done - self._earlier
        left = self.plan.steps - self.done
        if not fresh or not left or self._begin is None:
            return ""
        minutes, seconds = divmod(round((time.monotonic() - self._begin) / fresh * left), 60)
        return f"ETA {minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"ETA {minutes}:{seconds:02}"

    def _line(self, text: str) -> None:
        text = printable(text).rstrip()
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, emoji=False)
        else:
            with contextlib.suppress(BrokenPipeError):  # `labcoat run ... 2>&1 | head`: nobody listens; the run goes on
                print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextlib.contextmanager
def counting(what: str, total: int) -> Iterator[Count]:
    """Progress of many short things: a bar where there is a terminal, else a line now and then. Call it for each."""
    bar = _bar(what, total, 0) if sys.stderr.isatty() else None
    finished, said = 0, time.monotonic()

    def count(done: int = 1, *, more: int = 0) -> None:
        nonlocal finished, total, said
        finished += done
        total += more
        if bar is not None:
            bar.update(bar.task_ids[0], completed=finished, total=total)
        elif time.monotonic() - said > BETWEEN_LINES:
            said = time.monotonic()
            with contextlib.suppress(BrokenPipeError):
                print(f"{finished} of {total} {what}", file=sys.stderr, flush=True)

    with bar or contextlib.nullcontext():
        yield count


def _name(key: str) -> str:
    """What is measured after the search: ``confirm/0/2`` is the third seed of the best candidate."""
    kind, _, rest = key.partition("/")
    if kind == "confirm":
        rank = rest.partition("/")[0]
        return "confirm base" if rank == "baseline" else f"confirm #{int(rank) + 1}"
    return f"retest #{int(key.rpartition('/')[2]) + 1}" if key.startswith("test/again/") else key


def _bar(what: str, total: int, done: int):  # type: ignore[no-untyped-def]
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn(what), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
    bar.add_task(what, total=total, completed=done)
    return bar
