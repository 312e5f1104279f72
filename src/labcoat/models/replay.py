"""A model that answers what another run's model answered: anyone can play a published run again."""

from __future__ import annotations

from pathlib import Path

from labcoat.journal import Journal
from labcoat.models.chat import ROOM, Call, ModelRefuses, Prompt, Reply
from labcoat.tree import sha256

EVENTS = "events.jsonl"


class ReplayModel:
    """Answers from the journal of a run, by key; a prompt that differs from the recorded one is refused."""

    constants_only = False

    def __init__(self, run: str) -> None:
        """``run`` is the folder of a run, or one with a single run below it."""
        folder = find(run)
        # What was recorded, and not where it lies, is part of a run's identity.
        self.name = f"replay:{sha256((folder / EVENTS).read_bytes())[:12]}"
        self._journal = Journal(folder)

    def room(self, purpose: str) -> int:
        """What the recorded run's prompts had."""
        begun = self._journal.finished("begin")
        rooms: dict[str, int] = begun["result"].get("rooms", {}) if begun else {}
        return rooms.get(purpose, ROOM)

    def chat(self, prompt: Prompt, call: Call) -> Reply:
        """The recorded reply. It was paid for by the recorded run, so it costs nothing."""
        event = self._journal.finished(call.key)
        if event is None or "reply" not in event["result"]:
            raise ModelRefuses(f"{self.name}: no reply is recorded for {call.purpose} {call.key}")
        asked = prompt.fingerprint()
        if asked != event["request"]["parts"]:
            changed = [a[0] for a, b in zip(asked, event["request"]["parts"], strict=False) if a != b]
            raise ModelRefuses(
                f"{self.name}: {call.purpose} {call.key} asks something else than the recorded run did "
                f"(parts that differ: {', '.join(changed) or 'their number'}); "
                "use the task, strategy, seed and labcoat version of its run.json"
            )
        reply = event["result"]["reply"]
        return Reply.from_json(reply | {"text": self._journal.blobs.text(reply["text"]), "cost": 0.0, "waited": 0.0})


def find(run: str) -> Path:
    """The run in the folder ``run``, or the only one below it.

    Raises:
        ModelRefuses: there is none, or several, which are named.
    """
    path = Path(run)
    if (path / EVENTS).is_file():
        return path
    found = sorted(p.parent for p in path.glob(f"**/{EVENTS}")) if path.is_dir() else []
    if len(found) == 1:
        return found[0]
    if not found:
        raise ModelRefuses(f"--model replay:{run}: no run there (no {EVENTS})")
    listed = "".join(f"\n  {p}" for p in found[:20]) + (f"\n  ... and {len(found) - 20} more" if found[20:] else "")
    raise ModelRefuses(f"--model replay:{run}: {len(found)} runs there, name one of them:{listed}")
