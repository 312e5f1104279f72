"""A model behind an endpoint, and everything that an endpoint can do to a run."""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import labcoat
from labcoat.budget import LimitReached, Limits
from labcoat.cli import main
from labcoat.errors import InputError, Stopped
from labcoat.history import History
from labcoat.lab import Lab, Params
from labcoat.models import ROOM, Call, ModelAway, ModelRefuses, Models, Part, Prompt, Reply, Usage
from labcoat.models.connection import MOST_BYTES
from labcoat.models.endpoint import MOST_UNREADABLE, EndpointModel
from labcoat.models.settings import Endpoint
from tests.models import stub_server
from tests.models.stub_server import ANSWER, Behaviour, Stub, error, json_body, raw, reply

At = Callable[..., EndpointModel]
Simulate = Callable[..., History]
PROMPT = Prompt.of([Part("task", "Improve."), Part("instruction", "One idea.")])
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
KEY = f"sk-{secrets.token_hex(20)}"  # in no source file: those are part of a run's record
QUICK: dict[str, Any] = {"timeout": 0.3, "patience": 100.0}


def call(schema: dict[str, Any] | None = None, told: list[str] | None = None, seed: int = 7) -> Call:
    return Call("idea", "/0", 0, seed, schema, (told if told is not None else []).append)


# --- what is sent and what comes back -------------------------------------------------------------------------------


def test_a_prompt_is_one_user_turn_and_nothing_is_sent_that_nobody_set(at: At, stub: Stub) -> None:
    answer = at().chat(PROMPT, call())
    assert (answer.text, answer.finish, answer.requests, answer.served) == (ANSWER, "stop", 1, "stub-2026-01-01")
    assert answer.usage == Usage(input_uncached=100, output=40) and not answer.usage_estimated
    assert answer.cost is None and answer.latency > 0
    (request,) = stub.received
    assert request.body == {"model": "stub", "messages": [{"role": "user", "content": "Improve.\n\nOne idea."}]}
    assert request.path == "/v1/chat/completions"


def test_parameters_are_sent_and_those_of_the_model_go_first(at: At, stub: Stub) -> None:
    model = at(
        temperature=0.7, reply_tokens=100, seed="run", extra_body={"top_k": 20},
        models={"stub": {"temperature": 0.2, "top_p": 0.9, "reasoning_effort": "low"}},
    )  # fmt: skip
    model.chat(PROMPT, call(seed=2**40 + 5))
    sent = {k: v for k, v in stub.received[0].body.items() if k not in ("model", "messages")}
    assert sent == {
        "temperature": 0.2, "top_p": 0.9, "reasoning_effort": "low", "max_tokens": 100, "seed": 5, "top_k": 20,
    }  # fmt: skip


