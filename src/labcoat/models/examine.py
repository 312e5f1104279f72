"""Examine a model: one tiny call, and what it shows about the endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from labcoat.errors import LabcoatError
from labcoat.models import Models
from labcoat.models.chat import ROOM, Call, Model, Part, Prompt, Reply
from labcoat.models.endpoint import EndpointModel
from labcoat.models.prices import Prices

PURPOSE = "examine"
SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
QUESTION = Prompt.of([Part("instruction", "What is 2 + 3? Answer with an object that has the field `sum`.")])


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``unknown`` is no failure: a run goes on without it."""

    what: str
    state: Literal["ok", "unknown", "failed"]
    says: str


def works(findings: list[Finding]) -> bool:
    """Whether a run can go on with the model."""
    return all(finding.state != "failed" for finding in findings)


def examine(model: Model) -> list[Finding]:
    """Ask ``model`` one tiny question with a schema, and say what works: answer, schema, usage, price, window."""
    told: list[str] = []
    if isinstance(model, EndpointModel):
        model = model.in_haste()
    try:
        room = model.room(PURPOSE)
        reply = model.chat(QUESTION, Call(PURPOSE, "/0", 0, 0, SCHEMA, told.append))
    except LabcoatError as error:
        return [Finding("answer", "failed", str(error))]
    return [_answer(reply), _schema(model, reply), _usage(reply), _price(model, reply), _window(room)] + [
        Finding("note", "unknown", text) for text in told
    ]


def _answer(reply: Reply) -> Finding:
    by = f" from {reply.served}" if reply.served else ""
    says = f"in {reply.latency:.2f} s{by}, {reply.requests} request(s)"
    if reply.finish in ("refusal", "context_too_long", "length"):
        return Finding("answer", "failed", f"{says}, but it ended with {reply.finish}: {reply.text[:200]}")
    return Finding("answer", "ok", says)


def _schema(model: Model, reply: Reply) -> Finding:
    if reply.parsed is None:
        return Finding("schema", "failed", f"never met ({reply.finish}); strategies that ask for one get no answer")
    if isinstance(model, EndpointModel) and not model.takes_schemas:
        return Finding("schema", "ok", "met; the endpoint takes none, the prompt says it")
    return Finding("schema", "ok", "met")


def _usage(reply: Reply) -> Finding:
    if reply.usage_estimated:
        return Finding("usage", "unknown", "not reported, or not credible: estimated from bytes, and marked")
    parts = ", ".join(f"{name} {count}" for name, count in vars(reply.usage).items() if count)
    return Finding("usage", "ok", parts or "none")


def _price(model: Model, reply: Reply) -> Finding:
    if reply.cost is not None:
        return Finding("price", "ok", f"{reply.cost:g} USD for this call, as the endpoint says")
    price = Prices.look_up(Models({"*": model}), {}).of(PURPOSE)
    cost = price.cost(reply.usage) if price else None
    if price is None or cost is None:
        return Finding("price", "unknown", "nobody says what a call costs; give it with --price, or limit --max-tokens")
    return Finding("price", "ok", f"{cost:.2g} USD for this call, by {price.source}")


def _window(room: int) -> Finding:
    if room == ROOM:
        return Finding("window", "unknown", f"not told; prompts get {ROOM} tokens (set `window` in labcoat.toml)")
    return Finding("window", "ok", f"prompts get {room} tokens")
