"""All pairs of arms from one table."""

from __future__ import annotations

import math
import random

import pytest

from labcoat.scoring.contrast import contrasts
from labcoat.scoring.intervals import Estimate
from labcoat.scoring.multiple import holm
from labcoat.scoring.paired import Cell


def table(rng: random.Random, shift: float, tasks: int = 10, rounds: int = 3) -> dict[Cell, float]:
    return {
        Cell(str(task), round): task + shift + rng.gauss(0, 0.1) for task in range(tasks) for round in range(rounds)
    }


def test_an_arm_that_is_ahead_everywhere_is_seen() -> None:
    rng = random.Random(0)
    arms = {"good": table(rng, 1.0), "fair": table(rng, 0.0), "same": table(rng, 0.0)}
    found = {(c.arm, c.other): c for c in contrasts(arms)}
    assert list(found) == [("good", "fair"), ("good", "same"), ("fair", "same")]
    good = found["good", "fair"]
    assert good.lead.value == pytest.approx(1, abs=0.1) and good.lead.low is not None and good.lead.low > 0
    assert (good.tasks, good.cells, good.signs.ahead) == (10, 30, 10)
    assert good.p == 2 / 2**10 and good.holm == 3 * good.p
    assert good.without.flips == () and good.needed.rounds == 1
    assert found["fair", "same"].p > 0.05
    assert [c.holm for c in found.values()] == holm([c.p for c in found.values()])


def test_the_order_of_cells_changes_nothing() -> None:
    rng = random.Random(1)
    arms = {"a": table(rng, 0.02), "b": table(rng, 0.0)}
    turned = {name: dict(reversed(own.items())) for name, own in arms.items()}
    (one,), (other,) = contrasts(arms), contrasts(turned)
    assert (one.p, one.signs, one.without.low) == (other.p, other.signs, other.without.low)
    assert one.lead.value == pytest.approx(other.lead.value)


def test_cells_taken_for_independent_promise_more() -> None:
    """Rounds that repeat each other add nothing to what five tasks say."""
    ahead = [0.3, 0.2, 0.4, 0.1, 0.3]
    one = {Cell(str(task), round): value for task, value in enumerate(ahead) for round in range(3)}
    (found,) = contrasts({"a": one, "b": dict.fromkeys(one, 0.0)})
    assert found.p == 2 / 2**5 and found.p_cells == 2 / 2**15


def test_missing_cells_are_left_out_and_a_pair_without_any_has_no_contrast() -> None:
    a = {Cell("x", 0): 1.0, Cell("x", 1): 2.0, Cell("y", 0): 3.0}
    found = contrasts({"a": a, "b": {Cell("x", 1): 1.0, Cell("y", 0): math.nan}, "c": {Cell("z", 0): 1.0}})
    assert [(c.arm, c.other, c.cells, c.p) for c in found] == [("a", "b", 1, 1.0)]
    assert found[0].lead == Estimate(1.0, None, None) and found[0].needed.tasks is None


def test_ties_everywhere_are_no_difference() -> None:
    a = {Cell("x", 0): 1.0, Cell("y", 0): 3.0}
    (found,) = contrasts({"a": a, "b": dict(a)})
    assert (found.lead.value, found.p, found.signs.ties, found.without.flips) == (0.0, 1.0, 2, ())
