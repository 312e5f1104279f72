"""Prices: found by what a model is called, pinned in our parts, and computed as their source computes them."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, ModelPrice

from labcoat.errors import InputError
from labcoat.models import Models, Usage
from labcoat.models.prices import Price, Prices, Reference, find, given, published, reference
from labcoat.models.scripted import ScriptedModel

CALLS = [
    Usage(1000, 0, 0, 100),
    Usage(1000, 5000, 700, 300, 200),
    Usage(0, 150_000, 60_000, 9000, 8000),
    Usage(1_200_000, 0, 0, 1, 0),
]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai:gpt-4o-mini", Reference("gpt-4o-mini", "openai")),
        ('openai:gpt-4o-mini {"temperature":0}', Reference("gpt-4o-mini", "openai")),
        ("openai:meta/llama-4@openrouter", Reference("meta/llama-4", "openrouter")),
        ("openai:@cf/meta/llama", Reference("@cf/meta/llama", "openai")),
        ("inspect:anthropic/claude-sonnet-4-5", Reference("claude-sonnet-4-5", "anthropic")),
        ("inspect:openai-api/groq/llama", Reference("llama", "groq")),
        ("inspect:nothing", None),
        ("openai:", None),
        ("else:gpt-4o-mini", None),
    ],
)
def test_what_a_model_is_called_in_the_table(model: str, expected: Reference | None) -> None:
    assert reference(model) == expected


class Remote(ScriptedModel):
    """A scripted model that says what endpoint it asks."""

    model, place, at_once = "gpt-4o-mini", "mine", None

    def __init__(self, name: str, url: str) -> None:
        super().__init__([], name)
        self.url = url


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://api.openai.com/v1", "openai/gpt-4o-mini"),
        ("https://openrouter.ai/api/v1", "openrouter/openai/gpt-4o-mini"),
        ("http://localhost:8000/v1", None),
    ],
)
def test_the_address_of_an_endpoint_decides_whatever_the_names(url: str, source: str | None) -> None:
    model = Remote('openai:gpt-4o-mini@openai {"temperature":0}', url)
    if source and source.startswith("openrouter"):
        model.model = "openai/gpt-4o-mini"
    price = Prices.look_up(Models({"*": model}), {}).of("idea")
    assert (price and price.source.rpartition(": ")[2]) == source


def test_a_known_model_has_a_price_with_source_and_date() -> None:
    price = find("openai:gpt-4o-mini")
    assert price is not None
    assert price.source == f"genai-prices {genai_prices.__version__}: openai/gpt-4o-mini"
    assert len(price.date) == len("2026-01-01")
    (rate,) = price.rates
    assert 0 < rate["cache_read"] < rate["input_uncached"] < rate["output"]


@pytest.mark.parametrize(
    "model",
    [
        "openai:no-such-model", "openai:gpt-4o-mini@my-openai-proxy", "openai:text-embedding-3-small",
        "else:gpt-4o-mini",
    ],
)  # fmt: skip
def test_a_price_is_never_guessed(model: str) -> None:
    assert find(model) is None


@pytest.mark.parametrize("model", ["offline:mutate", "scripted:a.jsonl@12", "replay:0123"])
def test_a_model_that_asks_no_endpoint_is_free(model: str) -> None:
    price = find(model)
    assert price is not None
    assert {price.cost(usage) for usage in [Usage(), *CALLS]} == {0.0}


def chat_models() -> list[tuple[str, ModelInfo, ModelPrice]]:
    """Models of the table that have prices for tokens in and out: all with steps in their prices, and some others."""
    found = []
    for provider in get_snapshot().providers:
        for number, model in enumerate(provider.models):
            if isinstance(model.prices, ModelPrice) and (price := published(model.prices, "", "")) is not None:
                if len(price.rates) > 1 or number % 10 == 0:
                    found.append((provider.id, model, model.prices))
    return found


def test_a_cost_is_what_the_source_itself_computes_also_with_long_contexts_and_caches() -> None:
    models = chat_models()
    assert len(models) > 200
    tiered = 0
    for provider, model, prices in models:
        price = published(prices, "", "")
        assert price is not None
        tiered += len(price.rates) > 1
        again = Price.from_json(json.loads(json.dumps(price.to_json())))
        assert again == price
        for usage in CALLS:
            theirs = genai_prices.Usage(
                input_tokens=usage.input_uncached + usage.cache_read + usage.cache_write,
                cache_read_tokens=usage.cache_read, cache_write_tokens=usage.cache_write,
                output_tokens=usage.output, output_reasoning_tokens=usage.of_which_reasoning,
            )  # fmt: skip
            expected = float(prices.calc_price(theirs)["total_price"])
            cost = again.cost(usage)
            assert cost is not None and math.isclose(cost, expected, rel_tol=1e-9, abs_tol=1e-15), (provider, model.id)
    assert tiered > 20


def test_an_endpoint_that_tells_no_usage_has_an_unknown_cost() -> None:
    price = given(["openai:x=1,2"])["openai:x"]
    assert price.cost(Usage()) is None
    assert price.cost(Usage(input_uncached=1_000_000, cache_read=500_000, output=250_000)) == 1 + 0.5 + 0.5


def test_a_price_by_hand_holds_for_its_model_alone() -> None:
    mine = ScriptedModel([], 'openai:mine {"top_p":1}')
    models = Models({"edit": mine, "*": ScriptedModel([], "openai:gpt-4o-mini")})
    prices = Prices.look_up(models, given(["openai:mine=0.25,1"]))
    edit, others = prices.of("edit"), prices.of("idea")
    assert edit is not None and others is not None
    assert (edit.source, edit.rates[0]["cache_read"], edit.rates[0]["output"]) == ("given by hand", 0.25, 1.0)
    assert others.source.endswith("openai/gpt-4o-mini")
    assert Prices.from_json(json.loads(json.dumps(prices.to_json()))).of("edit") == edit


@pytest.mark.parametrize(
    "text", ["openai:x", "openai:x=1", "=1,2", "openai:x=1,2,3", "openai:x=1,nan", "openai:x=-1,2"]
)
def test_a_price_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write it as MODEL=IN,OUT, in USD per million tokens"):
        given([text])


def test_runs_that_ask_no_endpoint_do_not_load_the_table(tmp_path: object) -> None:
    code = (
        "import sys, labcoat; labcoat.run(task='sim/valley', steps=1, runs=sys.argv[1]);"
        "sys.exit('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0
