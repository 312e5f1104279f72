"""Live progress of a run: a line for each trial, and a bar where there is a terminal."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType

from labcoat.history import History
from labcoat.journal import Event
from labcoat.plan import Plan
from labcoat.record import RECORD


class Progress:
    """An observer of the journal. Use as a context, pass as ``observers=[progress]``."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        """What was done in earlier sittings is read from ``folder``."""
        self.plan = plan
        self.metric = plan.task.metric
        self.done = 0
        self.best: float | None = None
        self.best_step = 0
        if (folder / RECORD).exists():
            history = History(folder)
            self.done = len(history.trials)
            if history.best is not None:
                self.best, self.best_step = history.best.value(self.metric.name), history.best.number
        self._earlier = self.done
        self._begin: float | None = None  # of the search: preparing takes its own time
        self._bar = _bar(plan.steps, self.done) if sys.stderr.isatty() else None

    def report(self, text: str) -> None:
        """Say that something takes time."""
        self._line(f"  {text}")

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if self._begin is None and event["kind"] in ("ask", "edit", "trial"):
            self._begin = time.monotonic() - event.get("seconds", 0.0)
        if event["kind"] == "baseline" and event["state"] == "finished":
            self._value(event, "baseline")
            if "warning" in event["result"]:
                self._line(f"warning: {event['result']['warning']}")
        elif event["kind"] == "trial" and event["state"] == "finished":
            self.done += 1
            self._value(event, f"step {self.done}/{self.plan.steps}")
        elif event["kind"] == "search" and event["state"] == "finished":
            self._line("search finished")
        elif event["kind"] in ("measure", "test") and event["state"] == "finished":
            self._line(f"{event['key']:>14}  {event['result']['status']:<13} seed {event['request']['seed']}")

    def _value(self, event: Event, what: str) -> None:
        result = event["result"]
        values = result["metrics"].get(self.metric.name, {}).get("values")
        value = sum(values) / len(values) if values else None
        if (
            value is not None
            and result["status"] == "ok"
            and (self.best is None or self.metric.better(value, self.best))
        ):
            self.best, self.best_step = value, self.done
        shown = "" if value is None else f"{self.metric.name}={value:.6g}"
        best = "" if self.best is None else f"best {self.best:.6g} (step {self.best_step})"
        room = len(self.metric.name) + 11
        took = f"{event['seconds']:6.2f} s  {self._eta()}"
        self._line(f"{what:>14}  {result['status']:<13} {shown:<{room}} {best:<24} {took}")
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.done)

    def _eta(self) -> str:
        fresh = self.done - self._earlier
        left = self.plan.steps - self.done
        if not fresh or not left or self._begin is None:
            return ""
        seconds = round((time.monotonic() - self._begin) / fresh * left)
        return f"ETA {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text.rstrip(), file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar(steps: int, done: int):  # type: ignore[no-untyped-def]
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
    bar.add_task("trials", total=steps, completed=done)
    return bar