def test_what_identifies_a_model_are_name_endpoint_and_parameters_and_never_a_key_or_a_header(
    at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    plain = at(key_env="STUB_KEY", headers={"X-Team": "lab-seven"}, window=9000, timeout=5, concurrency=2)
    assert plain.name == "openai:stub@stub"
    assert at(temperature=0.5, reply_tokens=10).name == 'openai:stub@stub {"reply_tokens":10,"temperature":0.5}'


def test_key_and_headers_are_sent_and_those_of_other_endpoints_are_not(
    at: At, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody-else")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Else: somebody-else\nAuthorization: somebody-else")
    monkeypatch.setenv("STUB_KEY", KEY)
    monkeypatch.setenv("TEAM", "lab-seven")
    at().chat(PROMPT, call())
    at(key_env="STUB_KEY", headers={"X-Team": "$TEAM", "X-Title": "labcoat"}).chat(PROMPT, call())
    without, with_key = (request.headers for request in stub.received)
    assert "authorization" not in without
    assert with_key["authorization"] == f"Bearer {KEY}"
    assert (with_key["x-team"], with_key["x-title"]) == ("lab-seven", "labcoat")
    assert "somebody-else" not in str(without) + str(with_key)


def test_a_missing_key_is_named_before_anything_is_asked(
    at: At, stub: Stub, simulate: Simulate, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"environment variable NO_SUCH_KEY \(key_env\) is not set"):
        simulate("random", steps=1, model=Models({"*": at(key_env="NO_SUCH_KEY", window=9000)}))
    assert not stub.received
    assert '"baseline"' not in next(tmp_path.rglob("events.jsonl")).read_text()


def test_what_the_endpoint_says_a_call_cost_is_its_cost(at: At, stub: Stub) -> None:
    stub.script = [reply(usage=stub_server.USAGE | {"cost": 0.00125})]
    assert at().chat(PROMPT, call()).cost == 0.00125


# --- parameters that an endpoint does not take ----------------------------------------------------------------------


def test_a_parameter_that_is_refused_is_left_out_once_and_for_all(at: At, stub: Stub) -> None:
    def decide(request: stub_server.Received) -> Behaviour:
        if "temperature" in request.body:
            message = "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) ..."
            return error(400, message, code="unsupported_value", param="temperature")
        if "max_tokens" in request.body:
            message = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            return error(400, message, code="unsupported_parameter", param="max_tokens")
        return reply()

    told: list[str] = []
    stub.decide = decide
    model = at(temperature=0.2, reply_tokens=50)
    assert model.chat(PROMPT, call(told=told)).requests == 3
    assert model.chat(PROMPT, call(told=told)).requests == 1
    assert stub.received[-1].body["max_completion_tokens"] == 50
    assert [text.partition("does not take ")[2] for text in told] == [
        "temperature; going on without it", "max_tokens; going on without it",
    ]  # fmt: skip


def test_a_wrong_value_stops_the_run_and_is_not_left_out(at: At, stub: Stub) -> None:
    stub.otherwise = error(400, "temperature must be at most 2", param="temperature")
    with pytest.raises(ModelRefuses, match="temperature must be at most 2"):
        at(temperature=9).chat(PROMPT, call())


# --- structured replies ---------------------------------------------------------------------------------------------


def test_a_schema_is_asked_for_natively_and_the_reply_is_parsed(at: At, stub: Stub) -> None:
    stub.script = [reply('{"score": 3}')]
    answer = at().chat(PROMPT, call(SCHEMA))
    assert (answer.parsed, answer.finish) == ({"score": 3}, "stop")
    wanted = stub.received[0].body["response_format"]["json_schema"]
    assert (wanted["name"], wanted["schema"], wanted["strict"]) == ("idea", SCHEMA, False)


def test_an_endpoint_without_schemas_is_asked_in_words(at: At, stub: Stub) -> None:
    def decide(request: stub_server.Received) -> Behaviour:
        if "response_format" in request.body:
            return error(400, "'response_format.type' must be 'text'", param="response_format")
        return reply('Here it is:\n```json\n{"score": 4}\n```\nBye.')

    stub.decide = decide
    model = at()
    assert model.chat(PROMPT, call(SCHEMA)).parsed == {"score": 4}
    assert model.chat(PROMPT, call(SCHEMA)).requests == 1 and not model.takes_schemas
    assert '"score"' in stub.received[-1].said


def test_what_does_not_fit_is_asked_again_with_the_reason_and_all_is_counted(at: At, stub: Stub) -> None:
    stub.script = [reply("no json"), reply('{"score": "high"}'), reply('{"score": 5}')]
    answer = at().chat(PROMPT, call(SCHEMA))
    assert (answer.parsed, answer.requests) == ({"score": 5}, 3)
    assert answer.usage == Usage(input_uncached=300, output=120)
    turns = stub.received[-1].body["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[1]["content"] == '{"score": "high"}' and "score must be integer" in turns[2]["content"]


def test_a_reply_that_is_no_text_can_be_asked_about_again(at: At, stub: Stub) -> None:
    stub.script = [reply("\ud800"), reply('{"score": 1}')]
    assert at().chat(PROMPT, call(SCHEMA)).parsed == {"score": 1}
    assert stub.received[-1].body["messages"][1]["content"] == "?"


def test_a_schema_that_is_never_met_ends_with_the_text_kept(at: At, stub: Stub) -> None:
    stub.otherwise = reply("I would rather not.")
    answer = at().chat(PROMPT, call(SCHEMA))
    assert (answer.finish, answer.text, answer.parsed) == ("schema_never_met", "I would rather not.", None)
    assert len(stub.received) == answer.requests == 3 and answer.usage.total == 3 * 140


# --- the room of a prompt -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "room"),
    [
        ({"data": [{"id": "other", "max_model_len": 1}, {"id": "stub", "max_model_len": 40_000}]}, 40_000 - 8192),
        ({"data": [{"id": "stub", "context_length": 16_000}]}, 12_000),
        ({"data": [{"id": "stub", "meta": {"n_ctx_train": 8192}}]}, 6144),
        ({"data": [{"id": "stub", "meta": {"n_ctx_train": 8192, "n_ctx": 4096}}]}, 3072),
        ({"data": [{"id": "stub"}]}, ROOM),
        ({"data": [{"id": "stub", "context_length": -5}]}, ROOM),
        ({"data": "?"}, ROOM),
        ([], ROOM),
    ],
)
def test_the_window_is_asked_of_the_endpoint(at: At, stub: Stub, models: Any, room: int) -> None:
    stub.models = json_body(models)
    assert at().room("idea") == room


def test_a_window_that_is_set_is_not_asked_for(at: At, stub: Stub) -> None:
    stub.models = error(500)
    assert at(window=10_000, reply_tokens=1000).room("idea") == 9000
    assert at(window=10_000, reply_tokens=6000).room("idea") == 4000
    assert at(window=10_000, reply_tokens=20_000).room("idea") == 2500


@pytest.mark.parametrize(
    "models", [error(404), error(500), raw(b"<html>"), stub_server.hang], ids=["404", "500", "HTML", "hang"]
)
def test_an_endpoint_that_does_not_list_models_leaves_the_window_unknown(at: At, stub: Stub, models: Behaviour) -> None:
    stub.models = models
    assert at(timeout=0.2).room("idea") == ROOM


def test_a_run_does_not_begin_with_a_window_that_nobody_was_there_to_tell(stub: Stub, simulate: Simulate) -> None:
    """What is not known when a run begins stays so, and its prompts might never fit."""
    waits: list[float] = []
    gone = EndpointModel("stub", "stub", Endpoint(base_url="http://127.0.0.1:9/v1"), waits.append)
    with pytest.raises(ModelAway, match=r"nobody answers at http://127.0.0.1:9/v1: .*\nNothing is lost"):
        simulate("random", steps=1, model=Models({"*": gone}))
    assert 15 < sum(waits) <= 30
    assert gone.in_haste().room("idea") == ROOM and sum(waits) <= 30


def test_a_bad_key_is_found_before_the_baseline_is_measured(at: At, stub: Stub, simulate: Simulate) -> None:
    stub.models = error(401, "Incorrect API key provided")
    with pytest.raises(ModelRefuses, match=r"401: Incorrect API key provided \(is the key right\?\)"):
        simulate("random", steps=1, model=Models({"*": at()}))
    assert not stub.received


# --- transient: asked again, outside the budget ---------------------------------------------------------------------

TRANSIENT: dict[str, tuple[Behaviour, bool]] = {  # and whether it may have been paid
    "429": (error(429, "Rate limit reached", code="rate_limit_exceeded"), False),
    "429 with a time": (error(429, "Slow down", Retry_After="7"), False),
    "500": (error(500, "The server had an error"), False),
    "503 without JSON": (raw(b"upstream connect error", 503), False),
    "529": (error(529, "Overloaded"), False),
    "closed without an answer": (stub_server.reset, False),
    "an error sent as a success": (json_body({"error": {"code": 502, "message": "Provider returned error"}}), False),
    "HTML with status 200": (raw(b"<!DOCTYPE html><html>Sign in</html>"), False),
    "truncated JSON": (stub_server.truncated, True),
    "cut off": (stub_server.cut_off, True),
    "hanging": (stub_server.hang, True),
    "a body that never ends": (stub_server.drip, True),
    "empty choices": (json_body({"choices": [], "usage": stub_server.USAGE}), True),
    "JSON of another kind": (json_body(["?"]), True),
    "a choice that broke off": (reply("half", finish="error"), True),
}


@pytest.mark.parametrize("name", TRANSIENT)
def test_what_passes_is_asked_again_and_consumes_nothing(
    name: str, at: At, stub: Stub, simulate: Simulate, waits: list[float]
) -> None:
    behaviour, paid = TRANSIENT[name]
    stub.script = [behaviour, behaviour]
    history = simulate("random", steps=2, model=Models({"*": at(**QUICK)}))
    assert [step.outcome.status for step in history.trials] == ["ok", "ok"]
    assert len(stub.received) == 6
    first = next(e for e in history.journal.events if e["kind"] == "ask")["result"]["reply"]
    assert (first["requests"], first["waited"]) == (3, sum(waits))
    assert [e["key"] for e in history.journal.events if e["kind"] == "endpoint"] == ["/0", "/0"]
    reported = name in ("empty choices", "a choice that broke off")
    assert first["usage_estimated"] == (paid and not reported)
    assert history.spent()["tokens"] == 4 * 140 if not paid else history.spent()["tokens"] > 4 * 140
    assert history.spent()["calls"] == 4


def test_a_time_to_wait_is_honoured_up_to_a_bound(at: At, stub: Stub, waits: list[float]) -> None:
    stub.script = [error(429, Retry_After="7"), error(429, Retry_After="9999"), error(429, Retry_After="soon")]
    at(patience=1000).chat(PROMPT, call())
    assert 7 <= waits[0] < 8 and 300 <= waits[1] < 301 and waits[2] <= 4


def test_patience_has_an_end_and_the_run_goes_on_where_it_was(
    at: At, stub: Stub, simulate: Simulate, waits: list[float]
) -> None:
    stub.script = [reply(), reply(), *[error(503, "Overloaded")] * 20]
    with pytest.raises(
        ModelAway, match=r"no answer from http://127.0.0.1:\d+/v1 in \d+ requests.*503: Overloaded"
    ) as e:
        simulate("random", steps=2, model=Models({"*": at(patience=60)}))
    assert isinstance(e.value, Stopped) and 30 < sum(waits) <= 60
    stub.script = []
    history = simulate("random", steps=2, model=Models({"*": at(patience=60)}))
    assert [step.outcome.status for step in history.trials] == ["ok", "ok"]
    spent = history.spent()
    assert (spent["calls"], spent["tokens"], spent["usd"]) == (4, 560, None)


def test_connection_refused_is_told_while_it_is_waited_for() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told: list[str] = []
    model = EndpointModel("m", "gone", Endpoint(base_url=f"http://127.0.0.1:{port}/v1", patience=5), lambda s: None)
    with pytest.raises(ModelAway, match="no answer"):
        model.chat(PROMPT, call(told=told))
    assert told and all("is away" in text and "asking again in" in text for text in told)


def test_an_endpoint_that_gives_nothing_readable_counts_as_away(at: At, stub: Stub) -> None:
    stub.otherwise = stub_server.truncated
    with pytest.raises(ModelAway, match="no JSON") as error:
        at(patience=10**6).chat(PROMPT, call())
    assert len(stub.received) == MOST_UNREADABLE
    assert error.value.spent is not None and error.value.spent.usage_estimated


def test_a_server_that_never_ends_is_left_at_the_deadline(at: At, stub: Stub) -> None:
    stub.script = [stub_server.drip]
    begin = time.monotonic()
    at(timeout=0.3).chat(PROMPT, call())
    assert time.monotonic() - begin < 2


def test_what_was_paid_before_an_endpoint_went_away_is_charged_on_resume(
    at: At, stub: Stub, simulate: Simulate
) -> None:
    async def search(lab: Lab, params: Params) -> None:
        await lab.ask("idea", PROMPT, SCHEMA)
        await lab.trial(await lab.edit(lab.brief.baseline, "go"))

    stub.script = [reply("no json"), *[error(503)] * 20]
    with pytest.raises(ModelAway):
        simulate(search, steps=1, model=Models({"*": at(patience=10)}))
    stub.script = [reply('{"score": 1}')]
    with pytest.raises(LimitReached, match=r"tokens = 250 \(spent 280\)"):
        simulate(search, steps=1, model=Models({"*": at()}), limits=Limits(tokens=250))
    history = simulate(search, steps=1, model=Models({"*": at()}))
    assert history.spent()["tokens"] == sum(usage["total_tokens"] for usage in stub.delivered) == 3 * 140


# --- permanent for this request: the strategy sees it ---------------------------------------------------------------

PERMANENT: dict[str, tuple[Behaviour, str]] = {
    "refusal": (reply(None, refusal="I cannot help with that."), "refusal"),
    "content filter": (reply("", finish="content_filter"), "refusal"),
    "content filter as an error": (error(400, "The response was filtered", code="content_filter"), "refusal"),
    "moderation": (error(403, "Your chosen model requires moderation and your input was flagged"), "refusal"),
    "tool call": (
        reply(None, finish="tool_calls", tool_calls=[{"id": "1", "type": "function", "function": {"name": "f"}}]),
        "refusal",
    ),
    "too long (OpenAI)": (
        error(400, "This model's maximum context length is 8192 tokens. ...", code="context_length_exceeded"),
        "context_too_long",
    ),
    "too long (vLLM)": (
        json_body(
            {
                "object": "error", "type": "BadRequestError", "param": None, "code": 400,
                "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
            },
            400,
        ),
        "context_too_long",
    ),
    "too long (vLLM, decoder)": (
        error(400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
        "context_too_long",
    ),
    "too long (llama.cpp)": (
        error(
            400, "the request exceeds the available context size (4096 tokens), try increasing it", code=400,
            type="exceed_context_size_error",
        ),
        "context_too_long",
    ),
    "too long (Anthropic)": (error(400, "prompt is too long: 210000 tokens > 200000 maximum"), "context_too_long"),
    "larger than the rate": (error(429, "Request too large for gpt-x on tokens per min (TPM)"), "context_too_long"),
    "a huge error": (raw(b'{"error": {"code": "content_filter"}}' + b" " * 5_000_000, 400), "refusal"),
    "request entity too large": (raw(b"<html>413</html>", 413), "context_too_long"),
    "20 MB": (stub_server.huge, "length"),
    "nothing but reasoning": (reply(None, finish="length", reasoning_content="hm ..."), "length"),
}  # fmt: skip


@pytest.mark.parametrize("name", PERMANENT)
def test_what_is_final_for_a_request_is_seen_by_the_strategy_and_is_one_failed_edit(
    name: str, at: At, stub: Stub, simulate: Simulate
) -> None:
    behaviour, finish = PERMANENT[name]
    seen: list[Reply] = []

    async def search(lab: Lab, params: Params) -> None:
        seen.append(await lab.ask("idea", PROMPT))
        await lab.trial(await lab.edit(lab.brief.baseline, "go"))

    stub.otherwise = behaviour
    history = simulate(search, steps=1, model=Models({"*": at()}))
    assert seen[0].finish == finish
    assert [step.outcome.status for step in history.trials] == ["edit_failed"]
    assert len(stub.received) == 2, "it is not asked again"
    assert not [e for e in history.journal.events if e["kind"] == "endpoint"]


def test_a_huge_reply_reaches_neither_memory_nor_journal(at: At, stub: Stub, simulate: Simulate) -> None:
    stub.otherwise = stub_server.huge
    history = simulate("random", steps=1, model=Models({"*": at()}))
    assert sum(path.stat().st_size for path in history.folder.rglob("*") if path.is_file()) < 100_000
    (ask,) = (e["result"]["reply"] for e in history.journal.events if e["kind"] == "ask")
    assert ask["usage_estimated"] and ask["usage"]["output"] >= MOST_BYTES // 3


def test_a_cut_reply_is_kept_and_marked(at: At, stub: Stub) -> None:
    stub.script = [reply("half an ide", finish="length")]
    answer = at().chat(PROMPT, call())
    assert (answer.text, answer.finish) == ("half an ide", "length")


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": -5, "completion_tokens": 3}, {"prompt_tokens": 10**15}, {"prompt_tokens": "a"}],
)
def test_usage_that_is_missing_or_cannot_be_true_is_estimated_and_marked(at: At, stub: Stub, usage: Any) -> None:
    stub.script = [reply("x" * 30, usage=usage)]
    answer = at().chat(PROMPT, call())
    assert answer.usage_estimated
    assert answer.usage == Usage(input_uncached=PROMPT.tokens, output=10)


# --- permanent for the run ------------------------------------------------------------------------------------------

FATAL: dict[str, tuple[Behaviour, str]] = {
    "bad key": (error(401, "Incorrect API key provided: sk-ab***yz", code="invalid_api_key"), "is the key right"),
    "forbidden": (error(403, "Project has no access to model"), "may this key use this model"),
    "unknown model": (error(404, "The model `x` does not exist", code="model_not_found"), "the name of the model"),
    "unknown model (Ollama)": (json_body({"error": "model 'x' not found"}, 404), "model 'x' not found"),
    "quota": (error(429, "You exceeded your current quota", code="insufficient_quota"), "no credit is left"),
    "no credit (OpenRouter)": (error(402, "Insufficient credits", code=402), "no credit is left"),
    "a redirect": (raw(b"", 308, Location="http://127.0.0.1:9/v1"), "set base_url"),
    "a request that is wrong": (error(400, "messages: field required"), "field required"),
}


@pytest.mark.parametrize("name", FATAL)
def test_what_no_call_can_change_stops_the_run_and_consumes_no_step(
    name: str, at: At, stub: Stub, simulate: Simulate, tmp_path: Path, waits: list[float]
) -> None:
    behaviour, says = FATAL[name]
    stub.otherwise = behaviour
    with pytest.raises(ModelRefuses, match=says):
        simulate("random", steps=2, model=Models({"*": at()}))
    assert len(stub.received) == 1 and not waits
    stub.otherwise = reply()
    history = simulate("random", steps=2, model=Models({"*": at()}))
    assert [step.outcome.status for step in history.trials] == ["ok", "ok"], "and it can be resumed"


# --- secrets --------------------------------------------------------------------------------------------------------


def test_keys_and_headers_reach_no_file_of_the_run_and_no_message(
    at: At, stub: Stub, simulate: Simulate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server echoes them wherever it can: in replies, in names, in errors that pass and in one that does not."""
    monkeypatch.setenv("STUB_KEY", KEY)
    header = f"token/{secrets.token_hex(8)}+42"
    echo = f"you sent Bearer {KEY} and {header}"
    stub.script = [
        error(429, echo),
        json_body({"choices": [], "note": echo}),
        reply(echo, refusal=echo),
        json_body({"model": KEY, "choices": [{"message": {"content": f"{echo}\n{ANSWER}"}}], "usage": {"note": echo}}),
        reply(f'{{"score": 1, "why": "{echo}"}}'),
        error(400, f"{'x' * 450} {KEY} {header}", code=KEY),
    ]

    async def search(lab: Lab, params: Params) -> None:
        await lab.ask("idea", PROMPT)
        await lab.trial(await lab.edit(lab.brief.baseline, "go"))
        assert (await lab.ask("idea", PROMPT, SCHEMA)).parsed["why"] == "you sent Bearer *** and ***"
        await lab.ask("idea", PROMPT)

    model = at(key_env="STUB_KEY", headers={"X-Team": header})
    with pytest.raises(ModelRefuses) as refused:
        simulate(search, steps=2, model=Models({"*": model}))
    said = str(refused.value) + repr(refused.value.__cause__) + repr(vars(model)["name"])
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 3 and any(b"***" in content for content in files)
    for secret in (KEY, header):
        assert secret not in said and secret[:12] not in said
        assert not [content for content in files if secret.encode() in content]


# --- from the command line ------------------------------------------------------------------------------------------


def labcoat_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    command = ["run", "sim/valley", "--strategy", "random", "--steps", "1", "--model", "openai:stub", "--runs"]
    monkeypatch.setattr(sys, "argv", ["labcoat", *command, str(tmp_path / "runs")])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), "".join(capsys.readouterr())


def test_progress_tells_that_a_run_waits_and_a_refusal_is_one_message_with_its_exit_code(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    stub.script = [reply(), error(401, f"Incorrect API key provided: {KEY}")]
    code, text = labcoat_run(tmp_path, monkeypatch, capsys)
    assert code == 2 and "Traceback" not in text
    assert f"labcoat: openai:stub: {stub.url} refuses: 401: Incorrect API key provided: *** (is the key right?)" in text
    stub.script = [error(429, "Slow down", Retry_After="0")]
    code, text = labcoat_run(tmp_path, monkeypatch, capsys)
    assert code == 0 and "openai:stub is away (429: Slow down); asking again in" in text


def test_a_finished_run_and_its_replay_need_neither_endpoint_nor_key(
    at: At, stub: Stub, simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    history = simulate("random", steps=2, model=Models({"*": at(key_env="STUB_KEY")}))
    monkeypatch.delenv("STUB_KEY")
    stub.otherwise = error(500)
    asked = len(stub.received)
    assert simulate("random", steps=2, model=Models({"*": at(key_env="STUB_KEY")})).folder == history.folder
    assert labcoat.replay(history).trials == 2
    assert len(stub.received) == asked


def test_naming_a_model_loads_no_sdk() -> None:
    program = (
        "import sys, labcoat.api, labcoat.cli; from labcoat.models import load; load('openai:x'); load('inspect:a/b');"
        "sys.exit(str({'openai', 'httpx2', 'httpx', 'fastjsonschema', 'inspect_ai'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stderr.strip() == "set()"
