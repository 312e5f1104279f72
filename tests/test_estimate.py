"""An estimate: the strategy's real prompts on the real task, at the prices of today, and nothing is begun."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labcoat.api import origin_of
from labcoat.budget import Spent
from labcoat.estimating import GUESSES, Guess, estimate
from labcoat.history import History
from labcoat.models import Call, ModelRefuses, Models, Prompt, Reply, Usage
from labcoat.models.offline import OfflineMutator
from labcoat.models.prices import given
from labcoat.models.scripted import ScriptedModel
from labcoat.plan import Plan

Simulate = Callable[..., History]


def plan(model: str | Models = "offline:mutate", **options: Any) -> Plan:
    standard = {"task": "sim/ridge", "strategy": "autoresearch", "params": None, "steps": 30, "seed": 0}
    return Plan.of(model=model, **(standard | options))


def named(name: str) -> Models:
    return Models({"*": ScriptedModel([], name)})


def test_an_endpoint_that_is_away_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labcoat.toml").write_text('[endpoint.gone]\nbase_url = "http://127.0.0.1:9/v1"\n')
    begin = time.monotonic()
    guesses = estimate(plan("openai:x@gone", steps=1))
    assert total(guesses["low"]).calls == 2 and total(guesses["low"]).usd is None
    assert time.monotonic() - begin < 10, "its patience is 600 s"


def total(guess: dict[str, Spent]) -> Spent:
    return Spent.sum(guess.values())


def pieces(text: str) -> int:
    """Tokens as the pattern counts them by which usual tokenisers split a text first."""
    return len(re.findall(r" ?[A-Za-z]{1,9}| ?\d{1,3}| ?[^\w\s]+|\s+|_", text))


def test_a_recorded_run_lies_within_the_range_and_near_what_was_expected(simulate: Simulate) -> None:
    """With replies of the expected length from a model that counts as usual tokenisers do."""
    spoken = OfflineMutator()
    reasons = "This should help since the present value was only a first guess, and the trend of the trials so far "

    def answer(prompt: Prompt, call: Call) -> Reply:
        text = spoken.chat(prompt, call).text
        if call.purpose == "idea":
            text += " " + reasons * 9
        return Reply(text, usage=Usage(pieces(prompt.text), output=pieces(text)))

    models = Models({"*": ScriptedModel(answer, "openai:x")})
    guesses = {name: total(found) for name, found in estimate(plan(models)).items()}
    spent = simulate("autoresearch", task="sim/ridge", steps=30, model=models).ledger.total
    assert guesses["low"].input < spent.input < guesses["high"].input
    assert guesses["low"].calls == guesses["high"].calls
    assert spent.calls <= guesses["expected"].calls == 60
    assert abs(guesses["expected"].input / spent.input - 1) < 0.25


def test_money_follows_from_the_prices_of_each_purpose() -> None:
    models = Models({"edit": ScriptedModel([], "openai:a"), "*": ScriptedModel([], "openai:b")})
    for guess in estimate(plan(models, given=given(["openai:a=1,10", "openai:b=2,0"]))).values():
        edit, idea = guess["edit"], guess["idea"]
        assert edit.usd == pytest.approx((edit.input + 10 * edit.output) / 1e6)
        assert idea.usd == pytest.approx(2 * idea.input / 1e6)


def test_an_unknown_price_is_said_to_be_unknown_and_offline_costs_nothing() -> None:
    assert {total(guess).usd for guess in estimate(plan(named("openai:nobody-knows"))).values()} == {None}
    assert {total(guess).usd for guess in estimate(plan()).values()} == {0.0}
    published = [total(guess).usd or 0.0 for guess in estimate(plan(named("openai:gpt-4o-mini"))).values()]
    assert 0 < published[0] < published[1] < published[2]


def test_what_a_fork_shares_is_not_estimated_again(simulate: Simulate) -> None:
    first = simulate("autoresearch", task="sim/ridge", steps=20)
    fork = plan(named("openai:x"), origin=origin_of(f"{first.folder}:18"))
    shared = sum(e["kind"] in ("ask", "edit") for e in fork.origin.events) if fork.origin else 0
    assert {total(guess).calls for guess in estimate(fork).values()} == {24}
    assert shared > 24


def test_no_key_is_needed() -> None:
    class Keyless(ScriptedModel):
        def room(self, purpose: str) -> int:
            raise ModelRefuses("no key")

    guesses = estimate(plan(Models({"*": Keyless([], "openai:x")})))
    assert guesses == estimate(plan(named("openai:x")))


def test_every_shipped_strategy_and_task_can_be_estimated() -> None:
    for task in ("sim/valley", "fml/gcastle-notears"):
        for strategy in ("random", "autoresearch"):
            guesses = estimate(plan(task=task, strategy=strategy, steps=4))
            assert {total(guess).calls for guess in guesses.values()} == {8}


def test_a_longer_reply_makes_later_prompts_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GUESSES, "low", Guess(4, 100, 100, False, 0))
    monkeypatch.setitem(GUESSES, "high", Guess(4, 500, 100, False, 1000))
    guesses = estimate(plan(steps=10))
    assert guesses["high"]["idea"].input > guesses["low"]["idea"].input + 40 * 400
    assert guesses["high"]["edit"].output == 10 * 1100
    assert guesses["high"]["edit"].of_which_reasoning == 10 * 1000


def test_the_command_prints_it_and_begins_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABCOAT_HOME", str(tmp_path / "home"))
    done = subprocess.run(
        [sys.executable, "-c", "from labcoat.cli import main; main()", "run", "fml/fairlearn-adult", "--steps", "100",
         "--runs", str(tmp_path / "runs"), "--estimate"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "idea: offline:mutate" in done.stdout
    for name, out in (("low", "7,500"), ("expected", "25,000"), ("high", "500,000")):
        assert re.search(rf"^idea +{name} +100 +[\d,]+ +{out} +\$0$", done.stdout, re.M)
        assert re.search(rf"^all +{name} +200 ", done.stdout, re.M)
    assert "expected: 4 bytes a token, 250 tokens for an answer, 500 for an edit" in done.stdout
    assert list(tmp_path.iterdir()) == []
