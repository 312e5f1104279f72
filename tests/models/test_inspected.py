"""``inspect:PROVIDER/NAME``: the contract, with inspect_ai's own mock."""

from __future__ import annotations

import builtins
import importlib.util
from typing import Any

import pytest

from labcoat.models import Call, ModelAway, ModelRefuses, Part, Prompt, Usage, load
from labcoat.models.inspected import InspectModel

needs_inspect = pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect_ai is not installed")
PROMPT = Prompt.of([Part("task", "Improve."), Part("instruction", "One idea.")])
CALL = Call("idea", "/0", 0, 0)
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}


def mock(*answers: Any) -> InspectModel:
    return InspectModel("mockllm/model", custom_outputs=list(answers))


def output(text: str, *, usage: bool = True, stop: str = "stop") -> Any:
    from inspect_ai.model import ModelOutput, ModelUsage

    made = ModelOutput.from_content("mock-1", text, stop)  # type: ignore[arg-type,unused-ignore]
    made.usage = ModelUsage(
        input_tokens=36, output_tokens=40, total_tokens=140, input_tokens_cache_read=64, reasoning_tokens=25,
        total_cost=0.002,
    )  # fmt: skip
    return made


@needs_inspect
def test_text_usage_cost_and_name_are_those_of_the_provider() -> None:
    reply = mock(output("an idea")).chat(PROMPT, CALL)
    assert (reply.text, reply.finish, reply.cost, reply.served) == ("an idea", "stop", 0.002, "mock-1")
    assert reply.usage == Usage(input_uncached=36, cache_read=64, output=40, of_which_reasoning=25)
    assert not reply.usage_estimated


@needs_inspect
@pytest.mark.parametrize(
    ("stop", "finish"),
    [("max_tokens", "length"), ("model_length", "context_too_long"), ("content_filter", "refusal"), ("stop", "stop")],
)
def test_the_ways_to_end_are_ours(stop: str, finish: str) -> None:
    assert mock(output("", stop=stop)).chat(PROMPT, CALL).finish == finish


@needs_inspect
def test_schemas_are_met_by_asking_again() -> None:
    reply = mock(output("hm"), output('{"score": 3}')).chat(PROMPT, Call("rate", "/0", 0, 0, SCHEMA))
    assert (reply.parsed, reply.requests, reply.usage.output) == ({"score": 3}, 2, 80)


@needs_inspect
@pytest.mark.parametrize(
    ("status", "message", "raised"),
    [(401, "bad key", ModelRefuses), (503, "overloaded", ModelAway), (None, "Connection error.", ModelAway)],
)
def test_failures_are_of_the_three_classes(
    status: int | None, message: str, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789")

    def fail(*_: Any) -> Any:
        error = RuntimeError(f"{message}; key sk-0123456789")
        error.status_code = status  # type: ignore[attr-defined]
        raise error

    with pytest.raises(raised, match=rf"{message}; key \*\*\*"):
        InspectModel("mockllm/model", custom_outputs=fail).chat(PROMPT, CALL)


@needs_inspect
def test_a_prompt_that_is_too_long_is_seen_by_the_strategy() -> None:
    def fail(*_: Any) -> Any:
        error = RuntimeError("prompt is too long: 9 tokens > 8 maximum")
        error.status_code = 400  # type: ignore[attr-defined]
        raise error

    assert InspectModel("mockllm/model", custom_outputs=fail).chat(PROMPT, CALL).finish == "context_too_long"


@needs_inspect
def test_an_unknown_provider_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ModelRefuses, match="inspect:nobody/x"):
        InspectModel("nobody/x").room("idea")


def test_without_inspect_ai_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("inspect_ai"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    model = load("inspect:anthropic/claude")
    assert model.name == "inspect:anthropic/claude"
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModelRefuses, match=r"install labcoat\[inspect\]"):
        model.room("idea")
