"""The arithmetic of constraints."""

from __future__ import annotations

import math
from typing import Any

import pytest

from labcoat.bench.constraints import judge, slack
from labcoat.bench.outcome import Measure
from labcoat.manifest import Constraint, Manifest


def constraint(**values: Any) -> Constraint:
    return Constraint.model_validate({"metric": "acc", "side": "at_least", "reference": "baseline", **values})


def manifest(*constraints: Constraint) -> Manifest:
    return Manifest.model_validate(
        {
            "id": "a/b",
            "title": "t",
            "domain": "d",
            "version": 1,
            "prompt": {"text": "p"},
            "files": {"editable": ["x"]},
            "metric": {"name": "m", "direction": "higher"},
            "simulation": {"module": "s.py"},
            "constraint": [c.model_dump() for c in constraints],
        }
    )


def one(value: float, se: float | None = None) -> Measure:
    return Measure([value], [se])


@pytest.mark.parametrize(
    ("values", "measured", "baseline", "expected"),
    [
        ({}, 0.8, 0.75, 0.05),
        ({}, 0.7, 0.75, -0.05),
        ({"tolerance": 0.05}, 0.75, 0.8, 0.0),
        ({"side": "at_most"}, 0.8, 0.75, -0.05),
        ({"side": "at_most", "tolerance": 0.1}, 0.8, 0.75, 0.05),
        ({"reference": 0.6}, 0.8, None, 0.2),
        ({"side": "at_most", "reference": 0.6, "tolerance": 0.1}, 0.8, None, -0.1),
    ],
)
def test_slack(values: dict[str, Any], measured: float, baseline: float | None, expected: float) -> None:
    against = None if baseline is None else one(baseline, 0.3)
    assert slack(constraint(**values), one(measured, 0.4), against, False) == pytest.approx(expected)


def test_the_bound_is_widened_by_two_standard_errors_of_the_difference() -> None:
    wide = slack(constraint(tolerance=0.01), one(0.7, 0.03), one(0.8, 0.04), True)
    assert wide == pytest.approx(0.7 - 0.8 + 0.01 + 2 * 0.05)
    assert slack(constraint(side="at_most"), one(0.8, 0.03), one(0.7, 0.04), True) == pytest.approx(-0.1 + 0.1)
    assert slack(constraint(reference=0.8), one(0.7, 0.03), one(5.0, 9.0), True) == pytest.approx(-0.1 + 0.06)
    assert slack(constraint(), one(0.7, None), one(0.8, 0.04), True) == pytest.approx(-0.1 + 0.08)


def test_problems_are_averaged() -> None:
    measured = Measure([0.6, 0.8], [0.03, 0.04])
    assert slack(constraint(reference=0.7), measured, None, True) == pytest.approx(2 * math.hypot(0.03, 0.04) / 2)


def test_judge_gives_status_slack_and_a_sentence() -> None:
    bounds = manifest(constraint(tolerance=0.01), constraint(metric="cost", side="at_most", reference=3))
    baseline = {"acc": one(0.8), "cost": one(1)}
    assert judge(bounds, {"acc": one(0.85), "cost": one(3)}, baseline, False)[0::2] == ("ok", "")
    status, found, text = judge(bounds, {"acc": one(0.7), "cost": one(4)}, baseline, False)
    assert status == "violation" and found["acc"] == pytest.approx(-0.09) and found["cost"] == -1
    assert text.startswith(
        "acc = 0.7 must be at least 0.79 (the baseline's 0.8, tolerance 0.01); it misses that by 0.09"
    )
    assert text.endswith("cost = 4 must be at most 3; it misses that by 1")


def test_a_declared_constraint_is_shown_and_decides_nothing() -> None:
    declared = manifest(constraint(kind="declared"))
    assert judge(declared, {"acc": one(0.5)}, {"acc": one(0.8)}, False)[0] == "ok"
    assert judge(declared, {"acc": one(0.5)}, {"acc": one(0.8)}, False)[1]["acc"] == pytest.approx(-0.3)
    assert judge(declared, {}, {}, False) == ("ok", {}, "")


def test_two_sides_of_one_metric_have_two_names() -> None:
    bounds = manifest(constraint(reference=0.5), constraint(reference=0.9, side="at_most"))
    _, found, _ = judge(bounds, {"acc": one(0.7)}, None, False)
    assert found == {"acc at_least": pytest.approx(0.2), "acc at_most": pytest.approx(0.2)}


def test_what_cannot_be_judged_is_an_error() -> None:
    with pytest.raises(ValueError, match="no measurement of the baseline"):
        slack(constraint(), one(1), None, False)
    with pytest.raises(ValueError, match="measured no such metric"):
        judge(manifest(constraint()), {}, None, False)
