"""The process metrics, on values that the released functions gave and on their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labcoat.scoring import measures

NONE = None

# Codes, baseline, and what the released functions give: Spread, Uniqueness, Reach, Effective dim.
GEOMETRY = [
    ([(1, 0), (1, 0), (0, 1), (0, 0)], (1, 0), 0.6446097, 0.75, 1.4142136, 1.4848485),
    ([(3, 4)], (0, 0), 0, 1, 5, 0),
    ([(3, 4), (3, 4)], (0, 0), 0, 0.5, 5, 0),
    ([(0, 0), (0, 0)], (0, 0), 0, 0.5, 0, 0),
    ([(1, 1), (2, 2), (3, 3)], (0, 0), 0.9428090, 0.3333333, 4.2426407, 1.0),
    ([(1, 0), (1, 0.1), (1, 0.2), (1, 0.4), (0, 1)], (1, 0), 0.4393841, 0.6, 1.4142136, 1.0732745),
]


@pytest.mark.parametrize(("codes", "baseline", "spread", "uniqueness", "reach", "dimension"), GEOMETRY)
def test_geometry_as_released(
    codes: list[tuple[float, ...]],
    baseline: tuple[float, ...],
    spread: float,
    uniqueness: float,
    reach: float,
    dimension: float,
) -> None:
    assert measures.spread(codes) == pytest.approx(spread, abs=1e-6)
    assert measures.uniqueness(codes) == pytest.approx(uniqueness, abs=1e-6)
    assert measures.reach(codes, baseline) == pytest.approx(reach, abs=1e-6)
    assert measures.effective_dimension(codes, "released") == pytest.approx(dimension, abs=1e-6)


def test_what_is_undefined_is_nan_in_the_papers_mode() -> None:
    assert math.isnan(measures.effective_dimension([(3, 4)]))
    assert math.isnan(measures.effective_dimension([(3, 4), (3, 4)]))
    empty = np.empty((0, 2))
    assert all(math.isnan(value) for value in (measures.spread(empty), measures.uniqueness(empty)))
    assert math.isnan(measures.reach(empty, (0, 0)))


def test_codes_that_hardly_differ_have_a_dimension_too() -> None:
    assert measures.effective_dimension([(0, 0), (0, 1e-140)]) == 1


def test_vectors_that_look_like_distances_are_vectors() -> None:
    assert measures.uniqueness([(0, 1), (1, 0)]) == 1


def test_a_curve_and_its_measures_as_released() -> None:
    values = [0.4, NONE, 0.6, 0.5, 0.6, 0.7, 0.65, NONE, 0.7, 0.7]
    reached = measures.curve(values, 0.5, 1.0, "higher")
    assert reached[-1] == pytest.approx(0.2)
    assert measures.area(reached) == pytest.approx(0.13)
    assert measures.first_improvement(reached) == 3
    assert measures.late_gain(reached) == pytest.approx(0.5)
    assert measures.best_improvement(values, "higher") == 6
    assert measures.best_improvement(values, "higher", "released") == 10


@pytest.mark.parametrize(
    ("values", "area", "first", "late"),
    [([0.1, 0.2], 0, NONE, NONE), ([0.9], 0.4, 1, 0), ([math.nan, 0.6, math.inf, 0.7], 0.1, 2, 0.5)],
)
def test_edges_of_a_curve_as_released(
    values: list[float | None], area: float, first: float | None, late: float | None
) -> None:
    def same(found: float, expected: float | None) -> bool:
        return math.isnan(found) if expected is None else math.isclose(found, expected, abs_tol=1e-9)

    reached = measures.curve(values, 0.5, 1.0, "higher")
    assert same(measures.area(reached), area)
    assert same(measures.first_improvement(reached), first)
    assert same(measures.late_gain(reached), late)


def test_a_curve_of_displayed_values() -> None:
    values = [-math.log10(p) if p else None for p in (1e-60, 0, 1e-20, 1)]
    baseline = -math.log10(2.2001e-71)
    reached = measures.curve(values, baseline, baseline, "lower")
    assert reached == pytest.approx([0.150834, 0.150834, 0.716945, 1.0], abs=1e-6)
    assert measures.area(reached) == pytest.approx(0.504653, abs=1e-6)


def test_a_run_that_ended_early_stands_still() -> None:
    reached = measures.curve([0.6, 0.7], 0.5, 1.0, "higher")
    assert measures.area(reached, 4) == pytest.approx((0.1 + 0.2 * 3) / 4)
    assert measures.late_gain(reached, 4) == 0
    assert measures.late_gain(measures.curve([NONE, 0.6, 0.7], 0.5, 1.0, "higher"), 2) == 1


walks = st.lists(st.one_of(st.none(), st.floats(-10, 10)), min_size=1, max_size=50)


@given(walks, st.floats(-5, 5), st.floats(0.1, 10))
def test_a_curve_never_falls_and_its_area_is_within_it(
    values: list[float | None], baseline: float, scale: float
) -> None:
    reached = measures.curve(values, baseline, scale, "higher")
    assert (np.diff(reached) >= 0).all() and (reached >= 0).all()
    assert 0 <= measures.area(reached) <= reached[-1] + 1e-12


@given(walks, st.floats(-5, 5))
def test_lower_is_the_mirror_of_higher(values: list[float | None], baseline: float) -> None:
    mirrored = [None if value is None else -value for value in values]
    assert (measures.curve(values, baseline, 1, "higher") == measures.curve(mirrored, -baseline, 1, "lower")).all()


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=20), st.floats(0.5, 3))
def test_geometry_follows_its_scale_and_not_the_order(codes: list[tuple[float, float]], factor: float) -> None:
    vectors = np.array(codes)
    assert measures.spread(vectors[::-1] * factor) == pytest.approx(measures.spread(vectors) * factor, abs=1e-9)
    assert measures.reach(vectors * factor, (0, 0)) == pytest.approx(measures.reach(vectors, (0, 0)) * factor)
    assert 0 < measures.uniqueness(vectors) <= 1
    dimension = measures.effective_dimension(vectors)
    assert math.isnan(dimension) or 1 - 1e-9 <= dimension <= 2 + 1e-9


def test_effective_dimension_about_another_point_than_the_mean() -> None:
    codes = [(1.0, 0.0), (0.0, 1.0)]
    assert measures.effective_dimension(codes) == pytest.approx(1)
    assert measures.effective_dimension(codes, about=(0, 0)) == pytest.approx(2)
    assert measures.effective_dimension([(1, 0), (1, 0)], "released", about=(1, 0)) == 0


def test_cosine_is_zero_where_a_vector_is() -> None:
    assert measures.cosine((2, 0), (3, 3)) == pytest.approx(0.5**0.5)
    assert measures.cosine((1, 0), (-2, 0)) == pytest.approx(-1)
    assert measures.cosine((0, 0), (1, 0)) == 0
