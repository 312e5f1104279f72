"""How long an endpoint is waited for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from labcoat.models.patience import FIRST, LONGEST, LONGEST_ASKED, OutOfPatience, Patience, pause, retry_after

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def test_waits_double_up_to_the_longest_and_are_spread() -> None:
    assert [pause(tries, None, 1.0) for tries in (0, 1, 2, 3, 10, 10_000)] == [1, 2, 4, 8, LONGEST, LONGEST]
    assert pause(3, None, 0.0) == 4


def test_what_the_endpoint_asks_for_goes_before_that_up_to_a_bound() -> None:
    assert pause(0, 20.0, 0.0) == 20
    assert pause(0, 10_000.0, 0.5) == LONGEST_ASKED + FIRST / 2


def test_the_waits_of_a_call_end_within_its_patience() -> None:
    slept: list[float] = []
    patience = Patience(100, slept.append)
    with pytest.raises(OutOfPatience):
        while True:
            patience.wait(None, lambda seconds: None)
    assert 40 < sum(slept) <= 100 and patience.waited == pytest.approx(sum(slept))


def test_who_waits_is_told_before() -> None:
    order: list[str] = []
    Patience(10, lambda seconds: order.append("slept")).wait(1, lambda seconds: order.append("told"))
    assert order == ["told", "slept"]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None), ({"retry-after": "7"}, 7), ({"retry-after": "0.5"}, 0.5), ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, None),
        ({"retry-after": "-3"}, None), ({"retry-after": "nan"}, None), ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None), ({"retry-after": "9" * 400}, None),
    ],
)  # fmt: skip
def test_the_header_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds
