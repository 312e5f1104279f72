"""Landscapes: what each knob does."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from pydantic import ValidationError

from labcoat.landscape import LARGEST, START, Knobs, Landscape
from labcoat.models.offline import SPREAD


def landscape(**knobs: Any) -> Landscape:
    return Landscape(Knobs(**{"constants": 6, "matter": 6} | knobs))


def start(of: Landscape) -> dict[str, float]:
    return dict.fromkeys(of.names, START)


def best(of: Landscape, split: str = "val") -> dict[str, float]:
    return start(of) | of.optimum[split]


def score(of: Landscape, point: dict[str, float], split: str = "val", seed: int = 0) -> float:
    return of(point, split, seed)["score"]


@pytest.mark.parametrize(
    "knobs",
    [{}, {"matter": 3}, {"interacting": 3}, {"ruggedness": 0.9}, {"plateau": 0.3}, {"reach": 0.2}, {"gap": 1.0}],
    ids=str,
)
@pytest.mark.parametrize("split", ["val", "test"])
def test_the_optimum_is_one_and_the_start_is_below(knobs: dict[str, Any], split: str) -> None:
    found = landscape(**knobs)
    assert score(found, best(found, split), split) == pytest.approx(1.0)
    assert 0 <= score(found, start(found), split) < 0.8


def test_an_edit_reaches_as_far_as_one_of_the_offline_model() -> None:
    assert LARGEST == SPREAD


def test_every_optimum_is_one_to_two_largest_edits_away() -> None:
    for instance in range(20):
        for value in landscape(instance=instance).optimum["val"].values():
            assert 1 <= abs(math.log(value / START)) / LARGEST <= 2


def test_constants_that_do_not_matter_change_nothing() -> None:
    found = landscape(matter=2)
    idle = [name for name in found.names if name not in found.optimum["val"]]
    assert len(idle) == 4
    assert score(found, start(found) | dict.fromkeys(idle, 1.0)) == score(found, start(found))


def test_a_group_is_as_good_as_its_worst_constant() -> None:
    found = landscape(matter=3, interacting=3)
    optimum = found.optimum["val"]
    worst = min(optimum, key=lambda name: score(found, best(found) | {name: START}))
    others = {name: START for name in optimum if name != worst}
    assert score(found, best(found) | {worst: START} | others) == score(found, best(found) | {worst: START})


def test_a_plateau_hides_gains_that_are_smaller_than_it() -> None:
    found = landscape(matter=1, plateau=0.5)
    (name,) = found.optimum["val"]
    way = [start(found) | {name: START * (found.optimum["val"][name] / START) ** (n / 50)} for n in range(51)]
    smooth = landscape(matter=1)
    assert sorted({score(found, point) for point in way}) == [0.5, 1.0]
    assert len({score(smooth, point) for point in way}) == 51


def test_ripples_make_local_optima_a_largest_edit_apart() -> None:
    found = landscape(matter=1, ruggedness=0.9)
    (name,) = found.optimum["val"]
    heights = [
        score(found, start(found) | {name: found.optimum["val"][name] * math.exp(LARGEST * n / 10)}) for n in range(16)
    ]
    tops = [n for n in range(1, 15) if heights[n - 1] < heights[n] > heights[n + 1]]
    assert tops == [10]
    assert heights[10] < heights[0]


def test_the_stated_share_of_codes_fails_and_always_the_same() -> None:
    found = landscape(failing=0.3)

    def fails(value: float) -> bool:
        try:
            score(found, start(found) | {"C1": value})
        except ValueError:
            return True
        return False

    first = [fails(100.0 + n) for n in range(2000)]
    assert sum(first) / 2000 == pytest.approx(0.3, abs=0.04)
    assert first == [fails(100.0 + n) for n in range(2000)]


def test_the_code_that_a_search_begins_with_never_fails() -> None:
    for instance in range(20):
        found = landscape(failing=0.99, instance=instance)
        assert score(found, start(found)) == score(landscape(instance=instance), start(found))


def test_noise_is_on_validation_only_and_a_function_of_code_and_seed() -> None:
    found, plain = landscape(noise=0.05), landscape()
    values = [score(found, start(found), seed=seed) for seed in range(500)]
    assert statistics.stdev(values) == pytest.approx(0.05, rel=0.1)
    assert statistics.fmean(values) == pytest.approx(score(plain, start(plain)), abs=0.01)
    assert values[7] == score(found, start(found), seed=7)
    assert score(found, start(found), "test", seed=1) == score(found, start(found), "test", seed=2)


def test_the_gap_moves_the_optimum_of_every_constant_by_as_much() -> None:
    found = landscape(gap=0.4)
    for name, value in found.optimum["val"].items():
        assert abs(math.log(found.optimum["test"][name] / value)) / LARGEST == pytest.approx(0.4)
    assert score(found, best(found, "val"), "test") < 1


def test_a_lower_reach_is_a_steeper_summit_and_a_flatter_plain() -> None:
    near, far = landscape(reach=0.5), landscape(reach=2.0)
    assert score(near, start(near)) < 0.1 < score(far, start(far))


def test_another_instance_is_another_place() -> None:
    assert landscape(instance=0).optimum != landscape(instance=1).optimum


@pytest.mark.parametrize("value", [None, True, "1", -3.0, 0, 1e9, float("inf"), float("nan")])
def test_a_constant_that_is_no_positive_number_crashes(value: Any) -> None:
    found = landscape()
    with pytest.raises(ValueError, match="C2 must be a positive number"):
        found({**start(found), "C2": value}, "val", 0)


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"matter": 7}, "matter: 7 of 6 constants cannot matter"),
        ({"interacting": 4}, "no whole number of groups of 4"),
        ({"failing": 1.0}, "less than 1"),
        ({"slope": 1}, "Extra inputs"),
    ],
)
def test_knobs_that_do_not_fit_are_named(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        landscape(**knobs)
