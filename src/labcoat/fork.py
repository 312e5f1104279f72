"""Fork: a run that takes over the first steps of another one and goes live from there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from labcoat.errors import Diverged
from labcoat.journal import SCHEMA, Event, Journal, canonical
from labcoat.record import sync_folder
from labcoat.tree import sha256

Rooms = Mapping[str, int]
FORKED = "forked"
"""Kind of the note that ends the shared part."""


@dataclass(frozen=True)
class Origin:
    """The run that another one shares its first steps with: what it shares, and what it is."""

    folder: Path
    step: int
    record: dict[str, Any]
    """Its ``run.json``."""
    events: list[Event]

    @classmethod
    def of(cls, journal: Journal, record: dict[str, Any], step: int, key: str) -> Origin:
        """A run up to and including the trial ``key``, which is its step number ``step``.

        Only what came back is shared. Where contents lie goes with the next event that is kept.
        """
        shared: list[Event] = []
        places: dict[str, Any] = {}
        for event in journal.events:
            places |= event.get("blobs", {})
            if event["kind"] == FORKED or journal.finished(event["key"]) is event:
                shared.append(event | {"blobs": places} if places else event)
                places = {}
                if event["key"] == key:
                    break
        return cls(journal.folder, step, record, shared)

    @property
    def name(self) -> str:
        """What the command line calls it."""
        return f"--fork {self.folder}:{self.step}"

    @property
    def spec(self) -> dict[str, Any]:
        """Its part of the fork's identity: what was recorded, and not where it lies."""
        lines = "\n".join(json.dumps(event, sort_keys=True) for event in self.events)
        run = sha256(canonical(self.record["spec"]).encode())
        return {"run": run, "step": self.step, "events": sha256(lines.encode())}

    def write(self, folder: Path, rooms: Rooms) -> None:
        """Lay the shared part down in ``folder``, on the disk itself; from there on prompts have ``rooms``.

        Raises:
            Diverged: the origin's contents are incomplete.
        """
        places = [place for event in self.events for place in event.get("blobs", {}).values()]
        end = max((begin + length for begin, length in places), default=0)
        source, blobs = self.folder / "blobs", folder / "blobs"
        with source.open("rb") as contents, blobs.open("wb") as copy:
            left = end
            while left and (piece := contents.read(min(left, 1 << 20))):
                copy.write(piece)
                left -= len(piece)
            copy.flush()
            os.fsync(copy.fileno())
        if left:
            raise Diverged(f"{source}: ends before what its events name; the run folder is incomplete, copy it again")
        note = {
            "v": SCHEMA, "epoch": self.events[-1]["epoch"], "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "key": "", "kind": FORKED, "state": "note",
            "result": self.spec | {"folder": str(self.folder), "rooms": dict(rooms)},
        }  # fmt: skip
        with (folder / "events.jsonl").open("w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(event, ensure_ascii=False) + "\n" for event in [*self.events, note])
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(folder)


def shared(journal: Journal) -> tuple[dict[str, Rooms], Rooms]:
    """What a fork took over, by key with the rooms that held for it, and the rooms that hold since.

    Nothing is shared in a run that is no fork, and its rooms are those that it began with.
    """
    taken: dict[str, Rooms] = {}
    rooms: Rooms = {}
    since: list[str] = []
    for event in journal.events:
        if event["kind"] == FORKED:
            taken |= dict.fromkeys(since, rooms)
            rooms, since = event["result"]["rooms"], []
        elif journal.finished(event["key"]) is event:
            since.append(event["key"])
            if event["kind"] == "begin":
                rooms = event["result"].get("rooms", {})
    return taken, rooms
