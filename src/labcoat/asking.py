"""Asking a model as an effect of a run: what is recorded of a call, what it takes, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from labcoat.bench.outcome import clip
from labcoat.budget import SPENT
from labcoat.journal import Journal
from labcoat.models import ROOM, Call, ModelAway, ModelRefuses, Models, Prompt, Reply, Usage
from labcoat.models.prices import Prices

ANSWER_CAP = 8000
"""Characters of one answer that a strategy is given (one rule for all strategies): four times the longest answer that
ours ask for, 300 words. What it is given goes into memories and instructions, which a model has to have room for."""


def clipped(answer: Any) -> Any:
    """An answer, or the plain data in it, with every text within the cap."""
    match answer:
        case str():
            return clip(answer, ANSWER_CAP)
        case list():
            return [clipped(item) for item in answer]
        case dict():
            return {name: clipped(item) for name, item in answer.items()}
    return answer


@dataclass
class Asking:
    """The model calls of one run."""

    models: Models
    journal: Journal
    prices: Prices
    rooms: Mapping[str, int]
    """How many tokens a prompt of each purpose may have."""
    shared: Mapping[str, Mapping[str, int]]
    """The calls that a fork took over, with the rooms that held for them."""
    seed_for: Callable[[str], int]
    """The seed of the call of a key."""
    calls: int = 0

    def packed(self, key: str, purpose: str, prompt: Prompt) -> Prompt:
        """The prompt within the room that holds for this call."""
        return prompt.packed(self.shared.get(key, self.rooms).get(purpose, ROOM))

    def request(self, key: str, purpose: str, prompt: Prompt) -> dict[str, Any]:
        """What identifies a call in the journal."""
        model = self.models.of(purpose).name
        if key in self.shared and (recorded := self.journal.finished(key)):
            model = recorded["request"].get("model", model)  # a fork may go on with another one
        return {"purpose": purpose, "model": model, "parts": prompt.fingerprint()}

    def coming(self, purpose: str, prompt: Prompt) -> dict[str, float | None]:
        """What a call is known to take before its reply: its prompt, none of it cached."""
        tokens = max(1, prompt.tokens)
        return {"calls": 1, "tokens": tokens, "usd": self.prices.cost(purpose, Usage(input_uncached=tokens))}

    def live(self, key: str, purpose: str, prompt: Prompt, schema: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call the model; its reply as plain data for the journal, its text a content hash.

        Raises:
            ModelAway: the endpoint is away; what was used in vain is noted.
            ModelRefuses: no call can succeed.
        """
        for part in prompt.parts:
            self.journal.blobs.put(part.text)
        call = Call(purpose, key, self.calls, self.seed_for(key), schema, partial(self._hear, key))
        try:
            return self._pack(purpose, self.models.of(purpose).chat(prompt, call))
        except (ModelAway, ModelRefuses) as stopped:
            if stopped.spent is not None:  # the call is made anew when the run is resumed, and was paid nevertheless
                self.journal.note(SPENT, {"purpose": purpose, "reply": self._pack(purpose, stopped.spent)}, key=key)
            raise

    def reply(self, packed: dict[str, Any]) -> Reply:
        """The reply that a call gave, now or when it was recorded; each call counts once."""
        self.calls += 1
        return Reply.from_json(packed | {"text": self.journal.blobs.text(packed["text"])})

    def told(self, packed: dict[str, Any]) -> Reply:
        """The same as a strategy is told of it; the journal has all of it."""
        reply = self.reply(packed)
        return replace(reply, text=clipped(reply.text), parsed=clipped(reply.parsed))

    def _hear(self, key: str, says: str) -> None:
        """What a model tells while it is asked: it waits, or goes on without something."""
        self.journal.note("endpoint", {"says": says}, key=key)

    def _pack(self, purpose: str, reply: Reply) -> dict[str, Any]:
        cost = self.prices.cost(purpose, reply.usage) if reply.cost is None else reply.cost
        return reply.to_json() | {"text": self.journal.blobs.put(reply.text), "cost": cost}
