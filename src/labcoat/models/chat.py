"""The chat protocol: prompt in, reply out. One screen; everything else about models builds on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from labcoat.errors import InputError, Stopped
from labcoat.tree import sha256

Finish = Literal["stop", "length", "refusal", "context_too_long", "schema_never_met"]

ROOM = 24_000
"""Tokens that a prompt may have where nothing is known of the model."""
BYTES_PER_TOKEN = 3


@dataclass(frozen=True)
class Part:
    """A named piece of a prompt: ``task``, ``metric``, ``file`` (with a path), ``history``, ``instruction``."""

    name: str
    text: str
    path: str = ""
    items: tuple[str, ...] = ()
    """What follows the text, oldest first: a memory, of which a prompt keeps as much as there is room for."""

    def packed(self, left_out: int) -> Part:
        """The same as plain text, without the oldest ``left_out`` items."""
        if not self.items:
            return self
        said = [f"({left_out} earlier left out)"] if left_out else []
        return Part(self.name, "\n".join([self.text, *said, *self.items[left_out:]]), self.path)

    def render(self) -> str:
        """The part as a model reads it; files are fenced under their path, with a fence longer than any inside."""
        if self.name != "file":
            return self.text
        ticks = 3
        while "`" * ticks in self.text:
            ticks += 1
        fence = "`" * ticks
        return f"### FILE: {self.path}\n{fence}\n{self.text.rstrip()}\n{fence}"


@dataclass(frozen=True)
class Prompt:
    """A prompt as a list of named parts, stored by part."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, parts: Iterable[Part | None]) -> Prompt:
        """A prompt of the parts that are there and not empty."""
        return cls(tuple(part for part in parts if part is not None and part.text.strip()))

    def packed(self, room: int) -> Prompt:
        """The prompt within ``room`` tokens, as far as leaving out items can bring it there.

        The oldest item goes first, of the part whose items take most: one rule for all strategies.
        """
        sizes = [[len(item.encode()) + 1 for item in part.items] for part in self.parts]
        held, left_out = [sum(own) for own in sizes], [0] * len(sizes)
        fixed = sum(len(part.packed(len(part.items)).render().encode()) + 2 for part in self.parts)
        while fixed + sum(held) > room * BYTES_PER_TOKEN and any(held):
            longest = max(range(len(held)), key=held.__getitem__)
            held[longest] -= sizes[longest][left_out[longest]]
            left_out[longest] += 1
        return Prompt(tuple(part.packed(gone) for part, gone in zip(self.parts, left_out, strict=True)))

    @property
    def tokens(self) -> int:
        """About how many tokens it has."""
        return -(-len(self.text.encode()) // BYTES_PER_TOKEN)

    @property
    def text(self) -> str:
        """The whole prompt as one text."""
        return "\n\n".join(part.render() for part in self.parts)

    def get(self, name: str) -> str:
        """The text of all parts of that name, joined; empty if there is none."""
        return "\n\n".join(part.text for part in self.parts if part.name == name)

    def fingerprint(self) -> list[list[str]]:
        """Name, path and SHA-256 of each part: what a prompt is compared by."""
        return [[part.name, part.path, sha256(part.text.encode())] for part in self.parts]

    @property
    def files(self) -> dict[str, str]:
        """Text of the ``file`` parts by path."""
        return {part.path: part.text for part in self.parts if part.name == "file"}


@dataclass(frozen=True)
class Usage:
    """Tokens in named parts; providers count differently, these parts do not overlap (reasoning is inside output)."""

    input_uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    of_which_reasoning: int = 0

    @property
    def total(self) -> int:
        """All tokens of the call."""
        return self.input_uncached + self.cache_read + self.cache_write + self.output

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(**{part: count + getattr(other, part) for part, count in vars(self).items()})


@dataclass(frozen=True)
class Reply:
    """What a model answered. ``cost`` is in USD, None where the endpoint tells none; times are in seconds."""

    text: str
    parsed: Any = None
    usage: Usage = field(default_factory=Usage)
    """All that was used for it, by tries in vain too."""
    cost: float | None = None
    latency: float = 0.0
    """Spent in requests; what was waited between them is not in it."""
    finish: Finish = "stop"
    usage_estimated: bool = False
    """Whether a part of the usage is not what the endpoint said, but what the bytes make likely."""
    requests: int = 1
    """How many it took."""
    waited: float = 0.0
    """Seconds waited for the endpoint; they count in no budget."""
    served: str = ""
    """The model that answered, as the endpoint calls it."""

    def after(self, earlier: Reply) -> Reply:
        """This reply, with what an earlier one for the same call took added to it."""
        return replace(
            self,
            usage=self.usage.plus(earlier.usage),
            cost=None if self.cost is None or earlier.cost is None else self.cost + earlier.cost,
            latency=self.latency + earlier.latency,
            usage_estimated=self.usage_estimated or earlier.usage_estimated,
            requests=self.requests + earlier.requests,
            waited=self.waited + earlier.waited,
        )

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of an object that was asked for by a schema; none if the model did not keep to it."""
        return self.parsed if isinstance(self.parsed, dict) else {}

    def to_json(self) -> dict[str, Any]:
        """Plain data for the journal."""
        return {**vars(self), "usage": dict(vars(self.usage))}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Reply:
        """The inverse of :meth:`to_json`; unknown fields of later versions are passed over."""
        known = {k: v for k, v in data.items() if k in cls.__dataclass_fields__}
        usage = {k: v for k, v in data.get("usage", {}).items() if k in Usage.__dataclass_fields__}
        return cls(**known | {"usage": Usage(**usage)})


@dataclass(frozen=True)
class Call:
    """The circumstances of one call, for the models that depend on them (offline, scripted, replay)."""

    purpose: str
    key: str  # scope and ordinal in the journal
    index: int  # how many model calls the run made before this one
    seed: int  # derived from the run's seed and the key
    schema: dict[str, Any] | None = None
    tell: Callable[[str], None] = field(default=lambda text: None, compare=False, repr=False)
    """Hears of waits, and of what the endpoint does not take."""


class ModelAway(Stopped):
    """The endpoint cannot be reached or is overloaded: the run stops here and can be resumed."""

    spent: Reply | None = None
    """What the call had taken until then, if anything."""


class ModelRefuses(InputError):
    """No call can succeed as things are (bad key, unknown model, nothing recorded): the run stops."""

    spent: Reply | None = None


class Model(Protocol):
    """A chat model. ``chat`` raises ModelAway (transient) or ModelRefuses (permanent for the run)."""

    name: str
    constants_only: bool
    """Whether its edits can change nothing but literals: only then may a run go on without a sandbox."""

    def room(self, purpose: str) -> int:
        """Tokens that a prompt for ``purpose`` may have, its reply not counted."""
        ...

    def chat(self, prompt: Prompt, call: Call) -> Reply:
        """Answer one prompt."""
        ...


@runtime_checkable
class AtEndpoint(Protocol):
    """What a model tells of the endpoint that it asks, if it asks one."""

    model: str
    """The model as the endpoint calls it."""
    place: str
    """The endpoint's name."""
    url: str
    """Its address: says whose prices hold."""
    at_once: int | None
    """Most calls at once of all labcoat processes on this machine; None for any number."""
