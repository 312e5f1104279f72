"""Money: what a call costs. Prices are looked up once, when a run begins, and pinned into its record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from labcoat.errors import InputError
from labcoat.models.chat import AtEndpoint, Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

    from labcoat.models import Models

FREE = ("offline", "scripted", "replay")
"""Kinds of models that ask no endpoint."""

Rate = tuple[tuple[int, float], ...]
"""USD per million tokens for calls with more than so many tokens of input, rising from 0; the last that applies holds.

Providers raise all prices of a call once its input is long; a model without such steps has one entry.
"""


class Reference(NamedTuple):
    """What a model is known by in the table of prices: its provider by name or by address."""

    name: str
    provider: str = ""
    url: str = ""


@dataclass(frozen=True)
class Price:
    """What each part of usage costs, where that is from, and the day it was looked up."""

    rates: Mapping[str, Rate]
    """By part: the fields of :class:`Usage`, reasoning apart from the rest of the output."""
    call: float
    """USD for each call, beside its tokens."""
    source: str
    date: str

    def cost(self, usage: Usage) -> float | None:
        """USD of one call; None where tokens cost something and the endpoint told none."""
        if not usage.total and any(usd for rate in self.rates.values() for _, usd in rate):
            return None
        entered = usage.input_uncached + usage.cache_read + usage.cache_write
        tokens = vars(usage) | {"output": usage.output - usage.of_which_reasoning}
        return self.call + math.fsum(at(self.rates[part], entered) * count / 1e6 for part, count in tokens.items())

    def to_json(self) -> dict[str, Any]:
        """Plain data for the record."""
        return {**vars(self), "rates": {part: [list(step) for step in rate] for part, rate in self.rates.items()}}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Price:
        """The inverse of :meth:`to_json`."""
        rates = {part: tuple((start, usd) for start, usd in rate) for part, rate in data["rates"].items()}
        return cls(rates, data["call"], data["source"], data["date"])


class Prices:
    """The prices of a run by purpose, ``*`` for every other; None is a price that nobody knows."""

    def __init__(self, by_purpose: Mapping[str, Price | None]) -> None:
        """A purpose that is not there has no known price either."""
        self.by_purpose = by_purpose

    @classmethod
    def look_up(cls, models: Models, given: Mapping[str, Price]) -> Prices:
        """The price of each model: the one that is given for it by hand, else the one that is published."""
        found = {}
        for purpose, model in sorted(models.by_purpose.items()):
            url = model.url if isinstance(model, AtEndpoint) else ""
            found[purpose] = given.get(model.name) or find(model.name, url)
        return cls(found)

    def of(self, purpose: str) -> Price | None:
        """The price of the model for a purpose."""
        return self.by_purpose.get(purpose, self.by_purpose.get("*"))

    def cost(self, purpose: str, usage: Usage) -> float | None:
        """USD of one call, None where that is unknown."""
        price = self.of(purpose)
        return None if price is None else price.cost(usage)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the record."""
        return {purpose: price and price.to_json() for purpose, price in self.by_purpose.items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Prices:
        """The inverse of :meth:`to_json`."""
        return cls({purpose: price and Price.from_json(price) for purpose, price in data.items()})


def at(rate: Rate, entered: int) -> float:
    """USD per million tokens in a call with ``entered`` tokens of input."""
    return [usd for start, usd in rate if entered > start or not start][-1]


def reference(model: str, url: str = "") -> Reference | None:
    """What ``model`` is called in the table of prices, None for a kind of model that the table cannot know.

    ``openai:NAME`` is OpenAI's own; ``openai:NAME@ENDPOINT`` that of the provider whose name the endpoint bears;
    ``inspect:PROVIDER/NAME`` names both. A ``url`` decides before any name: on another server the same name has
    another price.
    """
    kind, _, rest = model.partition(":")
    if kind == "openai" and rest:
        name, _, endpoint = rest.rpartition("@") if "@" in rest[1:] else (rest, "", "openai")
        return Reference(name, url=url) if url else Reference(name, endpoint)
    if kind == "inspect":
        provider, _, name = rest.removeprefix("openai-api/").partition("/")
        return Reference(name, provider) if name else None
    return None


def find(model: str, url: str = "") -> Price | None:
    """The price of a model today: nothing for one that asks no endpoint, None where none is published."""
    today = datetime.now(UTC).date().isoformat()
    if model.partition(":")[0] in FREE:
        return Price(dict.fromkeys(vars(Usage()), ((0, 0.0),)), 0.0, "asks no endpoint", today)
    known = reference(model, url)
    if known is None:
        return None
    import genai_prices
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()  # the one in the package: nothing is fetched
    if known.provider and known.provider not in {provider.id for provider in snapshot.providers}:
        return None  # or `my-openai-proxy` would be taken for OpenAI
    try:
        provider, entry = snapshot.find_provider_model(known.name, None, known.provider or None, known.url or None)
    except LookupError:
        return None
    source = f"genai-prices {genai_prices.__version__}: {provider.id}/{entry.id}"
    return published(entry.get_prices(datetime.now(UTC)), source, today)


def published(entry: ModelPrice, source: str, date: str) -> Price | None:
    """An entry of the table in our parts; None where it has no price for input or for output.

    A part without a price of its own costs what the part costs that it belongs to.
    """

    def rate(*names: str) -> Rate | None:
        price = next((found for name in names if (found := getattr(entry, name)) is not None), None)
        if price is None:
            return None
        base, tiers = (price.base, price.tiers) if hasattr(price, "base") else (price, [])
        return (0, float(base)), *((tier.start, float(tier.price)) for tier in tiers)

    rates = {
        "input_uncached": rate("input_mtok"),
        "cache_read": rate("cache_read_mtok", "input_mtok"),
        "cache_write": rate("cache_write_mtok", "input_mtok"),
        "output": rate("output_mtok"),
        "of_which_reasoning": rate("output_reasoning_mtok", "output_mtok"),
    }
    whole = {part: found for part, found in rates.items() if found is not None}
    fee = getattr(entry, "requests_kcount", None)
    call = 0.0 if fee is None else float(fee) / 1000
    return Price(whole, call, source, date) if len(whole) == len(rates) else None


def given(texts: Sequence[str]) -> dict[str, Price]:
    """Read ``MODEL=IN,OUT``, in USD per million tokens; cached input costs as much as other input.

    Raises:
        InputError: naming the one that is wrong.
    """
    prices = {}
    for text in texts:
        model, _, numbers = text.rpartition("=")
        try:
            entered, left = (float(number) for number in numbers.split(","))
        except ValueError:
            entered = left = -1.0
        if not model or not (0 <= entered < math.inf and 0 <= left < math.inf):
            raise InputError(f"--price {text}: write it as MODEL=IN,OUT, in USD per million tokens")
        rates = {part: ((0, left if part in ("output", "of_which_reasoning") else entered),) for part in vars(Usage())}
        prices[model] = Price(rates, 0.0, "given by hand", datetime.now(UTC).date().isoformat())
    return prices
