"""The contract of usage: equal named parts, however a provider counts."""

from __future__ import annotations

from typing import Any

import pytest

from labcoat.models import Usage
from labcoat.models.usage import estimated, read_cost, read_usage

# The same call everywhere: 1000 tokens of prompt, of which 600 were read from a cache; 300 of reply, of which 200 were
# reasoning.
SAME = Usage(input_uncached=400, cache_read=600, output=300, of_which_reasoning=200)
REPORTS: dict[str, dict[str, Any]] = {
    "OpenAI": {
        "prompt_tokens": 1000, "completion_tokens": 300, "total_tokens": 1300,
        "prompt_tokens_details": {"cached_tokens": 600, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 200, "accepted_prediction_tokens": 0},
    },
    "OpenRouter": {
        "prompt_tokens": 1000, "completion_tokens": 300, "total_tokens": 1300, "cost": 0.01,
        "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 200},
    },
    "DeepSeek": {
        "prompt_tokens": 1000, "completion_tokens": 300, "total_tokens": 1300,
        "prompt_cache_hit_tokens": 600, "prompt_cache_miss_tokens": 400,
        "completion_tokens_details": {"reasoning_tokens": 200},
    },
    "xAI: reasoning beside the reply": {
        "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1300,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 200},
    },
    "Gemini: reasoning in the total alone": {
        "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1300,
        "prompt_tokens_details": {"cached_tokens": 600},
    },
    "Anthropic: cache beside the input": {
        "input_tokens": 400, "output_tokens": 300, "cache_read_input_tokens": 600, "cache_creation_input_tokens": 0,
        "reasoning_tokens": 200,
    },
    "Anthropic through a proxy, beside": {
        "prompt_tokens": 400, "completion_tokens": 300, "total_tokens": 1300, "cache_read_input_tokens": 600,
        "completion_tokens_details": {"reasoning_tokens": 200},
    },
    "Anthropic through LiteLLM, inside": {
        "prompt_tokens": 1000, "completion_tokens": 300, "total_tokens": 1300, "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 0, "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 200},
    },
}  # fmt: skip


@pytest.mark.parametrize("provider", REPORTS)
def test_the_same_call_has_the_same_parts_everywhere(provider: str) -> None:
    assert read_usage(REPORTS[provider]) == SAME


@pytest.mark.parametrize(
    "report",
    [
        {"prompt_tokens": 1000, "completion_tokens": 30, "prompt_tokens_details": {"cache_write_tokens": 900}},
        {"prompt_tokens": 100, "completion_tokens": 30, "cache_creation_input_tokens": 900, "total_tokens": 1030},
        {"input_tokens": 100, "output_tokens": 30, "cache_creation_input_tokens": 900},
    ],
    ids=["inside", "beside", "Anthropic"],
)
def test_what_is_written_to_a_cache_has_a_part_of_its_own(report: dict[str, Any]) -> None:
    assert read_usage(report) == Usage(input_uncached=100, cache_write=900, output=30)


@pytest.mark.parametrize(
    "report",
    [
        None, [], "many", {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"completion_tokens": 5},
        {"prompt_tokens": -1, "completion_tokens": 5}, {"prompt_tokens": 1.5}, {"prompt_tokens": True},
        {"prompt_tokens": float("nan")}, {"prompt_tokens": 10, "completion_tokens": 10**12}, {"prompt_tokens": "10"},
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": -3}},
        {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": float("inf")},
    ],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_true_is_not_reported(report: Any) -> None:
    assert read_usage(report) is None


@pytest.mark.parametrize("details", [None, [], "none", {"cached_tokens": None}])
def test_details_may_be_missing(details: Any) -> None:
    report = {"prompt_tokens": 10.0, "completion_tokens": 5, "prompt_tokens_details": details}
    assert read_usage(report) == Usage(input_uncached=10, output=5)


def test_three_bytes_are_estimated_as_a_token() -> None:
    assert estimated(10, 0) == Usage(input_uncached=4)


@pytest.mark.parametrize(
    ("report", "cost"),
    [({"cost": 0.25}, 0.25), ({"cost": 0}, 0.0), ({}, None), (None, None), ({"cost": -1}, None), ({"cost": "1"}, None)],
)
def test_the_cost_is_what_is_reported(report: Any, cost: float | None) -> None:
    assert read_cost(report) == cost
