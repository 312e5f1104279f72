"""One tiny call, and what it shows."""

from __future__ import annotations

from collections.abc import Callable

from labcoat.models.endpoint import EndpointModel
from labcoat.models.examine import examine
from labcoat.models.scripted import ScriptedModel
from tests.models.stub_server import USAGE, Stub, error, json_body, reply

At = Callable[..., EndpointModel]


def test_an_endpoint_that_can_do_all(at: At, stub: Stub) -> None:
    stub.models = json_body({"data": [{"id": "stub", "max_model_len": 32_768}]})
    stub.script = [reply('{"sum": 5}', usage=USAGE | {"cost": 0.001})]
    found = {finding.what: finding for finding in examine(at())}
    assert list(found) == ["answer", "schema", "usage", "price", "window"]
    assert {finding.state for finding in found.values()} == {"ok"}
    assert "from stub-2026-01-01" in found["answer"].says
    assert found["usage"].says == "input_uncached 100, output 40"
    assert "0.001 USD" in found["price"].says and "24576 tokens" in found["window"].says
    assert len(stub.received) == 1


def test_an_endpoint_that_tells_nothing_is_usable_and_what_is_unknown_is_said(at: At, stub: Stub) -> None:
    stub.models = error(404)
    stub.script = [error(400, "response_format is not supported"), reply('The answer is {"sum": 5}.', usage=None)]
    found = {finding.what: finding for finding in examine(at())}
    assert (found["answer"].state, found["schema"].state) == ("ok", "ok")
    assert "the endpoint takes none" in found["schema"].says
    assert {found[what].state for what in ("usage", "price", "window")} == {"unknown"}
    assert "does not take response_format" in found["note"].says


def test_a_model_that_never_meets_a_schema(at: At, stub: Stub) -> None:
    stub.otherwise = reply("five")
    found = {finding.what: finding for finding in examine(at())}
    assert found["schema"].state == "failed" and "schema_never_met" in found["schema"].says


def test_what_does_not_answer_says_why(at: At, stub: Stub) -> None:
    stub.otherwise = error(401, "Incorrect API key")
    (finding,) = examine(at())
    assert (finding.what, finding.state) == ("answer", "failed") and "Incorrect API key" in finding.says


def test_an_endpoint_that_is_away_is_not_waited_for(at: At, stub: Stub, waits: list[float]) -> None:
    stub.models = stub.otherwise = error(429, "Slow down", Retry_After="7")
    (finding,) = examine(at())
    assert finding.state == "failed" and "429: Slow down" in finding.says
    assert (waits, len(stub.received)) == ([], 1)


def test_a_refusal_is_no_answer(at: At, stub: Stub) -> None:
    stub.otherwise = reply(None, refusal="No sums.")
    found = {finding.what: finding for finding in examine(at())}
    assert found["answer"].state == "failed" and "No sums." in found["answer"].says


def test_other_models_can_be_examined_too() -> None:
    found = {finding.what: finding for finding in examine(ScriptedModel(['{"sum": 5}']))}
    assert (found["answer"].state, found["schema"].state, found["usage"].says) == ("ok", "ok", "none")
