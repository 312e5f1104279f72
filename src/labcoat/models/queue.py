"""The line before an endpoint: at most so many calls at once of all labcoat processes of one machine, first come first.

A process is in the line by a ticket, a file that it holds locked, and at the endpoint by a slot, a locked file too: the
kernel frees both when it dies. Who waits sleeps in the kernel until the ticket before its own is gone; only the first
of the line looks for a free slot.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from labcoat.models import AtEndpoint, Call, Model, Models, Prompt, Reply
from labcoat.tree import sha256

LOOK = 0.05
"""Seconds between two looks of the first of the line."""
SAY_AGAIN = 60.0
"""Seconds between two lines about waiting."""


class Queue:
    """The line and the slots of one endpoint, in a folder that all its users share.

    Each user brings its own limit; where they differ, there are never more calls than the highest one.
    """

    def __init__(self, folder: Path, slots: int) -> None:
        """``slots`` calls at once."""
        self.folder = folder
        self.slots = slots

    @contextmanager
    def slot(self, waiting: Callable[[int], None]) -> Iterator[None]:
        """Hold a slot, after all who came before; ``waiting`` is told how many those are as long as there are some."""
        handle = self._free() if not self._tickets() else None
        if handle is None:
            handle = self._in_line(waiting)
        try:
            yield
        finally:
            os.close(handle)

    def _in_line(self, waiting: Callable[[int], None]) -> int:
        number, ticket = self._draw()
        try:
            while before := [other for other in self._tickets() if other < number]:
                self._outwait(max(before), lambda: waiting(len(before)))
            while (handle := self._free()) is None:
                waiting(0)
                time.sleep(LOOK)
            return handle
        finally:
            self._path(number).unlink(missing_ok=True)
            os.close(ticket)

    def _draw(self) -> tuple[int, int]:
        """The next number, and the descriptor that holds its ticket. Nobody else draws meanwhile."""
        gate = opened(self.folder / "gate")
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            number = max(self._tickets(), default=0) + 1
            ticket = opened(self._path(number))
            fcntl.flock(ticket, fcntl.LOCK_EX)
            return number, ticket
        finally:
            os.close(gate)

    def _outwait(self, number: int, waiting: Callable[[], None]) -> None:
        """Sleep until the holder of a ticket before ours has left the line or died."""
        try:
            ticket = os.open(self._path(number), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            try:
                fcntl.flock(ticket, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(ticket, fcntl.LOCK_EX)
            # Numbers below ours are not drawn again while we are in the line: this is still the file of the dead.
            self._path(number).unlink(missing_ok=True)
        finally:
            os.close(ticket)

    def _free(self) -> int | None:
        """The descriptor that holds a slot, None if all are taken."""
        for number in range(self.slots):
            handle = opened(self.folder / f"slot-{number}")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return handle
            except BlockingIOError:
                os.close(handle)
        return None

    def _tickets(self) -> list[int]:
        return [int(name[7:]) for name in os.listdir(self.folder) if name.startswith("ticket-")]

    def _path(self, number: int) -> Path:
        return self.folder / f"ticket-{number}"


class Queued:
    """A model whose calls wait in the line of its endpoint."""

    def __init__(self, model: Model, queue: Queue, place: str) -> None:
        """``place`` is the endpoint's name, which is told to who waits."""
        self.name = model.name
        self.constants_only = model.constants_only
        self.room = model.room
        self._model, self._queue, self._place = model, queue, place
        self._said = -SAY_AGAIN

    def chat(self, prompt: Prompt, call: Call) -> Reply:
        """The model's answer, and how long it had to wait before it was asked."""

        def waiting(before: int) -> None:
            if time.monotonic() - self._said >= SAY_AGAIN:
                self._said = time.monotonic()
                calls = "1 call" if self._queue.slots == 1 else f"{self._queue.slots} calls"
                call.tell(f"waiting for {self._place}, which takes {calls} at once; {before} before this one")

        begin = time.monotonic()
        with self._queue.slot(waiting):
            waited = round(time.monotonic() - begin, 3)
            reply = self._model.chat(prompt, call)
            return replace(reply, waited=reply.waited + waited)


def queued(models: Models, folder: Callable[[], Path]) -> Models:
    """The same models, each of a limited endpoint behind the line of that endpoint, which lies below ``folder``."""

    def behind(model: Model) -> Model:
        if not isinstance(model, AtEndpoint) or model.at_once is None:
            return model
        line = folder() / f"{re.sub(r'[^a-z0-9]+', '-', model.place.lower())}-{sha256(model.url.encode())[:8]}"
        line.mkdir(exist_ok=True)
        return Queued(model, Queue(line, model.at_once), model.place)

    return Models({purpose: behind(model) for purpose, model in models.by_purpose.items()})


def opened(path: Path) -> int:
    """A descriptor of a file to lock, made where it is missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
