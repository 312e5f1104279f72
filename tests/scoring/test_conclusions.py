"""What the tables say of arms: pairs, ranks, headroom, noise, and what survives on the test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from labcoat.report.sheets import Sheet, sheets
from labcoat.scoring.conclusions import conclusions
from labcoat.scoring.measures import Mode
from labcoat.scoring.runs import Run
from labcoat.scoring.scale import Scale
from labcoat.scoring.table import rows
from labcoat.scoring.tables import tables
from tests.scoring.made import ACCURACY, ERROR, FORGETTING, made


def concluded(runs: Sequence[Run], mode: Mode = "paper") -> dict[str, Any]:
    table = rows(runs, {}, mode)
    return tables(table) | conclusions(table)


def sheet(runs: Sequence[Run], name: str) -> Sheet:
    (found,) = (each for each in sheets(concluded(runs)) if each.name == name)
    return found


def two(ahead: dict[str, Sequence[float]], **fields: Any) -> list[Run]:
    """Arms `a` and `b`; `a` is ahead by so much on each task in each round."""
    return [
        made(strategy=arm, task=task, seed=seed, test=0.6 + lead * (arm == "a"), **fields)
        for task, leads in ahead.items()
        for seed, lead in enumerate(leads)
        for arm in "ab"
    ]


def test_a_pair_is_compared_over_tasks_the_better_arm_first() -> None:
    (pair,) = concluded(two({"x": [0.1, 0.3], "y": [0.2, 0.2], "z": [-0.01, -0.03]}))["pairs"]
    assert (pair["arm"], pair["other"], pair["ahead"], pair["behind"], pair["ties"]) == ("a", "b", 2, 1, 0)
    assert pair["lead"]["value"] == pytest.approx((0.2 + 0.2 - 0.02) / 3)
    assert pair["lead"]["low"] == pytest.approx(-0.02) and pair["lead"]["high"] == pytest.approx(0.2)
    assert pair["p"] == pair["holm"] == pair["benjamini_hochberg"] == 0.5 and pair["flips"] == []
    assert pair["rounds_here"] == 2  # 0.0067 (1.96 + 0.84)^2 / (3 0.127^2) = 1.1


def test_an_order_that_rests_on_one_task_names_it() -> None:
    found = sheet(two({"x": [0.3], "y": [-0.05], "z": [-0.05]}), "pairs")
    assert [cell for label, cell in zip(found.head, found.rows[0], strict=True) if label.name == "flips without"] == [
        "x"
    ]


def test_p_values_of_three_pairs_are_adjusted_for_three() -> None:
    runs = [
        made(strategy=arm, task=f"t{task}", test=0.6 + 0.1 * number + 0.001 * task * number)
        for task in range(6)
        for number, arm in enumerate("abc")
    ]
    pairs = concluded(runs)["pairs"]
    assert [(pair["arm"], pair["other"]) for pair in pairs] == [("c", "b"), ("c", "a"), ("b", "a")]
    assert [pair["p"] for pair in pairs] == [2 / 2**6] * 3
    assert [pair["holm"] for pair in pairs] == [3 * 2 / 2**6] * 3


def test_a_single_task_has_a_lead_without_an_interval() -> None:
    (pair,) = concluded(two({"x": [0.1, 0.2]}))["pairs"]
    assert pair["lead"] == {"value": pytest.approx(0.15), "low": None, "high": None}


def test_ranks_are_by_the_raw_metric_in_its_direction() -> None:
    """Both are worse than the baseline: their improvement is 0, and still one is better."""
    runs = [made(strategy=arm, task=t, test=v, metric=ERROR) for t in "xy" for arm, v in (("a", 0.7), ("b", 0.6))]
    found = concluded(runs)
    assert found["ranks"]["mean_ranks"] == {"b": 1.0, "a": 2.0} and found["ranks"]["tasks"] == 2
    assert found["ranks"]["alike"] == [["b", "a"]]
    assert [row[2] for row in sheet(runs, "ranks").rows] == ["a", "b"]
    assert found["pairs"][0]["lead"]["value"] == 0.0


def test_an_infinite_gain_is_in_no_pair() -> None:
    metric = FORGETTING.model_copy(update={"direction": "lower", "best": 1e-9})
    runs = [
        made([1e-2], baseline=0.1, test=v, test_baseline=0.1, metric=metric, strategy=s)
        for s, v in zip("ab", (0.0, 0.01), strict=True)
    ]
    assert concluded(runs)["pairs"] == []


def test_one_arm_alone_has_neither_pairs_nor_ranks_and_no_run_has_nothing() -> None:
    found = concluded([made()])
    assert found["pairs"] == [] and found["ranks"] is None
    assert conclusions([]) == {"pairs": [], "ranks": None, "validation_to_test": []}


def test_relative_to_the_headroom_tasks_weigh_alike() -> None:
    """Half of what is left: 0.25 above a baseline of 0.5, and 0.05 above one of 0.9."""
    runs = [made(task="x", test=0.75), made(task="y", test=0.95, baseline=0.9, test_baseline=0.9)]
    (arm,) = concluded(runs)["arms"]
    assert arm["improvement"]["mean"] == pytest.approx(0.15)
    assert arm["of_headroom"] == {"mean": pytest.approx(0.5), "sd": pytest.approx(0.0, abs=1e-9), "n": 2}


@pytest.mark.parametrize(("test", "below"), [(0.5, True), (0.519, True), (0.521, False), (0.4, True)])
def test_a_gain_below_two_standard_errors_is_marked(test: float, below: bool) -> None:
    runs = [made(test=test, noise=0.01), made(strategy="b", test=0.9, noise=0.01)]
    found = concluded(runs)
    assert found["tasks"][0]["below_noise"] == {"greedy": below, "b": False}
    assert {run["arm"]: run["below_noise"] for run in found["runs"]} == {"greedy": below, "b": False}
    for name in ("improvement", "test"):
        assert ("below noise" in sheet(runs, name).marks) is below


def test_where_no_error_is_known_or_nothing_was_tested_nothing_is_marked() -> None:
    runs = [made(test=0.5), made(strategy="b", test=None, noise=0.01)]
    assert concluded(runs)["tasks"][0]["below_noise"] == {"greedy": None, "b": None}
    assert sheet(runs, "improvement").marks == []


def test_the_error_of_a_logarithm_is_that_of_small_changes() -> None:
    scale = Scale.of(FORGETTING, 1e-3)
    assert scale.error(1e-6) == pytest.approx(abs(scale.improvement(1e-3 + 1e-6)), rel=1e-3)
    assert Scale.of(ACCURACY, 0.5).error(0.02) == pytest.approx(0.02)


def test_what_survives_counts_losses_on_the_test() -> None:
    """Gains of 0.2 on validation; on test 0.2, and a loss of 0.1 that the improvement shows as 0."""
    runs = [made([0.7], task="x", test=0.7), made([0.7], task="y", test=0.4)]
    (found,) = concluded(runs)["validation_to_test"]
    assert (found["arm"], found["runs"]) == ("greedy", 2)
    assert found["validation"]["value"] == pytest.approx(0.2) and found["test"]["value"] == pytest.approx(0.05)
    assert found["survives"]["value"] == pytest.approx(0.25) and found["slope"]["value"] is None


def test_a_stopped_run_and_an_infinite_loss_are_not_in_what_survives() -> None:
    lost = made([1e-2], baseline=1e-3, test=0.0, test_baseline=1e-3, metric=FORGETTING, strategy="b", task="y")
    found = {own["arm"]: own for own in concluded([made(test=None), lost])["validation_to_test"]}
    assert [own["runs"] for own in found.values()] == [0, 0]
    assert found["b"]["test"] == {"value": None, "low": None, "high": None}
