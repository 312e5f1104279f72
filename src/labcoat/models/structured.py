"""Structured replies: JSON is found in a reply's text and checked against a schema; what fails is asked again.

A strategy sees the same whether the endpoint enforces schemas, ignores them, or is no endpoint at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Never

from labcoat.errors import InputError
from labcoat.models.chat import ModelAway, ModelRefuses, Reply

TRIES = 3
"""The first and those after a reply that did not fit."""
MOST_STARTS = 1000
"""Places in a text where JSON is looked for."""
MOST_READ = 8 << 20
"""Characters that are read in vain for it: what is open at many places and never closed is read from each."""
DEEPEST = 100

Turn = dict[str, str]
Schema = dict[str, Any]
Check = Callable[[Any], Any]


def structured(complete: Callable[[list[Turn]], Reply], text: str, schema: Schema) -> Reply:
    """Ask until the reply fits ``schema``, a few times; what all tries used is added up.

    The schema stands in the prompt also where the endpoint enforces it: the model reads the same everywhere.
    """
    check = checker(schema)
    first: Turn = {"role": "user", "content": f"{text}\n\n{_form(schema)}"}
    turns = [first]
    so_far: Reply | None = None
    for _ in range(TRIES):
        try:
            reply = complete(turns)
        except (ModelAway, ModelRefuses) as error:
            error.spent = sum_of(so_far, error.spent)
            raise
        so_far = reply if so_far is None else reply.after(so_far)
        if reply.finish != "stop":
            return so_far
        value, why = _read(reply.text, check)
        if not why:
            return replace(so_far, parsed=value)
        again = f"This reply does not fit: {why}\nReply again. {_form(schema)}"
        turns = [first, {"role": "assistant", "content": reply.text}, {"role": "user", "content": again}]
    assert so_far is not None
    return replace(so_far, finish="schema_never_met")


def read(reply: Reply, schema: Schema | None) -> Reply:
    """The reply with what its text says, for models that are not asked again."""
    if schema is None or reply.finish != "stop":
        return reply
    value, why = _read(reply.text, checker(schema))
    return replace(reply, finish="schema_never_met") if why else replace(reply, parsed=value)


def is_strict(schema: Any) -> bool:
    """Whether every object in it is closed and needs all its fields, which strict endpoints ask for."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    fields = schema.get("properties")
    if schema.get("type") == "object" or isinstance(fields, dict):
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(fields or ()):
            return False
    return all(map(is_strict, schema.values()))


def sum_of(earlier: Reply | None, later: Reply | None) -> Reply | None:
    """Both together, where there are two."""
    return later.after(earlier) if earlier and later else earlier or later


def checker(schema: Schema) -> Check:
    """A function that raises ``fastjsonschema.JsonSchemaValueException`` for what does not fit.

    Raises:
        InputError: ``schema`` is no JSON schema.
    """
    return _checker(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=100)
def _checker(schema: str) -> Check:
    import fastjsonschema

    try:
        check: Check = fastjsonschema.compile(json.loads(schema), use_default=False)
    except (fastjsonschema.JsonSchemaDefinitionException, AttributeError, TypeError) as error:
        raise InputError(f"the strategy asks for a reply by something that is no JSON schema: {error}") from None
    return check


def _read(text: str, check: Check) -> tuple[Any, str]:
    """The last value in ``text`` that fits, or why none does."""
    from fastjsonschema import JsonSchemaValueException

    why = ""
    for value in reversed(list(_values(text))):
        try:
            if _too_deep(value):
                raise JsonSchemaValueException("it is nested too deep")
            check(value)
        except JsonSchemaValueException as error:
            why = why or error.message
        else:
            return value, ""
    return None, why or "there is no JSON in it"


def _values(text: str) -> Iterator[Any]:
    """The JSON values in a text: it as a whole, or else each object and array that stands in it."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    try:
        yield decoder.decode(text.strip())
        return
    except (ValueError, RecursionError):
        pass
    at, in_vain = 0, 0
    for _ in range(MOST_STARTS):
        at = min((found for found in (text.find("{", at), text.find("[", at)) if found >= 0), default=-1)
        if at < 0 or in_vain > MOST_READ:
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            in_vain += getattr(error, "pos", len(text)) - at
            at += 1
        else:
            yield value


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        lists = [list(v.values()) if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)]
        level = [inner for inners in lists for inner in inners]
    return bool(level)


def _no_constant(name: str) -> Never:
    raise ValueError(name)  # NaN and Infinity are no JSON


def _form(schema: Schema) -> str:
    return f"Answer with JSON only, no other text, that fits this JSON schema:\n{json.dumps(schema, indent=1)}"
