"""``openai:NAME[@ENDPOINT]``: a model behind any server that speaks the OpenAI protocol."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from labcoat.errors import InputError
from labcoat.journal import canonical
from labcoat.models.answer import Answer, CutOff, TooLong, Unreachable
from labcoat.models.chat import ROOM, Call, ModelAway, ModelRefuses, Prompt, Reply
from labcoat.models.patience import OutOfPatience, Patience, Sleep
from labcoat.models.settings import BUILT_IN, FILE, Endpoint, read_settings
from labcoat.models.structured import Schema, Turn, is_strict, structured
from labcoat.models.usage import estimated
from labcoat.models.verdict import LATER, Verdict, judge

if TYPE_CHECKING:  # the SDK is loaded when a call goes out, and not to name a model
    from labcoat.models.connection import Connection

Error = TypeVar("Error", ModelAway, ModelRefuses)
MOST_UNREADABLE = 5
"""Answers of one call that may have been paid and cannot be read, before the endpoint counts as away."""
LONGEST_ERROR = 500
REPLY_TOKENS = 8192
"""Kept free for the reply where nothing is set, or a quarter of a small window."""
PATIENCE_FOR_WINDOW = 30.0
OPTIONAL = (
    "temperature", "top_p", "reasoning_effort", "seed", "max_tokens", "max_completion_tokens", "response_format",
)  # fmt: skip
"""Parameters that are left out where an endpoint does not take them; those of ``extra_body`` are not."""
WINDOWS = ("max_model_len", "context_length", "context_window", "n_ctx", "n_ctx_train")
"""What servers call a model's window: vLLM, OpenRouter, Groq, llama.cpp twice."""


