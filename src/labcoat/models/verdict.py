"""Verdict: what an endpoint's answer means for the call. Pure functions of status and body.

Three classes of failure: *transient* (ask again later), *permanent for this request* (the strategy sees it), and
*permanent for the run* (no call can succeed before the user changes something).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from labcoat.models.chat import Finish, Usage
from labcoat.models.usage import read_cost, read_usage

Kind = Literal["reply", "transient", "unreadable", "unsupported", "fatal"]


@dataclass(frozen=True)
class Verdict:
    """The meaning of one answer.

    ``reply`` ends the call, also as a refusal. ``transient``: nothing was made. ``unreadable``: something may have
    been made and paid. ``unsupported``: ``says`` is the parameter that the endpoint does not take. ``fatal``: stop.
    """

    kind: Kind
    says: str = ""
    text: str = ""
    finish: Finish = "stop"
    usage: Usage | None = None
    """None where nothing is reported that can be true."""
    cost: float | None = None
    served: str = ""
    """The model that answered, by its own name."""


@dataclass(frozen=True)
class Fault:
    """What an error body says, in one of its many forms."""

    message: str
    code: str = ""
    kind: str = ""
    parameter: str = ""

    @property
    def words(self) -> str:
        """All of it, for matching."""
        return f"{self.message} {self.code} {self.kind}".lower()


TOO_LONG = re.compile(
    r"context.?length|context.?size|context.?window|maximum model length|prompt (is|was) too (long|large)"
    r"|input token count|input is too long|too many (input )?tokens|reduce the length"
)
REFUSED = re.compile(r"content.?filter|content.?policy|content management|moderation|flagged|safety|invalid_prompt")
NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}
NOT_TAKEN = re.compile(
    r"unsupported|(not|n't) (support|accept|permit|allow|available|recogni)|unrecogni|unknown|unexpected"
    r"|only the default|extra (inputs|fields)|no longer|deprecated|invalid (parameter|argument)"
)
SCHEMA_WORDS = re.compile(r"response_format|json.?schema|structured output|grammar|guided|invalid schema")
HINTS = {
    401: " (is the key right?)",
    403: " (may this key use this model?)",
    404: " (are the name of the model and base_url right?)",
}
HINTS |= dict.fromkeys((301, 302, 303, 307, 308), " (a redirect; set base_url to where it leads)")
LATER = {408, 409, 425, 429}


def judge(status: int, body: bytes, sent: Collection[str] = ()) -> Verdict:
    """What an answer means; ``sent`` names the parameters of the request that it can do without."""
    data = _json(body)
    if status < 300:
        inner = _inner_error(data)
        return _completion(data, body) if inner is None else _failure(inner, fault(data, body), sent)
    return _failure(status, fault(data, body), sent)


def _failure(status: int, found: Fault, sent: Collection[str]) -> Verdict:
    says = f"{status}: {found.message}{HINTS.get(status, '')}"
    if status == 402 or {found.code.lower(), found.kind.lower()} & NO_MONEY:
        return Verdict("fatal", f"{says} (no credit is left)")
    larger_than_the_rate = status == 429 and "request too large" in found.words
    if status in LATER and not larger_than_the_rate:
        return Verdict("transient", says)
    too_long = status not in (401, 403, 404) and TOO_LONG.search(found.words)
    if too_long or larger_than_the_rate or status == 413:
        return Verdict("reply", says, finish="context_too_long", usage=Usage(), cost=0.0)
    if REFUSED.search(found.words) and status != 401 and status < 500:
        return Verdict("reply", says, text=found.message, finish="refusal", usage=Usage(), cost=0.0)
    if status >= 500:
        return Verdict("transient", says)
    parameter = _not_taken(found, sent) if status in (400, 422) else ""
    return Verdict("unsupported", parameter) if parameter else Verdict("fatal", says)


def _not_taken(found: Fault, sent: Collection[str]) -> str:
    """The parameter that the endpoint does not take, if that is what it says."""
    if "response_format" in sent and SCHEMA_WORDS.search(f"{found.words} {found.parameter}"):
        return "response_format"
    if NOT_TAKEN.search(found.words):
        for name in sent:
            if name == found.parameter or re.search(rf"\b{re.escape(name)}\b", found.words):
                return name
    return ""


def _completion(data: Any, body: bytes) -> Verdict:
    if not isinstance(data, dict):
        page = body.lstrip()[:1] == b"<"
        if page:
            return Verdict("unreadable", "an HTML page instead of a reply; is base_url right?", usage=Usage(), cost=0.0)
        return Verdict("unreadable", "a reply that is no JSON")
    usage, cost = read_usage(data.get("usage")), read_cost(data.get("usage"))
    served = str(data.get("model") or "")
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Verdict("unreadable", "a reply without choices", usage=usage, cost=cost)
    reason = choice.get("finish_reason")
    if reason == "error" or choice.get("error"):
        return Verdict("unreadable", f"broke off: {fault(choice, b'').message}", usage=usage, cost=cost)
    text, refusal = _text(message.get("content")), _text(message.get("refusal"))
    finish: Finish = "length" if reason == "length" else "stop"
    if refusal or reason == "content_filter":
        text, finish = text or refusal, "refusal"
    elif not text and (message.get("tool_calls") or message.get("function_call")):
        finish = "refusal"  # it wants to call a tool; it was given none
    return Verdict("reply", text=text, finish=finish, usage=usage, cost=cost, served=served)


def fault(data: Any, body: bytes) -> Fault:
    """Read an error body; the OpenAI form, those of its imitators, or plain text."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, dict):
        return Fault(" ".join(body[:4000].decode(errors="replace").split()) or "no further word")
    error = data.get("error", data)
    if not isinstance(error, dict):
        return Fault(str(error))
    message = error.get("message") or error.get("detail") or error.get("metadata") or "no further word"
    names = (str(error.get(name) or "") for name in ("code", "type", "param"))
    return Fault(message if isinstance(message, str) else json.dumps(message), *names)


def _inner_error(data: Any) -> int | None:
    """The status of an error that was sent as a success, as routers do."""
    error = data.get("error") if isinstance(data, dict) and not data.get("choices") else None
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def _text(content: Any) -> str:
    """A message's text; some servers send it in pieces."""
    if isinstance(content, list):
        return "".join(_text(piece.get("text")) for piece in content if isinstance(piece, dict))
    return content if isinstance(content, str) else ""


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
