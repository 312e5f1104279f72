"""``inspect:PROVIDER/NAME``: a model through ``inspect_ai``, for providers that do not speak the OpenAI protocol.

The one file that imports it; it comes with the extra ``inspect``. Its providers know their own keys, addresses and
passing errors, so it is inspect_ai that asks again; what is left when it gives up is told apart here.
"""

from __future__ import annotations

import os
import time
from functools import cached_property
from typing import Any

from labcoat.models import loop
from labcoat.models.chat import ROOM, Call, Finish, ModelAway, ModelRefuses, Prompt, Reply
from labcoat.models.structured import Turn, structured
from labcoat.models.usage import estimated, read_usage
from labcoat.models.verdict import judge

PATIENCE = 600
"""Seconds in which inspect_ai asks again."""
DEADLINE = 1200
"""Seconds for all of that and the last request."""
FINISH: dict[str, Finish] = {
    "max_tokens": "length", "model_length": "context_too_long", "content_filter": "refusal", "tool_calls": "refusal",
}  # fmt: skip
SECRET = ("_KEY", "_TOKEN", "_SECRET")


class InspectModel:
    """The model."""

    constants_only = False

    def __init__(self, spec: str, **arguments: Any) -> None:
        """``spec`` is PROVIDER/NAME; ``arguments`` go to the provider."""
        self.name = f"inspect:{spec}"
        self._spec = spec
        self._arguments = arguments

    def room(self, purpose: str) -> int:
        """What holds where nothing is known.

        Raises:
            ModelRefuses: inspect_ai or the provider cannot be used here.
        """
        _ = self._model
        return ROOM

    def chat(self, prompt: Prompt, call: Call) -> Reply:
        """Answer one prompt."""
        if call.schema is None:
            return self._complete([{"role": "user", "content": prompt.text}])
        return structured(self._complete, prompt.text, call.schema)

    def _complete(self, turns: list[Turn]) -> Reply:
        from inspect_ai.model import ChatMessageAssistant, ChatMessageUser

        kinds = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}
        messages = [kinds[turn["role"]](content=turn["content"]) for turn in turns]
        begin = time.perf_counter()
        try:
            output = loop.run(self._model.generate(messages), DEADLINE)
        except Exception as error:
            return self._failed(error)
        latency = time.perf_counter() - begin
        text = _cleared(output.completion)
        usage = None
        if output.usage is not None:
            given = output.usage
            usage = read_usage(
                {
                    "input_tokens": given.input_tokens,
                    "cache_read_input_tokens": given.input_tokens_cache_read,
                    "cache_creation_input_tokens": given.input_tokens_cache_write,
                    "output_tokens": given.output_tokens,
                    "reasoning_tokens": given.reasoning_tokens,
                }
            )
        finish = FINISH.get(output.stop_reason, "stop")
        if output.stop_reason == "tool_calls" and text:
            finish = "stop"
        return Reply(
            text,
            usage=usage or estimated(sum(len(turn["content"].encode()) for turn in turns), len(text.encode())),
            cost=output.usage.total_cost if output.usage is not None else None,
            latency=latency,
            finish=finish,
            usage_estimated=usage is None,
            served=output.model,
        )

    def _failed(self, error: Exception) -> Reply:
        """A reply, where the failure is one of this request.

        Raises:
            ModelAway: the endpoint is away.
            ModelRefuses: no call can succeed.
        """
        last = getattr(error, "last_attempt", None)  # of tenacity, which inspect_ai asks again with
        cause = (last.exception() if last is not None else None) or error
        says = _cleared(f"{type(cause).__name__}: {cause}")[:500]
        status = getattr(cause, "status_code", None)
        if not isinstance(status, int):
            raise ModelAway(f"{self.name}: no answer: {says}\nNothing is lost: give the same command again") from None
        verdict = judge(status, _cleared(str(cause)).encode(errors="replace"))
        if verdict.kind == "fatal":
            raise ModelRefuses(f"{self.name}: the provider refuses: {says}") from None
        if verdict.kind == "reply":
            return Reply(verdict.text, cost=0.0, finish=verdict.finish)
        raise ModelAway(f"{self.name}: {says}\nNothing is lost: give the same command again when it is back") from None

    @cached_property
    def _model(self) -> Any:
        try:
            from inspect_ai.model import GenerateConfig, get_model
        except ImportError:
            raise ModelRefuses(f"{self.name}: needs inspect_ai; install labcoat[inspect]") from None
        config = GenerateConfig(timeout=PATIENCE)
        try:
            return get_model(self._spec, config=config, memoize=False, **self._arguments)
        except Exception as error:  # no such provider, its package or its key is missing
            raise ModelRefuses(f"{self.name}: {_cleared(str(error))[:500]}") from None


def _cleared(text: str) -> str:
    """``text`` as it can be written, without what the environment calls a key: each provider has its own variable."""
    secrets = {value for name, value in os.environ.items() if name.endswith(SECRET) and len(value) >= 8}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text.encode(errors="replace").decode()
