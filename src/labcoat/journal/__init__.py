"""The journal: every effect's request and result in one append-only log. Resume is replay.

``events.jsonl`` holds one object a line:

======== ==================================================================================================
v        version of this format
epoch    which writer of the run wrote it; lines of a lower epoch than one before them are ignored
at       when, UTC
key      scope and ordinal (``/17``, second child of batch 18: ``/18.1/2``), or a name (``baseline``, ``test``)
kind     ``ask``, ``edit``, ``trial``, ...; readers keep kinds that they do not know
state    ``started`` | ``finished`` | ``interrupted`` | ``note``
request  what was asked for; ``hash`` is its SHA-256 together with the kind
result   what came back (``finished`` only)
seconds  how long it took, without waiting for an endpoint to be free
blobs    where the contents lie that are named by this event for the first time
======== ==================================================================================================
"""

from __future__ import annotations

import difflib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic_core import from_json  # half the time of the standard library's

from labcoat.errors import Diverged, InputError
from labcoat.journal.blobs import Blobs, write_all
from labcoat.journal.lock import Lock
from labcoat.tree import sha256

SCHEMA = 1
RERUNS = 3
"""How often an effect that was begun and never finished runs again, before it is recorded as lost."""

Json = Any
Event = dict[str, Any]
Observer = Callable[[Event], None]