class EndpointModel:
    """The model. Keys and headers stay in its connection; what the endpoint says is cleared of them."""

    constants_only = False

    def __init__(
        self, model: str, where: str, endpoint: Endpoint, sleep: Sleep = time.sleep, *, haste: bool = False
    ) -> None:
        """``model`` as the endpoint calls it; ``where`` is the endpoint's name; one in ``haste`` never waits for it."""
        self.model = model
        self.endpoint = endpoint
        self.place, self.url, self.at_once = where, endpoint.base_url, endpoint.concurrency
        self.parameters = endpoint.parameters(model)
        self.name = f"openai:{model}" if where == BUILT_IN else f"openai:{model}@{where}"
        if sent := self.parameters.sent():
            self.name += f" {canonical(sent)}"
        self._sleep = sleep
        self._haste = haste
        self._patience = 0.0 if haste else endpoint.patience
        self._not_taken: set[str] = set()
        """Parameters that the endpoint does not take; found out by its complaint."""

    @classmethod
    def named(cls, spec: str) -> EndpointModel:
        """The model ``NAME`` or ``NAME@ENDPOINT``.

        Raises:
            InputError: no such endpoint, or its settings are wrong.
        """
        model, at, where = spec.rpartition("@")
        if not at:
            model, where = spec, BUILT_IN
        endpoints = read_settings().endpoint
        if where not in endpoints or not model:
            raise InputError(
                f"--model openai:{spec}: {FILE} has no [endpoint.{where}]; known: {', '.join(endpoints)}"
                f" (a name that holds an @ is written openai:{spec}@{BUILT_IN})"
            )
        return cls(model, where, endpoints[where])

    def in_haste(self) -> EndpointModel:
        """The same model for a look ahead: it does not wait for an endpoint that is away."""
        return EndpointModel(self.model, self.place, self.endpoint, self._sleep, haste=True)

    # --- what a run asks ------------------------------------------------------------------------------------------

    def room(self, purpose: str) -> int:
        """The window without the room for the reply; the endpoint is asked if nobody set a window.

        Raises:
            InputError: a variable that should hold the key is not set, or the key is no good.
            ModelAway: nobody is there to be asked; what a run's prompts hold must not hang on that.
        """
        _ = self._connection  # without a key nothing of the run is begun
        window = self.parameters.window or self._asked_window
        if window is None:
            return ROOM
        reply = self.parameters.reply_tokens or min(REPLY_TOKENS, window // 4)
        return max(window - reply, window // 4)

    def chat(self, prompt: Prompt, call: Call) -> Reply:
        """Answer one prompt."""
        if call.schema is None:
            return self._complete([{"role": "user", "content": prompt.text}], call)
        return structured(lambda turns: self._complete(turns, call), prompt.text, call.schema)

    @property
    def takes_schemas(self) -> bool:
        """Whether the endpoint has not complained of one."""
        return "response_format" not in self._not_taken

    # --- one completion -------------------------------------------------------------------------------------------

    def _complete(self, turns: list[Turn], call: Call) -> Reply:
        """A reply, with all that it took to get it.

        Raises:
            ModelAway: the endpoint is away for longer than its settings have patience.
            ModelRefuses: no call can succeed.
        """
        patience = Patience(self._patience, self._sleep)
        so_far: Reply | None = None
        unreadable = 0
        while True:
            verdict, reply, asked = self._request(turns, call)
            so_far = replace(reply if so_far is None else reply.after(so_far), waited=patience.waited)
            if verdict.kind == "reply":
                return so_far
            says = self._cleared(verdict.says)[:LONGEST_ERROR]
            if verdict.kind == "fatal":
                raise _with(ModelRefuses(f"{self.name}: {self.endpoint.base_url} refuses: {says}"), so_far)
            if verdict.kind == "unsupported":
                self._not_taken.add(says)
                call.tell(f"{self.name} does not take {says}; going on without it")
                continue
            unreadable += verdict.kind == "unreadable"
            try:
                if unreadable == MOST_UNREADABLE:
                    raise OutOfPatience
                patience.wait(asked, partial(_tell_wait, call, self.name, says))
            except OutOfPatience:
                text = (
                    f"{self.name}: no answer from {self.endpoint.base_url} in {so_far.requests} requests "
                    f"({patience.waited:.0f} s waited between them); the last: {says}\n"
                    "Nothing is lost: give the same command again when it is back"
                )
                raise _with(ModelAway(text), so_far) from None

    def _request(self, turns: list[Turn], call: Call) -> tuple[Verdict, Reply, float | None]:
        """One request: what came of it, that as a reply, and how long the endpoint asks us to wait."""
        body = self._body(turns, call)
        asked, received = None, 0
        begin = time.perf_counter()
        try:
            answer = self._connection.chat(body)
            verdict = judge(answer.status, answer.body, [name for name in OPTIONAL if name in body])
            asked, received = answer.asked, len(verdict.text.encode(errors="replace")) or len(answer.body)
        except Unreachable as error:
            verdict = Verdict("transient", str(error))
        except TooLong as error:
            verdict, received = Verdict("reply", str(error), finish="length"), error.received
        except CutOff as error:
            verdict, received = Verdict("unreadable", str(error)), error.received
        latency = time.perf_counter() - begin
        if verdict.kind not in ("reply", "unreadable"):
            return verdict, Reply("", cost=0.0, latency=latency), asked
        asked_bytes = sum(len(turn["content"].encode(errors="replace")) for turn in turns)
        usage = verdict.usage or estimated(asked_bytes, received)
        reply = Reply(
            self._cleared(verdict.text), usage=usage, cost=verdict.cost, latency=latency, finish=verdict.finish,
            usage_estimated=verdict.usage is None, served=self._cleared(verdict.served)[:LONGEST_ERROR],
        )  # fmt: skip
        return verdict, reply, asked

    def _body(self, turns: list[Turn], call: Call) -> dict[str, Any]:
        """The request; what the endpoint does not take is left out."""
        given = self.parameters
        limit = "max_completion_tokens" if "max_tokens" in self._not_taken else "max_tokens"
        wanted = {
            "temperature": given.temperature,
            "top_p": given.top_p,
            "reasoning_effort": given.reasoning_effort,
            "seed": call.seed % 2**31 if given.seed == "run" else given.seed,
            limit: given.reply_tokens,
            "response_format": None if call.schema is None else _response_format(call.purpose, call.schema),
        }
        sent = {name: value for name, value in wanted.items() if value is not None and name not in self._not_taken}
        return {"model": self.model, "messages": turns} | sent | given.extra_body

    @cached_property
    def _connection(self) -> Connection:
        from labcoat.models.connection import Connection

        return Connection(self.endpoint)

    @cached_property
    def _asked_window(self) -> int | None:
        """The window that the endpoint tells of this model; None if it does not."""
        patience = Patience(min(PATIENCE_FOR_WINDOW, self._patience), self._sleep)
        while True:
            nobody = ""
            try:
                answer = self._connection.models(PATIENCE_FOR_WINDOW)
            except Unreachable as error:
                answer, nobody = Answer(503, b""), self._cleared(str(error))[:LONGEST_ERROR]
            except CutOff:
                answer = Answer(503, b"")
            if answer.status == 401:
                says = self._cleared(judge(answer.status, answer.body).says)[:LONGEST_ERROR]
                raise ModelRefuses(f"{self.name}: {self.endpoint.base_url} refuses: {says}")
            if answer.status not in LATER and answer.status < 500:
                return window_of(self.model, answer.body)
            try:
                patience.wait(answer.asked, lambda seconds: None)
            except OutOfPatience:
                if not nobody or self._haste:
                    return None
                raise ModelAway(
                    f"{self.name}: nobody answers at {self.endpoint.base_url}: {nobody}\n"
                    "Nothing is lost: give the same command again when it is there"
                ) from None

    def _cleared(self, text: str) -> str:
        """``text`` as it can be written, without the key and the headers, also where a server echoes them."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text.encode(errors="replace").decode()

    @cached_property
    def _secrets(self) -> list[str]:
        return self.endpoint.secrets()


def window_of(model: str, body: bytes) -> int | None:
    """The window of ``model`` in a list of models."""
    try:
        listed = json.loads(body)["data"]
        (entry,) = [entry for entry in listed if entry["id"] == model]
        places = [entry, entry.get("meta") or {}]
        found = [place[name] for name in WINDOWS for place in places if type(place.get(name)) is int]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return next((window for window in found if 512 <= window < 2**31), None)


def _response_format(purpose: str, schema: Schema) -> dict[str, Any]:
    name = re.sub(r"[^\w-]", "_", purpose, flags=re.ASCII)[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": is_strict(schema)}}


def _tell_wait(call: Call, name: str, says: str, seconds: float) -> None:
    call.tell(f"{name} is away ({says}); asking again in {seconds:.0f} s")


def _with(error: Error, taken: Reply) -> Error:
    """The error, with what the call had taken."""
    error.spent = taken if taken.usage.total else None
    return error
