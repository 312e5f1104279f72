"""The rules that every strategy keeps, each as a check that can be run on any strategy.

Without pytest, ``contract.check(STRATEGY)`` tries them all. With it, each is a test of its own::

    @pytest.mark.parametrize("rule", contract.CHECKS, ids=lambda rule: rule.__name__)
    def test_contract(rule):
        rule(contract.Case(STRATEGY))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from labcoat.lab import Strategy
from labcoat.testing import rules
from labcoat.testing.case import Broken, Case

__all__ = ["CHECKS", "Broken", "Case", "check"]

CHECKS: list[Callable[[Case], None]] = [
    rules.explains_itself,
    rules.declares_what_it_asks_for,
    rules.spends_its_steps_or_returns,
    rules.lives_through_hard_worlds,
    rules.repeats_itself,
    rules.repeats_itself_in_another_process,
    rules.resumes_from_every_event,
    rules.does_the_same_in_any_order_of_a_batch,
    rules.takes_lower_for_better_where_it_is,
    rules.heeds_the_order_of_values_only,
    rules.touches_nothing_but_its_lab,
    rules.keeps_prompts_within_their_room,
    rules.decides_quickly,
]
"""All rules. The documentation of each says what it demands."""


def check(
    strategy: Strategy, params: Mapping[str, Any] | None = None, *, scale_free: bool = True, steps: int = 12
) -> None:
    """Try every rule; see :class:`Case` for the arguments.

    Raises:
        Broken: naming each rule that does not hold, and how.
    """
    case, found = Case(strategy, params or {}, scale_free, steps), []
    for rule in CHECKS:
        try:
            rule(case)
        except Broken as broken:
            found.append(f"{rule.__name__}: {broken}")
    if found:
        raise Broken(f"{len(found)} of {len(CHECKS)} rules are broken\n" + "\n".join(found))
