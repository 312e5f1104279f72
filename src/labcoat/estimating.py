"""Estimate: tokens and money of a run before anything is spent.

The strategy is really driven, with its own prompts on the real task, in a world where every trial is valid and measures
the same. No model is asked, no worker started, no environment built; an endpoint is asked for its window alone. What no
one can know before, how a model counts and how much it says, is assumed three times: :data:`GUESSES`.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from labcoat.bench.outcome import Measure, Outcome
from labcoat.bench.simulated import SimulatedBench
from labcoat.budget import Limits, Spent
from labcoat.embedding.tokens import HashedTokens
from labcoat.errors import InputError
from labcoat.journal import Journal
from labcoat.kept import Kept
from labcoat.models import ROOM, Call, Model, Models, Part, Prompt, Reply, Usage
from labcoat.models.endpoint import EndpointModel
from labcoat.models.offline import instance
from labcoat.models.prices import Prices
from labcoat.plan import Plan
from labcoat.stages import make_driver
from labcoat.tree import Code

WORDS = "A sentence of the kind that a model writes about what it would change and why it should help. "


@dataclass(frozen=True)
class Guess:
    """What is assumed of a model."""

    bytes_per_token: float
    answer: int
    """Tokens of a reply that is no edit."""
    edit: int
    """Tokens of an edit, beside the files that it repeats."""
    whole_files: bool
    """Whether an edit repeats all editable files."""
    reasoning: int
    """Tokens of reasoning before each reply, billed as output."""


GUESSES = {
    "low": Guess(5, 75, 150, False, 0),
    "expected": Guess(4, 250, 500, False, 0),
    "high": Guess(3, 1000, 1000, True, 4000),
}


def estimate(plan: Plan) -> dict[str, dict[str, Spent]]:
    """What the search of a plan takes, by guess and purpose, in calls, tokens and, where prices are known, money."""
    prices = plan.prices()
    ahead = {purpose: _in_haste(model) for purpose, model in plan.models.by_purpose.items()}
    plan = replace(plan, models=Models(ahead))
    return {name: _drive(plan, guess, prices) for name, guess in GUESSES.items()}


def _in_haste(model: Model) -> Model:
    return model.in_haste() if isinstance(model, EndpointModel) else model


def _drive(plan: Plan, guess: Guess, prices: Prices) -> dict[str, Spent]:
    spent: dict[str, Spent] = defaultdict(Spent)
    models = {purpose: _Guessed(plan.models.of(purpose), guess, prices, spent) for purpose in plan.purposes}
    dry = replace(plan, models=Models(dict(models)), limits=Limits(), embedder=HashedTokens())
    with tempfile.TemporaryDirectory(prefix="labcoat-estimate-") as made:
        folder = Path(made)
        if plan.origin:  # what a fork shares is replayed, and not asked again
            plan.origin.write(folder, dry.rooms())
        with Journal(folder, write=True) as journal:
            make_driver(dry, journal, _Level(plan.task), Kept(folder / "best")).search(plan.params)
    return dict(spent)


class _Guessed:
    """Stands for a model: answers as long as is guessed, edits with a comment, and counts."""

    constants_only = True

    def __init__(self, model: Model, guess: Guess, prices: Prices, spent: dict[str, Spent]) -> None:
        self.name, self._model = model.name, model
        self._guess, self._prices, self._spent = guess, prices, spent

    def room(self, purpose: str) -> int:
        """What the model says; what holds where nothing is known if it needs a key to say it."""
        try:
            return self._model.room(purpose)
        except InputError:
            return ROOM

    def chat(self, prompt: Prompt, call: Call) -> Reply:
        guess, files = self._guess, prompt.files
        entered = len(prompt.text.encode())
        if call.purpose == "edit":
            left = guess.edit + (self._tokens(sum(map(len, files.values()))) if guess.whole_files else 0)
            path, text = next(iter(files.items()), ("", ""))
            reply = Reply(Part("file", f"{text.rstrip()}\n# {call.key}", path).render())
        else:
            left = guess.answer
            said = (WORDS * 1000)[: int(guess.answer * guess.bytes_per_token)]
            parsed = None if call.schema is None else instance(call.schema, random.Random(call.seed), said)
            reply = Reply(said, parsed)
        usage = Usage(self._tokens(entered), output=left + guess.reasoning, of_which_reasoning=guess.reasoning)
        self._spent[call.purpose].add_call(vars(usage), self._prices.cost(call.purpose, usage))
        return replace(reply, usage=usage, cost=0.0)

    def _tokens(self, size: int) -> int:
        return math.ceil(size / self._guess.bytes_per_token)


class _Level(SimulatedBench):
    """A bench on which every code is valid and as good as the baseline, as the card has it."""

    def _measure(self, code: Code, split: str, seed: int) -> Outcome:
        manifest = self.task.manifest
        card = manifest.references.baseline_val
        level = Measure([card.mean if card else 0.5], [None])
        names = {manifest.metric.name, *(bound.metric for bound in manifest.constraint)}
        slack = {manifest.name_of(bound): 0.0 for bound in manifest.constraint}
        return Outcome("ok", seed, dict.fromkeys(sorted(names), level), slack)
