"""What the strategies that draft show a model before a draft."""

from __future__ import annotations

import pytest

from labcoat.lab import Strategy
from labcoat.strategies import aide, aira
from tests.strategies.plays import play


@pytest.mark.parametrize("value", [None, 0.6])
@pytest.mark.parametrize("strategy", [aide.STRATEGY, aira.STRATEGY], ids=lambda strategy: strategy.name)
def test_a_draft_sees_the_baseline_and_the_memory_with_ideas_metrics_and_reviews(
    strategy: Strategy, value: float | None
) -> None:
    _, seen = play(strategy, [0.7, value])
    first, second = (prompt for purpose, prompt in seen if purpose == "idea")
    assert [part.name for part in first.parts] == ["task", "metric", "file", "instruction"]
    assert second.files == first.files and "EPOCHS = 5\n" in second.files["train.py"]
    assert second.get("metric") == "Baseline: score = 0.5 (higher is better)"
    assert second.get("history").splitlines() == [
        "Solutions so far, oldest first:",
        "- score = 0.7 (higher is better)",
        "  Idea: idea 0",
        "  Review: review 1",
    ]
