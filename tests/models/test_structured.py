"""JSON in replies: found, checked, and the same for every kind of model."""

from __future__ import annotations

import time
from typing import Any

import pytest

from labcoat.errors import InputError
from labcoat.models import Call, Part, Prompt, Reply
from labcoat.models.offline import OfflineMutator
from labcoat.models.scripted import ScriptedModel
from labcoat.models.structured import is_strict, read

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "score": {"type": "number", "minimum": 0}},
    "required": ["name", "score"],
    "additionalProperties": False,
}
CALL = Call("rate", "/0", 0, 0, SCHEMA)
PROMPT = Prompt.of([Part("instruction", "Rate it.")])
GOOD = '{"name": "a", "score": 1}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", f"Sure! Here it is:\n{GOOD}\nAnything else?",
        f'<think>maybe {{"name": "b", "score": 2}}, no</think>{GOOD}', f"f(x) = {{x}} and [1, 2], so {GOOD}",
        f"{GOOD} (not {{'name': 'b'}})", f"```\n{GOOD}\n```\n```\n[]\n```",
    ],
)  # fmt: skip
def test_the_last_value_that_fits_is_found_in_any_text(text: str) -> None:
    assert read(Reply(text), SCHEMA).parsed == {"name": "a", "score": 1}


@pytest.mark.parametrize(
    "text",
    [
        "", "no", "{", '{"name": "a"}', '{"name": "a", "score": -1}', '{"name": "a", "score": 1, "more": 2}',
        '{"name": "a", "score": NaN}', '{"name": "a", "score": 1', f"[{GOOD}",
    ],
)  # fmt: skip
def test_what_does_not_fit_is_schema_never_met_with_its_text_kept(text: str) -> None:
    answer = read(Reply(text), SCHEMA)
    inner = text == f"[{GOOD}"  # broken around a whole object: that one counts
    assert (answer.finish, answer.text) == ("stop" if inner else "schema_never_met", text)


@pytest.mark.parametrize(
    "text", ["[" * 1_000_000, '{"a":' * 300_000, "{" * 500_000 + GOOD, "[" * 90_000 + "]" * 90_000]
)
def test_hostile_text_is_read_in_short_time(text: str) -> None:
    begin = time.monotonic()
    assert read(Reply(text), {"type": ["object", "array"]}).finish == "schema_never_met"
    assert time.monotonic() - begin < 5


def test_what_is_never_closed_is_not_read_again_and_again() -> None:
    text = "[" * 900 + "1," * 100_000
    begin = time.process_time()
    assert read(Reply(text), SCHEMA).finish == "schema_never_met"
    assert time.process_time() - begin < 4, "from each of 900 places it would take ten times as long"
    assert read(Reply(text[:2000] + GOOD), SCHEMA).parsed == {"name": "a", "score": 1}


def test_no_value_is_nested_deeper_than_a_journal_can_write() -> None:
    assert read(Reply("[" * 500 + "]" * 500), {"type": "array"}).finish == "schema_never_met"


def test_a_refusal_stays_a_refusal_and_without_a_schema_nothing_is_read() -> None:
    assert read(Reply(GOOD, finish="refusal"), SCHEMA) == Reply(GOOD, finish="refusal")
    assert read(Reply(GOOD), None) == Reply(GOOD)


def test_scripted_and_offline_models_answer_as_an_endpoint_does() -> None:
    scripted = ScriptedModel([f"Well: {GOOD}", "no"])
    assert scripted.chat(PROMPT, CALL).parsed == {"name": "a", "score": 1}
    assert scripted.chat(PROMPT, Call("rate", "/1", 1, 0, SCHEMA)).finish == "schema_never_met"
    offline = OfflineMutator().chat(PROMPT, CALL)
    assert offline.finish == "stop" and offline.text and set(offline.parsed) == {"name", "score"}


def test_what_is_no_schema_is_the_strategys_error() -> None:
    with pytest.raises(InputError, match="is no JSON schema"):
        read(Reply(GOOD), {"type": "thing"})


def test_only_closed_objects_with_all_fields_needed_are_strict() -> None:
    assert is_strict(SCHEMA)
    assert is_strict(
        {"type": "object", "properties": {"of": SCHEMA}, "required": ["of"], "additionalProperties": False}
    )
    assert not is_strict(SCHEMA | {"required": ["name"]})
    assert not is_strict({"type": "object", "properties": {"a": {"type": "object"}}})
    assert not is_strict({"type": "array", "items": {"type": "object", "properties": {}}})
