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

Rate = dict[str, float]
"""USD per million tokens of each part of usage, for calls with more than ``above`` tokens of input.

Parts are the fields of :class:`Usage`; reasoning counts apart from the rest of the output.
"""


class Reference(NamedTuple):
    """What a model is known by in the table of prices: its provider by name or by address."""

    name: str
    provider: str = ""
    url: str = ""


@dataclass(frozen=True)
class Price:
    """What each part of usage costs, where that is from, and the day it was looked up."""

    rates: Sequence[Rate]
    """Rising: providers raise the prices of a whole call once its input is long. The last that applies holds."""
    call: float
    """USD for each call, beside its tokens."""
    source: str
    date: str

    def cost(self, usage: Usage) -> float | None:
        """USD of one call; None where tokens cost something and the endpoint told none."""
        tokens = vars(usage) | {"output": usage.output - usage.of_which_reasoning}
        if not usage.total and any(rate[part] for rate in self.rates for part in tokens):
            return None
        entered = usage.total - usage.output
        rate = [rate for rate in self.rates if entered > rate["above"] or not rate["above"]][-1]
        return self.call + math.fsum(rate[part] * count / 1e6 for part, count in tokens.items())

    def to_json(self) -> dict[str, Any]:
        """Plain data for the record."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Price:
        """The inverse of :meth:`to_json`."""
        return cls(data["rates"], data["call"], data["source"], data["date"])


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
            name, url = (model.model, model.url) if isinstance(model, AtEndpoint) else ("", "")
            found[purpose] = given.get(plain(model.name)) or find(model.name, name, url)
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


def plain(model: str) -> str:
    """A model's name without the parameters that it is asked with (``openai:NAME {"temperature":0}``)."""
    return model.partition(" {")[0]


def reference(model: str, name: str = "", url: str = "") -> Reference | None:
    """What ``model`` is called in the table of prices, None for a kind of model that the table cannot know.

    ``openai:NAME`` is OpenAI's own; ``openai:NAME@ENDPOINT`` that of the provider whose name the endpoint bears;
    ``inspect:PROVIDER/NAME`` names both. Where the model tells its ``name`` at an endpoint and the ``url`` of that,
    these decide: on another server the same name has another price.
    """
    if url:
        return Reference(name, url=url)
    kind, _, rest = plain(model).partition(":")
    if kind == "openai" and rest:
        return Reference(*(rest.rsplit("@", 1) if "@" in rest[1:] else (rest, "openai")))
    if kind == "inspect":
        provider, _, name = rest.removeprefix("openai-api/").partition("/")
        return Reference(name, provider) if name else None
    return None


def find(model: str, name: str = "", url: str = "") -> Price | None:
    """The price of a model today: nothing for one that asks no endpoint, None where none is published."""
    today = datetime.now(UTC).date().isoformat()
    if model.partition(":")[0] in FREE:
        return Price([flat(0.0, 0.0)], 0.0, "asks no endpoint", today)
    known = reference(model, name, url)
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
    owners = {
        "input_uncached": ("input_mtok",),
        "cache_read": ("cache_read_mtok", "input_mtok"),
        "cache_write": ("cache_write_mtok", "input_mtok"),
        "output": ("output_mtok",),
        "of_which_reasoning": ("output_reasoning_mtok", "output_mtok"),
    }
    steps: dict[str, dict[int, float]] = {}
    for part, names in owners.items():
        price = next((found for name in names if (found := getattr(entry, name)) is not None), None)
        if price is None:
            return None
        base, tiers = (price.base, price.tiers) if hasattr(price, "base") else (price, [])
        steps[part] = {0: float(base)} | {tier.start: float(tier.price) for tier in tiers}
    rates: list[Rate] = []
    for above in sorted({start for own in steps.values() for start in own}):
        before = rates[-1] if rates else {}
        rates.append({"above": above} | {part: own.get(above, before.get(part, 0.0)) for part, own in steps.items()})
    fee = getattr(entry, "requests_kcount", None)
    return Price(rates, 0.0 if fee is None else float(fee) / 1000, source, date)


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
        prices[model] = Price([flat(entered, left)], 0.0, "given by hand", datetime.now(UTC).date().isoformat())
    return prices


def flat(entered: float, left: float) -> Rate:
    """The same for all tokens that go in, and the same for all that come out, in every call."""
    return {
        "above": 0, "input_uncached": entered, "cache_read": entered, "cache_write": entered, "output": left,
        "of_which_reasoning": left,
    }  # fmt: skip
