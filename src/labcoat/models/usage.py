"""Usage: tokens in named parts, read from what the many servers of the OpenAI protocol report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from labcoat.models.chat import BYTES_PER_TOKEN, Usage

MOST = 100_000_000
"""A single call has fewer tokens; a greater number is a defect of the server."""


def read_usage(reported: Any) -> Usage | None:
    """The parts of a ``usage`` object; None where it is missing, empty, or cannot be true.

    What differs between servers:

    - whether cached input is inside the prompt's tokens (OpenAI, DeepSeek, LiteLLM) or beside them (Anthropic);
    - whether reasoning is inside the reply's tokens (OpenAI) or beside them (xAI, and Gemini only in the total).
    """
    if not isinstance(reported, Mapping):
        return None
    prompt_details = _mapping(reported.get("prompt_tokens_details"))
    reply_details = _mapping(reported.get("completion_tokens_details"))
    try:
        read = _first(prompt_details, "cached_tokens")
        read = read or _first(reported, "cache_read_input_tokens", "prompt_cache_hit_tokens")
        write = _first(prompt_details, "cache_write_tokens") or _first(reported, "cache_creation_input_tokens")
        reasoning = _first(reply_details, "reasoning_tokens") or _first(reported, "reasoning_tokens")
        output = _first(reported, "completion_tokens", "output_tokens")
        prompt = _first(reported, "prompt_tokens", "input_tokens")
        total = _first(reported, "total_tokens")
    except ValueError:
        return None
    beside = prompt < read + write or (
        "prompt_tokens" not in reported or (read + write > 0 and total == prompt + output + read + write)
    )
    whole_prompt = prompt + read + write if beside else prompt
    if reasoning > output or total == whole_prompt + output + reasoning:
        output += reasoning
    elif not reply_details and total > whole_prompt + output:
        reasoning = total - whole_prompt - output
        output += reasoning
    if not whole_prompt or output > MOST or whole_prompt > MOST:
        return None
    return Usage(whole_prompt - read - write, read, write, output, reasoning)


def read_cost(reported: Any) -> float | None:
    """What the endpoint says that the call cost, in USD."""
    cost = reported.get("cost") if isinstance(reported, Mapping) else None
    sound = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < math.inf
    return float(cost) if sound else None  # type: ignore[arg-type]


def estimated(prompt_bytes: int, reply_bytes: int) -> Usage:
    """About what was used, where nobody says it."""
    return Usage(input_uncached=-(-prompt_bytes // BYTES_PER_TOKEN), output=-(-reply_bytes // BYTES_PER_TOKEN))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(reported: Mapping[str, Any], *names: str) -> int:
    """The first number of tokens that is given, 0 if none is.

    Raises:
        ValueError: it is no number of tokens.
    """
    for given in (reported[name] for name in names if reported.get(name) is not None):
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= MOST or given % 1:
            raise ValueError(given)
        if given:
            return int(given)
    return 0
