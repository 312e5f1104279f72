"""The contract suite: a strategy that keeps the rules passes, and every rule finds one that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from labcoat import strategies
from labcoat.lab import Lab, Params, Strategy
from labcoat.testing import contract
from tests.testing import timed
from tests.testing.strategies import BATCHES, BREAKS

RULES = {rule.__name__: rule for rule in contract.CHECKS}


@pytest.mark.parametrize("rule", contract.CHECKS, ids=lambda rule: rule.__name__)
def test_a_strategy_that_works_in_batches_passes(rule: Callable[[contract.Case], None]) -> None:
    rule(contract.Case(BATCHES))


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        pytest.param(name, strategy, id=strategy.name, marks=[pytest.mark.slow] if name == "decides_quickly" else [])
        for name in RULES
        for strategy in BREAKS[name]
    ],
)
def test_every_rule_finds_a_strategy_that_breaks_it(name: str, strategy: Strategy) -> None:
    with pytest.raises(contract.Broken, match=f"strategy {strategy.name}: "):
        RULES[name](contract.Case(strategy))


def test_every_rule_says_what_it_demands() -> None:
    assert all(rule.__doc__ for rule in contract.CHECKS)


SLIP = '''
from labcoat.lab import Lab, Params, Strategy


async def search(lab: Lab, params: Params) -> None:
    """Has what it needs at hand."""
    while lab.left:
        {line}
        await lab.trial(await lab.edit(lab.brief.baseline, "go"), action="improve")


STRATEGY = Strategy("slip", search)
'''
TOUCHES = RULES["touches_nothing_but_its_lab"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import datetime", "datetime"),
        ("from datetime import datetime as now", r"datetime\.datetime"),
        ("import os.path as places", r"os\.path"),
        ("import numpy.random", r"numpy\.random"),
        ("from numpy import random", r"numpy\.random"),
        ("from random import choice, Random", r"random\.choice"),
        ("from random import Random; Random()", r"Random\(\) without a seed"),
        ("import numpy as np; np.random.default_rng()", r"default_rng\(\) without a seed"),
    ],
)
def test_what_leads_outside_is_found_wherever_it_stands(tmp_path: Path, line: str, found: str) -> None:
    (tmp_path / "slip.py").write_text(SLIP.format(line=line))
    with pytest.raises(contract.Broken, match=f"its file has {found}, which leads outside of the lab"):
        TOUCHES(contract.Case(strategies.find(str(tmp_path / "slip.py"))))


@pytest.mark.parametrize("line", ["from random import Random; Random(7)", "import math", "from numpy import mean"])
def test_what_leads_nowhere_is_let_be(tmp_path: Path, line: str) -> None:
    (tmp_path / "slip.py").write_text(SLIP.format(line=line))
    TOUCHES(contract.Case(strategies.find(str(tmp_path / "slip.py"))))


def test_a_clock_at_the_head_of_its_file_is_found_though_nothing_is_left_to_see_it_used() -> None:
    with pytest.raises(contract.Broken, match=r"its file has time\.monotonic, which leads outside of the lab"):
        TOUCHES(contract.Case(timed.STRATEGY))


def test_a_strategy_that_heeds_the_scale_may_say_so() -> None:
    (content,) = BREAKS["heeds_the_order_of_values_only"]
    RULES["heeds_the_order_of_values_only"](contract.Case(content, scale_free=False))


def test_check_tries_all_rules_and_names_those_that_are_broken() -> None:
    (hopeful,) = BREAKS["lives_through_hard_worlds"]
    with pytest.raises(contract.Broken) as found:
        contract.check(hopeful)
    said = str(found.value).splitlines()
    assert said[0].endswith("rules are broken")
    (line,) = [line for line in said if line.startswith("lives_through_hard_worlds: ")]
    assert "strategy hopeful" in line and "ValueError" in line


def test_a_strategy_that_another_process_cannot_find_is_told_where_it_belongs() -> None:
    async def search(lab: Lab, params: Params) -> None:
        """Does nothing."""

    with pytest.raises(contract.Broken, match="is not at the top level of the module"):
        RULES["repeats_itself_in_another_process"](contract.Case(Strategy("local", search)))
