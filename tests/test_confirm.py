"""After the search: candidates measured again on further seeds, and the chosen code trained again for the test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from labcoat.bench.outcome import Measure, Outcome
from labcoat.bench.simulated import SimulatedBench
from labcoat.errors import InputError
from labcoat.history import History
from labcoat.plan import Confirm, Plan
from labcoat.replaying import replay
from labcoat.running import execute
from labcoat.task import Task
from labcoat.tree import Code

Change = Callable[[Outcome], Outcome]


class Luck(SimulatedBench):
    """The simulated bench where the search's seed was lucky: on any other, `change` happens to what is measured."""

    def __init__(self, task: Task, folder: Path, change: Change = lambda outcome: outcome) -> None:
        super().__init__(task)
        self.folder, self.change = folder, change

    @contextmanager
    def trial(self, code: Code, seed: int) -> Iterator[tuple[Outcome, Path | None]]:
        left = self.folder / "left"
        code.write(left)
        with super().trial(code, seed) as (outcome, _):
            found = replace(outcome, artefact=code.sha)
            yield (found if seed == 0 else self.change(found)), left
        shutil.rmtree(left)

    def test(self, artefact: Path | None, code: Code, seed: int) -> Outcome:
        assert artefact is not None
        return replace(super().test(None, code, seed), artefact=Code.read(artefact).sha)


def worth(value: float) -> Change:
    return lambda outcome: replace(outcome, metrics=outcome.metrics | {"loss": Measure([value], [None])})


def run(
    tmp_path: Path, change: Change = lambda outcome: outcome, *, confirm: str = "1,0", retest: int = 0, steps: int = 20
) -> History:
    plan = Plan.of(
        task="sim/ridge", strategy="autoresearch", params=None, model="offline:mutate", steps=steps, seed=0,
        confirm=Confirm.parse(confirm), retest=retest,
    )  # fmt: skip
    return History(execute(plan, tmp_path / "runs", lambda: Luck(plan.task, tmp_path, change), []))


def test_by_default_the_best_of_the_search_is_chosen(tmp_path: Path) -> None:
    history = run(tmp_path)
    assert history.chosen is history.best
    assert history.confirmed() == []
    assert history.tested_again() == []


def test_the_best_few_are_measured_on_the_same_further_seeds_and_the_best_mean_is_chosen(tmp_path: Path) -> None:
    history = run(tmp_path, confirm="3,4")
    (baseline, _), *candidates = history.confirmed()
    assert baseline.number == 0
    ranked = sorted((step for step in history.trials if step.outcome.ok), key=lambda s: s.value("loss") or 9)
    codes = dict.fromkeys(history.code(step).sha for step in ranked)
    assert {history.code(step).sha for step, _ in candidates} == set(list(codes)[:3])
    seeds = {tuple(outcome.seed for outcome in outcomes) for _, outcomes in history.confirmed()}
    assert len(seeds) == 1 and len({*seeds.pop()} - {0}) == 4
    means = {step.number: fmean(o.metrics["loss"].mean for o in outcomes) for step, outcomes in candidates}
    assert history.chosen is not None and history.chosen.number == min(means, key=means.__getitem__)
    assert replay(history).finished


def test_the_lucky_value_of_the_search_does_not_count(tmp_path: Path) -> None:
    history = run(tmp_path, worth(9.0), confirm="2,2")
    assert history.best is not None and history.best.number != 0
    assert history.chosen is not None and history.chosen.number == 0  # on other seeds nothing beats the baseline
    assert history.test_outcome() == history.test_outcome("test/baseline")


def test_a_candidate_that_fails_on_a_seed_is_out(tmp_path: Path) -> None:
    history = run(tmp_path, lambda outcome: replace(outcome, status="violation"), confirm="2,2")
    assert history.chosen is not None and history.chosen.number == 0


def test_among_equals_the_better_of_the_search_is_chosen(tmp_path: Path) -> None:
    history = run(tmp_path, worth(0.2), confirm="3,2")
    assert history.chosen is history.best


def test_the_artefacts_of_all_candidates_are_kept_until_one_is_chosen(tmp_path: Path) -> None:
    history = run(tmp_path, confirm="3,4")
    assert history.chosen is not None
    assert [path.name for path in (history.folder / "best").iterdir()] == [history.chosen.outcome.artefact]


def test_further_trainings_are_tested_with_their_seeds(tmp_path: Path) -> None:
    history = run(tmp_path, retest=3)
    again = history.tested_again()
    assert len({outcome.seed for outcome in again} - {0}) == 3
    assert all(outcome.ok for outcome in again)
    shown = history.to_json()["test"]
    assert [len(shown["values"]), len(shown["again"])] == [1, 3]
    assert replay(history).finished


def test_from_every_prefix_the_choice_is_the_same(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", confirm="2,2", retest=2, steps=6)
    lines = (whole.folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    search = next(n for n, e in enumerate(whole.journal.events) if e["kind"] == "search") - 1
    kept = tmp_path / "kept"
    for length in range(search, len(lines) - 1):
        folder = tmp_path / str(length)
        with pytest.raises(KeyboardInterrupt):
            interrupted(folder, kept, length)
        resumed = run(folder, confirm="2,2", retest=2, steps=6).to_json()
        assert resumed | {"folder": "", "spent": {}} == whole.to_json() | {"folder": "", "spent": {}}


def interrupted(folder: Path, kept: Path, length: int) -> None:
    """The same run, ended by Ctrl-C after so many events."""
    count = 0

    def press(event: object) -> None:
        nonlocal count
        count += 1
        if count == length:
            raise KeyboardInterrupt

    plan = Plan.of(
        task="sim/ridge", strategy="autoresearch", params=None, model="offline:mutate", steps=6, seed=0,
        confirm=Confirm(2, 2), retest=2,
    )  # fmt: skip
    folder.mkdir(exist_ok=True)
    execute(plan, folder / "runs", lambda: Luck(plan.task, folder), [press])


@pytest.mark.parametrize("text", ["", "3", "0,1", "1,-1", "a,b", "1,2,3"])
def test_bad_values_are_named(text: str) -> None:
    with pytest.raises(InputError, match="write it as K,S"):
        Confirm.parse(text)