def canonical(value: Json) -> str:
    """The one JSON text of a value, for hashing."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def request_hash(kind: str, request: Json) -> str:
    """Identity of a request."""
    return sha256(canonical([kind, request]).encode())


def key_order(key: str) -> tuple[Any, ...]:
    """Sort key for the order of the numbering: ``/2`` before ``/10``, ``/10.0/1`` before ``/10.1/0``."""
    return tuple(tuple(int(n) if n.isdigit() else n for n in part.split(".")) for part in key.split("/") if part)


class Unrecorded(Diverged):
    """A journal that is only being read has no result for a request."""


class Differs(Diverged):
    """A request is another one than was recorded under its key."""

    def __init__(self, path: Path, key: str, changes: str) -> None:
        """``changes`` is a diff from what was recorded to what is asked for now."""
        super().__init__(
            f"{path}: {key} asks for something else than what was recorded; nothing was changed.\n"
            "Use the labcoat version and the strategy of run.json to go on with this run, or begin another one.\n"
            + changes
        )
        self.key = key
        self.changes = changes


class Journal:
    """The log of one run, read whole at opening; ``perform`` answers from it or goes live.

    Open with ``write=True`` to go on with a run (takes the lock, raises the epoch), else to read it.
    """

    def __init__(self, folder: Path, *, write: bool = False, observers: list[Observer] | None = None) -> None:
        """Read the events below ``folder``.

        Raises:
            RunBusy: ``write`` and another process works on the run.
            InputError: a line in the middle is not an event, or a later version of labcoat wrote it.
        """
        self.folder = folder
        self.path = folder / "events.jsonl"
        self.observers = list(observers or [])
        self._lock = Lock(folder / "lock") if write else None
        try:
            self._descriptor: int | None = None
            if self._lock:
                cut_unsound(self.path, folder / "blobs")
                self._lock.at_least(max((e["epoch"] for e in read_events(self.path)), default=0))
                self._descriptor = _open_for_append(self.path)
                self._write({"key": "", "kind": "opened", "state": "note", "result": None})
            # Read after our own first line, which makes everything that an overtaken writer still adds void.
            self.events = read_events(self.path)
            self.blobs = Blobs(folder / "blobs", _index(self.events))
            self._finished = {e["key"]: e for e in self.events if e["state"] == "finished"}
            self._begun = _begun(self.events)
            self._last = _last(self._finished)
            self.performed: set[str] = set()
        except BaseException:
            self.close()
            raise

    def finished(self, key: str) -> Event | None:
        """The event that holds the result of that key, if it was performed."""
        return self._finished.get(key)

    def perform(
        self,
        key: str,
        kind: str,
        request: Json,
        live: Callable[[], Json],
        *,
        lost: Callable[[], Json] | None = None,
    ) -> Json:
        """The recorded result of ``key`` if there is one, else the result of ``live()``, recorded.

        Args:
            key: scope and ordinal.
            kind: kind of effect.
            request: plain data that says all that the result may depend on.
            live: performs the effect and returns plain data.
            lost: for effects that can take the process down: they are announced by ``started``, and after
                :data:`RERUNS` reruns the result of ``lost()`` is recorded instead of a further try.

        Raises:
            Diverged: the recorded request is another one, or the journal is only being read.
        """
        wanted = request_hash(kind, request)
        self.performed.add(key)
        done = self._finished.get(key)
        if done is None:
            return self._go_live(key, kind, request, wanted, live, lost)
        if done["hash"] != wanted:
            raise Differs(self.path, key, difference(kind, request, done))
        return done["result"]

    def note(self, kind: str, result: Json, *, key: str = "") -> None:
        """Record a fact that is no effect (a limit reached, limits changed)."""
        self._append({"key": key, "kind": kind, "state": "note", "result": result})

    def _go_live(
        self, key: str, kind: str, request: Json, wanted: str, live: Callable[[], Json], lost: Callable[[], Json] | None
    ) -> Json:
        if self._descriptor is None:
            raise Unrecorded(
                f"{self.path}: {kind} {key} is not recorded; the run ended before it, nothing further to replay"
            )
        scope, number = split(key)
        if number is not None and number <= self._last.get(scope, -1):
            raise Diverged(f"{self.path}: {kind} {key} is missing among what was recorded after it; restore the file")
        begin = time.monotonic()
        if lost is not None:
            if self._begun[key] > RERUNS:
                result = lost()
            else:
                self._begun[key] += 1
                try:
                    self._append({"key": key, "kind": kind, "state": "started", "hash": wanted})
                    result = live()
                except BaseException:
                    # Ours ended it (Ctrl-C, a full disk, an endpoint away): not the candidate's doing.
                    self._append({"key": key, "kind": kind, "state": "interrupted", "hash": wanted}, best_effort=True)
                    raise
        else:
            result = live()
        reply = result.get("reply") if isinstance(result, dict) else None
        seconds = time.monotonic() - begin - (reply.get("waited", 0.0) if reply else 0.0)
        # What costs money or time is on the disk before anything builds on it; an unknown price may be a high one.
        paid = reply is not None and reply["cost"] != 0
        event = self._append(
            {
                "key": key, "kind": kind, "state": "finished", "hash": wanted,
                "request": request, "result": result, "seconds": round(seconds, 6),
            },
            durable=paid or seconds > 1,
        )  # fmt: skip
        return event["result"]

    def _append(self, event: Event, *, durable: bool = False, best_effort: bool = False) -> Event:
        new = self.blobs.take_new()
        if new:
            event["blobs"] = new
        if durable:
            self.blobs.sync()
        try:
            event = self._write(event)
        except Exception:
            if not best_effort:
                raise
            return event
        if durable:
            assert self._descriptor is not None
            os.fsync(self._descriptor)
        self.events.append(event)
        if event["state"] == "finished":
            self._finished[event["key"]] = event
        for observer in list(self.observers):
            try:
                observer(event)
            except Exception as error:  # an observer must never take a run down
                self.observers.remove(observer)
                name = getattr(observer, "__qualname__", repr(observer))
                self.note("observer_failed", {"observer": name, "error": f"{type(error).__name__}: {error}"})
        return event

    def _write(self, event: Event) -> Event:
        """Append one line and return the event as it will be read: what goes on live is what a resume will see."""
        assert self._descriptor is not None and self._lock is not None, "the journal is open for reading only"
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        head: Event = {"v": SCHEMA, "epoch": self._lock.epoch, "at": now}
        line = json.dumps(head | event, ensure_ascii=False).encode(errors="replace")
        write_all(self._descriptor, line + b"\n", self.path)
        read: Event = from_json(line)
        return read

    def close(self) -> None:
        """Close the files and give the run free."""
        if hasattr(self, "blobs"):
            self.blobs.close()
        if getattr(self, "_descriptor", None) is not None:
            os.close(self._descriptor)  # type: ignore[arg-type]
            self._descriptor = None
        if self._lock:
            self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def difference(kind: str, request: Json, done: Event) -> str:
    """A diff from the recorded request to the one that is made now."""

    def lines(kind: str, request: Json) -> list[str]:
        return [f"kind: {kind}", *json.dumps(request, indent=1, sort_keys=True).splitlines()]

    changes = difflib.unified_diff(
        lines(done["kind"], done["request"]), lines(kind, request), "recorded", "now", n=1, lineterm=""
    )
    return "\n".join(list(changes)[:40])


def read_events(path: Path) -> list[Event]:
    """All events of a file, in order; a torn last line is passed over, so are lines of an epoch that was overtaken.

    Raises:
        InputError: naming the line that is not an event, or that a later version wrote.
    """
    if not path.exists():
        return []
    *lines, _torn = path.read_bytes().split(b"\n")
    events: list[Event] = []
    epoch = 0
    for number, line in enumerate(lines, 1):
        try:
            event: Event = from_json(line)
            version, written_in = int(event["v"]), int(event["epoch"])
            if version <= SCHEMA:
                _ = event["key"], event["kind"], event["state"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}:{number}: not an event; the file was changed, restore it from a copy") from None
        if version > SCHEMA:
            raise InputError(f"{path}:{number}: v: written by a later labcoat (format {version}); update labcoat")
        if written_in >= epoch:
            epoch = written_in
            events.append(event)
    return events


def cut_unsound(path: Path, blobs: Path) -> None:
    """Cut off events at the end whose contents did not reach the disk before a power cut; they run again."""
    size = blobs.stat().st_size if blobs.exists() else 0
    offset = 0
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
        try:
            places = from_json(line).get("blobs", {}).values()
        except (ValueError, AttributeError):
            return  # `read_events` says what is wrong with it
        if any(begin + length > size for begin, length in places):
            os.truncate(path, offset)
            return
        offset += len(line)


def split(key: str) -> tuple[str, int | None]:
    """Scope and number of a key; no number for a named one."""
    scope, _, last = key.rpartition("/")
    return (scope, int(last)) if key.startswith("/") and last.isdecimal() else (key, None)


def _last(finished: Iterable[str]) -> dict[str, int]:
    """The highest recorded number of each scope."""
    last: dict[str, int] = {}
    for key in finished:
        scope, number = split(key)
        if number is not None:
            last[scope] = max(number, last.get(scope, -1))
    return last


def _index(events: list[Event]) -> dict[str, tuple[int, int]]:
    return {sha: (place[0], place[1]) for event in events for sha, place in event.get("blobs", {}).items()}


def _begun(events: list[Event]) -> Counter[str]:
    """How often each key was begun and neither finished nor ended by us."""
    begun: Counter[str] = Counter()
    for event in events:
        begun[event["key"]] += {"started": 1, "interrupted": -1}.get(event["state"], 0)
    return begun


def _open_for_append(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    size = os.fstat(descriptor).st_size
    keep = os.pread(descriptor, size, 0).rfind(b"\n") + 1 if size else 0
    if keep < size:  # a torn last line: no event, and nothing may be glued to it
        os.ftruncate(descriptor, keep)
    return descriptor
