"""Money: what a call costs is recorded with it, limited before it, and shown by purpose and by step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import labcoat
from labcoat.budget import LimitReached, Limits
from labcoat.cli.look import show
from labcoat.errors import InputError
from labcoat.history import History
from labcoat.lab import Lab, Params, Part, Prompt
from labcoat.models import Call, Models, Reply, Usage
from labcoat.models.prices import Price, Prices
from labcoat.models.scripted import ScriptedModel
from labcoat.replaying import replay

Simulate = Callable[..., History]
USAGE = Usage(input_uncached=1000, cache_read=400, cache_write=100, output=50, of_which_reasoning=20)


def code(epochs: int) -> str:
    lines = ["LEARNING_RATE = 0.1", "WEIGHT_DECAY = 0.02", "HIDDEN_UNITS = 32", "DROPOUT = 0.5", f"EPOCHS = {epochs}"]
    return "\n".join(["### FILE: train.py", "```python", *lines, "```"])


def answering(name: str, usage: Usage = USAGE, cost: float | None = None) -> ScriptedModel:
    """A model of that name that answers everything and tells its usage."""
    return ScriptedModel(lambda prompt, call: Reply(code(6 + call.index), usage=usage, cost=cost), name)


def costs(history: History) -> list[float | None]:
    return [e["result"]["reply"]["cost"] for e in history.journal.events if e["kind"] in ("ask", "edit")]


# --- recorded ---------------------------------------------------------------------------------------------------------


def test_a_call_costs_its_usage_at_the_pinned_price(simulate: Simulate) -> None:
    history = simulate("random", steps=2, model=Models({"*": answering("openai:gpt-4o-mini")}))
    price = Price.from_json(history.record["prices"]["*"])
    cost = price.cost(USAGE)
    assert cost and costs(history) == [cost] * 4
    assert history.spent()["usd"] == pytest.approx(4 * cost)


def test_what_the_endpoint_says_it_cost_is_believed(simulate: Simulate) -> None:
    history = simulate("random", steps=1, model=Models({"*": answering("openai:gpt-4o-mini", cost=0.125)}))
    assert costs(history) == [0.125, 0.125]


def test_each_purpose_has_the_price_of_its_model(simulate: Simulate) -> None:
    models = Models({"edit": answering("openai:a"), "*": answering("openai:b")})
    history = simulate("random", steps=1, model=models, prices=["openai:a=1,0", "openai:b=0,100"])
    assert costs(history) == [50 * 100 / 1e6, 1500 * 1 / 1e6]


def test_an_unknown_price_is_null_and_shown_as_such(
    simulate: Simulate, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    history = simulate("random", steps=1, model=Models({"*": answering("openai:nobody-knows")}))
    assert costs(history) == [None, None]
    assert history.to_json()["prices"] == {"*": None}
    assert history.to_json()["spent"]["usd"] is None
    show(history.folder)
    assert re.search(r"^spent .* 3,100 tokens, USD unknown, ", capsys.readouterr().out, re.MULTILINE)


def test_a_run_keeps_its_prices_whatever_is_published_later(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    models = Models({"*": answering("openai:gpt-4o-mini")})
    with pytest.raises(LimitReached):
        simulate("random", steps=3, model=models, limits=Limits(calls=2))
    monkeypatch.setattr(Prices, "look_up", lambda models, given: Prices({}))
    history = simulate("random", steps=3, model=models)
    assert len(set(costs(history))) == 1 and None not in costs(history)


def test_a_price_given_later_is_refused_unless_it_is_the_one_that_holds(simulate: Simulate) -> None:
    models, given = Models({"*": answering("openai:mine")}), ["openai:mine=1,2"]
    with pytest.raises(LimitReached):
        simulate("random", steps=3, model=models, prices=given, limits=Limits(calls=2))
    with pytest.raises(InputError, match=r"run\.json: prices\.\*: --price openai:mine: a run keeps the prices"):
        simulate("random", steps=3, model=models, prices=["openai:mine=3,4"])
    assert simulate("random", steps=3, model=models, prices=given).status == "finished"


def test_a_price_for_a_model_that_is_not_asked_is_refused(tmp_path: Path, simulate: Simulate) -> None:
    with pytest.raises(InputError, match="--price openai:x: not a model of this run; it has offline:mutate"):
        simulate("random", prices=["openai:x=1,2"])
    assert list(tmp_path.iterdir()) == []


def test_a_replayed_model_costs_nothing_again(simulate: Simulate, tmp_path: Path) -> None:
    first = simulate("random", steps=2, model=Models({"*": answering("openai:gpt-4o-mini")}))
    again = simulate("random", steps=2, model=f"replay:{first.folder}", runs=tmp_path / "again")
    assert costs(again) == [0.0] * 4
    assert again.spent()["tokens"] == first.spent()["tokens"]


def test_a_run_from_an_endpoint_is_replayed_without_endpoint_key_and_client(simulate: Simulate, tmp_path: Path) -> None:
    spec = "openai:gpt-4o-mini@nowhere"
    models = Models({"idea": answering(spec), "edit": answering("inspect:anthropic/claude")})
    first = simulate("autoresearch", steps=3, model=models)
    with pytest.raises(InputError):  # that model cannot be loaded here
        Models.parse(spec)
    assert replay(labcoat.open_run(first.folder)).finished
    again = simulate("autoresearch", steps=3, model=f"replay:{first.folder}", runs=tmp_path / "again")
    assert [(s.parent, s.outcome, first.code(s)) for s in first.steps] == [
        (s.parent, s.outcome, again.code(s)) for s in again.steps
    ]


# --- limited ----------------------------------------------------------------------------------------------------------


def test_money_is_not_limited_where_a_price_is_unknown_and_nothing_is_begun(tmp_path: Path, simulate: Simulate) -> None:
    models = Models({"edit": answering("openai:nobody-knows"), "*": answering("openai:gpt-4o-mini")})
    message = "the price of openai:nobody-knows is unknown.* --price openai:nobody-knows=IN,OUT .* --max-tokens instead"
    with pytest.raises(InputError, match=message):
        simulate("random", model=models, limits=Limits(usd=1.0))
    assert list(tmp_path.iterdir()) == []
    history = simulate("random", model=models, limits=Limits(usd=1.0), prices=["openai:nobody-knows=1,2"])
    assert history.status == "finished"


def test_nor_later_in_a_run_that_began_without_a_price(simulate: Simulate) -> None:
    models = Models({"*": answering("openai:nobody-knows")})
    with pytest.raises(LimitReached):
        simulate("random", steps=3, model=models, limits=Limits(calls=2))
    with pytest.raises(InputError, match=r"this run began without one .*run\.json\): limit --max-tokens instead"):
        simulate("random", steps=3, model=models, limits=Limits(usd=1.0))


def test_an_endpoint_that_tells_no_usage_ends_a_run_with_limited_money(simulate: Simulate) -> None:
    models = Models({"*": answering("openai:gpt-4o-mini", usage=Usage())})
    with pytest.raises(LimitReached, match="usd is limited to 1, but what was spent is unknown"):
        simulate("random", steps=3, model=models, limits=Limits(usd=1.0))
    history = simulate("random", steps=3, model=models)
    assert costs(history) == [None] * 6


def test_a_call_whose_prompt_alone_would_pass_a_limit_is_not_begun(simulate: Simulate) -> None:
    asked: list[int] = []

    async def search(lab: Lab, params: Params) -> None:
        for size in (300, 300, 3000):
            await lab.ask("edit", Prompt.of([Part("task", "x" * size)]))

    def answer(prompt: Prompt, call: Call) -> Reply:
        asked.append(prompt.tokens)
        return Reply("yes", usage=Usage(input_uncached=prompt.tokens))

    models, prices = Models({"*": ScriptedModel(answer, "openai:x")}), ["openai:x=1000,0"]
    with pytest.raises(LimitReached, match=r"tokens = 1000 \(spent 200, the next prompt takes about 1000\); raise it"):
        simulate(search, model=models, prices=prices, limits=Limits(tokens=1000))
    assert asked == [100, 100]
    with pytest.raises(LimitReached, match=r"usd = 1 \(spent 0.2, the next prompt takes about 1\); raise it"):
        simulate(search, model=models, prices=prices, limits=Limits(usd=1.0))
    assert asked == [100, 100]
    simulate(search, model=models, prices=prices, limits=Limits(usd=1.2, tokens=1200, calls=3))
    assert asked == [100, 100, 1000]


@pytest.mark.parametrize("limits", [Limits(calls=5), Limits(tokens=9000), Limits(usd=0.01)], ids=lambda x: str(x))
def test_a_limit_is_passed_by_no_more_than_one_reply(simulate: Simulate, limits: Limits) -> None:
    usage: list[Usage] = []

    def answer(prompt: Prompt, call: Call) -> Reply:
        usage.append(Usage(input_uncached=prompt.tokens, output=100))
        return Reply(code(6 + call.index), usage=usage[-1])

    models = Models({"*": ScriptedModel(answer, "openai:x")})
    with pytest.raises(LimitReached) as reached:
        simulate("autoresearch", steps=50, model=models, limits=limits, prices=["openai:x=1,1"])
    (limit,) = limits.to_json().values()
    over = {"calls": 0, "tokens": 100, "usd": 100 / 1e6}[reached.value.name]
    spent = {"calls": len(usage), "tokens": sum(u.total for u in usage), "usd": sum(u.total for u in usage) / 1e6}
    assert 0.5 * limit < spent[reached.value.name] <= limit + over


# --- shown ------------------------------------------------------------------------------------------------------------


def test_what_was_spent_is_broken_down_by_purpose_and_by_step(simulate: Simulate) -> None:
    async def search(lab: Lab, params: Params) -> None:
        base = lab.brief.baseline
        for thoughts in (1, 3):
            for _ in range(thoughts):
                await lab.ask("idea", Prompt.of([Part("task", "think")]))
            await lab.trial(await lab.edit(base, "go"))
        await lab.ask("idea", Prompt.of([Part("task", "and then?")]))

    prices = ["openai:x=1,2"]
    history = simulate(search, model=Models({"*": answering("openai:x")}), prices=prices)
    spent = history.to_json()["spent"]
    assert {purpose: of["calls"] for purpose, of in spent["by_purpose"].items()} == {"idea": 5, "edit": 2}
    assert spent["by_purpose"]["edit"] == {
        "calls": 2, "tokens": 3100, "input_uncached": 2000, "cache_read": 800, "cache_write": 200, "output": 100,
        "of_which_reasoning": 40, "usd": pytest.approx((3000 + 200) / 1e6),
        "seconds": spent["by_purpose"]["edit"]["seconds"],
    }  # fmt: skip
    assert [(of["step"], of["calls"]) for of in spent["by_step"]] == [(0, 0), (1, 2), (2, 4), (None, 1)]
    for name in ("calls", "tokens", "output", "usd"):
        total: Any = spent[name]
        assert sum(of[name] for of in spent["by_step"]) == pytest.approx(total)
        assert sum(of[name] for of in spent["by_purpose"].values()) == pytest.approx(total)
    assert sum(of["seconds"] for of in spent["by_step"]) == pytest.approx(spent["seconds"], abs=0.003)


def test_jobs_of_a_batch_pay_for_their_own_step(simulate: Simulate) -> None:
    async def job(lab: Lab) -> None:
        await lab.ask("idea", Prompt.of([Part("task", "think")]))
        await lab.trial(await lab.edit(lab.brief.baseline, "go"))

    async def search(lab: Lab, params: Params) -> None:
        await lab.ask("idea", Prompt.of([Part("task", "what shall they do?")]))
        await lab.parallel([job, job])

    history = simulate(search, model=Models({"*": answering("openai:x")}))
    calls = {of["step"]: of["calls"] for of in history.to_json()["spent"]["by_step"]}
    assert calls == {0: 0, 1: 2, 2: 2, None: 1}


def test_show_prints_the_breakdown_where_there_is_something_to_break_down(
    simulate: Simulate, capsys: pytest.CaptureFixture[str]
) -> None:
    paid = simulate("random", steps=2, model=Models({"*": answering("openai:x")}), prices=["openai:x=1,2"])
    show(paid.folder)
    text = capsys.readouterr().out
    rows = [re.split(r" {2,}", line) for line in text.splitlines()]
    head = next(row for row in rows if row[0] == "spent")
    of_idea = {row[0]: row[head.index("idea")] for row in rows if len(row) == len(head)}
    parts = ["calls", "tokens in, not cached", "read from a cache", "written to a cache", "tokens out"]
    assert [of_idea[part] for part in parts] == ["2", "2,000", "800", "200", "100"]
    assert (of_idea["of which reasoning"], of_idea["USD"]) == ("40", "$0.0032")
    assert re.search(r"^1 +2 +3,000 +100 +\$0.0032 +0\.\d\d$", text, re.MULTILINE)
    assert re.search(r"^spent +4 model calls, 6,200 tokens, \$0.0064, ", text, re.MULTILINE)
    show(simulate("random", steps=2).folder)
    assert "read from a cache" not in capsys.readouterr().out


def test_prices_are_in_the_listing(simulate: Simulate) -> None:
    history = simulate("random", steps=1, model=Models({"*": answering("openai:x")}), prices=["openai:x=1,2"])
    shown = json.loads(json.dumps(history.to_json()["prices"]))
    assert [(rate["above"], rate["input_uncached"], rate["output"]) for rate in shown["*"]["rates"]] == [(0, 1.0, 2.0)]
    assert shown["*"]["source"] == "given by hand"
