"""Every shipped strategy keeps the rules, under its defaults and under each of its presets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from labcoat import strategies
from labcoat.testing import contract

DEFAULTS = strategies.names()
PRESETS = [f"{name}@{preset}" for name in DEFAULTS for preset, own in strategies.find(name).presets.items() if own]


@pytest.mark.parametrize("rule", contract.CHECKS, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("spec", [*DEFAULTS, *(pytest.param(spec, marks=pytest.mark.slow) for spec in PRESETS)])
def test_it_keeps_the_contract(spec: str, rule: Callable[[contract.Case], None]) -> None:
    strategy, params = strategies.named(spec)
    rule(contract.Case(strategy, params))
