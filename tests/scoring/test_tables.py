"""Arms, rounds and the tables over many runs, also where some are missing."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labcoat.manifest import Metric
from labcoat.report import scored as scored_in_full
from labcoat.report.formats import markdown
from labcoat.report.gather import Gathered
from labcoat.report.sheets import sheets
from labcoat.scoring import arms
from labcoat.scoring.comparison import win_rates, win_shares
from labcoat.scoring.correlation import correlation_p
from labcoat.scoring.measures import Mode
from labcoat.scoring.process import DIMENSIONS
from labcoat.scoring.runs import Run
from labcoat.scoring.table import Row, distinct, rounds, rows
from labcoat.scoring.tables import mean, tables
from tests.scoring.made import ERROR, made, placed


def spec(**fields: Any) -> dict[str, Any]:
    strategy = {"name": fields.pop("name", "aide"), "params": fields.pop("params", {}), "source": "s"}
    return {"task": {"id": "t", "hash": "h"}, "seed": 0, "strategy": strategy, "models": {"*": "m"}} | fields


def names(*specs: dict[str, Any]) -> list[str]:
    found = arms.names(specs)
    return [found[arms.key_of(each)] for each in specs]


def scored(runs: Sequence[Run], **options: Any) -> dict[str, Any]:
    return tables(rows(runs, options.get("geometry", {}), "paper"))


def grid(tests: Callable[[int, int, int], float], *, strategies: int = 2, tasks: int = 2, seeds: int = 2) -> list[Run]:
    """A run for each strategy, task and seed."""
    return [
        made(strategy=f"s{strategy}", task=f"fml/t{task}", seed=seed, test=tests(strategy, task, seed))
        for strategy in range(strategies)
        for task in range(tasks)
        for seed in range(seeds)
    ]


# --- arms -----------------------------------------------------------------------------------------------------------


def test_arms_of_one_strategy_are_told_apart_by_what_differs() -> None:
    assert names(spec(), spec(name="random")) == ["aide", "random"]
    assert names(spec(params={"drafts": 3}), spec(params={"drafts": 5})) == ["aide[drafts=3]", "aide[drafts=5]"]
    assert names(spec(), spec(models={"*": "other"})) == ["aide[model=m]", "aide[model=other]"]
    assert names(spec(models={"*": "m", "edit": "e"}), spec())[0] == "aide[models.edit=e]"


def test_arms_that_differ_in_much_or_in_their_source_have_a_hash() -> None:
    one, other = names(spec(), spec(params=dict.fromkeys("abcd", 1)))
    assert one != other and all(name.startswith("aide-") and len(name) == 13 for name in (one, other))
    changed = spec()
    changed["strategy"]["source"] = "changed"
    assert all(name.startswith("aide-") for name in names(spec(), changed))


def test_task_and_seed_are_not_the_arms() -> None:
    assert len(arms.names([spec(), spec(seed=1), spec(task={"id": "u", "hash": "i"})])) == 1


def test_forks_at_one_step_are_one_arm_whatever_they_are_forks_of() -> None:
    one, other = ({"run": run, "step": 3, "events": run} for run in "ab")
    assert arms.key_of(spec(fork=one)) == arms.key_of(spec(fork=other))
    assert names(spec(), spec(fork=one)) == ["aide[fork.step=-]", "aide[fork.step=3]"]


# --- rounds ---------------------------------------------------------------------------------------------------------


def numbered(runs: Sequence[Run]) -> dict[str, int]:
    return {run.folder: number for run, number in rounds(runs)}


def test_equal_seeds_are_one_round() -> None:
    found = numbered([made(strategy=s, seed=seed) for s, seeds in {"a": [3, 7], "b": [7, 9]}.items() for seed in seeds])
    assert [found[f"runs/fml/task/{key}"] for key in ("a/3", "a/7", "b/7", "b/9")] == [1, 2, 2, 3]


def test_without_a_common_seed_equal_ranks_are_one_round() -> None:
    found = numbered([made(strategy=s, seed=seed) for s, seeds in {"a": [3, 7], "b": [8, 9]}.items() for seed in seeds])
    assert [found[f"runs/fml/task/{key}"] for key in ("a/3", "a/7", "b/8", "b/9")] == [1, 2, 1, 2]


def test_two_runs_of_one_seed_are_two_rounds() -> None:
    again = made(seed=1, folder="elsewhere", content="another journal")
    assert sorted(number for _, number in rounds([made(seed=1), again, made(strategy="b", seed=1)])) == [1, 1, 2]


def test_a_task_that_changed_is_another_task() -> None:
    changed = made(seed=1, spec=dict(made(seed=1).spec) | {"task": {"id": "fml/task", "hash": "0123456789"}})
    assert [task["task"] for task in scored([made(), changed])["tasks"]] == ["fml/task#01234567", "fml/task#hash of "]


# --- win rates ------------------------------------------------------------------------------------------------------


def test_win_rates_over_tasks_and_over_rounds_differ_as_the_papers_do() -> None:
    """One great round wins a task, and one of three pairs."""
    found = scored(grid(lambda s, t, seed: (0.9 if seed == 0 else 0.5) if s else 0.6, tasks=1, seeds=3))
    rates = {arm["arm"]: arm for arm in found["arms"]}
    assert rates["s1"]["win_rate_over_tasks"] == {"rate": 1.0, "comparisons": 1}
    assert rates["s1"]["win_rate_over_rounds"] == {"rate": 1 / 3, "comparisons": 3}
    assert rates["s0"]["win_rate_over_rounds"]["rate"] == 2 / 3


def test_wins_are_in_the_native_direction_and_ties_are_nobodys() -> None:
    better, worse = made(strategy="a", test=0.2, metric=ERROR), made(strategy="b", test=0.4, metric=ERROR)
    found = {arm["arm"]: arm["win_rate_over_tasks"]["rate"] for arm in scored([better, worse])["arms"]}
    assert found == {"a": 1.0, "b": 0.0}
    tied = scored([made(strategy="a"), made(strategy="b")])["arms"]
    assert [arm["win_rate_over_rounds"]["rate"] for arm in tied] == [0.0, 0.0]


def test_win_rates_of_a_full_table_are_means_of_win_shares() -> None:
    rng = random.Random(1)
    full = {name: {cell: rng.choice([0.0, 0.5, 1.0]) for cell in range(20)} for name in "abc"}
    shares = win_shares(full)
    for name, found in win_rates(full).items():
        assert found.rate == pytest.approx(sum(shares[name].values()) / 20) and found.comparisons == 40
    assert math.isnan(win_rates({"alone": {1: 1.0}})["alone"].rate)


# --- partial suites -------------------------------------------------------------------------------------------------


def test_what_is_missing_is_listed_and_the_rest_is_scored() -> None:
    runs = grid(lambda s, t, seed: 0.6 + 0.1 * s)
    partial = [run for run in runs if run.folder not in ("runs/fml/t1/s0/0", "runs/fml/t1/s0/1", "runs/fml/t0/s1/1")]
    found = scored(partial)
    said = {each["what"]: each["why"] for each in found["missing"]}
    assert said == {"s0 on fml/t1": "no run", "s1 on fml/t0": "no run in round 2"}
    by_arm = {arm["arm"]: arm for arm in found["arms"]}
    assert by_arm["s0"]["improvement"]["n"] == 1 and by_arm["s1"]["improvement"]["n"] == 2
    assert by_arm["s1"]["improvement_on_shared_tasks"]["n"] == 1
    assert by_arm["s1"]["win_rate_over_rounds"] == {"rate": 1.0, "comparisons": 1}


def test_a_stopped_run_is_in_the_process_metrics_and_not_in_the_means() -> None:
    stopped = made(["crash", 0.7], test=None, seed=1, budget=10)
    found = scored([made(["crash"] * 5 + [0.6] * 5, budget=10), stopped])
    assert found["tasks"][0]["improvement"]["greedy"]["n"] == 1
    assert found["arms"][0]["process"]["Valid step ratio"] == pytest.approx((0.5 + 0.1) / 2)
    assert {"what": stopped.folder, "why": "not finished: 2 of 10 steps; no test"} in found["missing"]


def test_nothing_to_score_gives_empty_tables() -> None:
    found = scored([])
    assert found["arms"] == found["tasks"] == found["missing"] == [] and found["partition"] is None


# --- means, correlations, partition ---------------------------------------------------------------------------------


def test_the_mean_of_an_arm_is_over_tasks_of_means_over_rounds_with_sample_deviations() -> None:
    gains = {(0, 0): 0.0, (0, 1): 0.2, (1, 0): 0.3, (1, 1): 0.3}
    found = scored(grid(lambda s, t, seed: 0.5 + gains[t, seed], strategies=1))
    first = found["tasks"][0]["improvement"]["s0"]
    assert (first["mean"], first["sd"]) == (pytest.approx(0.1), pytest.approx(0.02**0.5))
    whole = found["arms"][0]["improvement"]
    assert (whole["mean"], whole["sd"], whole["n"]) == (pytest.approx(0.2), pytest.approx(0.02**0.5), 2)


@pytest.mark.parametrize(
    ("rho", "n", "p"), [(0.784, 324, 1.6e-68), (-0.291, 305, 2.3e-7), (0.115, 324, 0.039), (-0.140, 324, 0.011)]
)
def test_p_values_are_the_papers(rho: float, n: int, p: float) -> None:
    assert correlation_p(rho, n) == pytest.approx(p, rel=0.25)


def test_a_correlation_leaves_out_runs_that_have_no_value_and_counts_the_others() -> None:
    runs = [made([value], seed=seed, test=value) for seed, value in enumerate([0.4, 0.6, 0.7, 0.8])]
    found = {row["metric"]: row for row in scored(runs)["correlations"]}
    assert found["AUC-over-steps"]["n"] == 4 and found["AUC-over-steps"]["rho"] == 1
    assert found["First-improvement step"]["n"] == 3 and found["First-improvement step"]["rho"] is None
    assert found["Exploration Reach"]["n"] == 0 and found["Exploration Reach"]["p"] is None


def test_what_holds_between_tasks_need_not_hold_within_them() -> None:
    """The better task costs more, and within each task what costs more is worse."""
    runs = [
        made(task=f"fml/t{task}", seed=seed, test=0.6 + 0.3 * task - 0.01 * seed, tokens=100 * task + seed)
        for task in range(2)
        for seed in range(4)
    ]
    (cost,) = (row for row in scored(runs)["correlations"] if row["metric"] == "Token cost (M)")
    assert cost["rho"] > 0.4 and cost["within_tasks"] == -1 and cost["tasks"] == 2
    assert cost["p_within"] < 0.02 < 0.05 < cost["p"]
    assert cost["p_within"] <= cost["benjamini_hochberg"] <= cost["holm"]


def test_tasks_are_split_at_their_median_density() -> None:
    runs = [
        made([0.5 + 0.1 * (task + 1)], task=f"fml/t{task}", strategy=f"s{s}", test=0.6 + 0.1 * (s == (task < 2)))
        for task in range(4)
        for s in range(2)
    ]
    found = scored(runs, geometry={run.folder: placed(run) for run in runs})["partition"]
    assert found["dense"] == ["fml/t2", "fml/t3"] and found["sparse"] == ["fml/t0", "fml/t1"]
    assert found["median"] == pytest.approx(0.25)
    ranked = {arm["arm"]: (arm["dense_rank"], arm["sparse_rank"]) for arm in found["arms"]}
    assert ranked == {"s0": (1, 2), "s1": (2, 1)}


def test_marks_of_the_runs_are_those_of_their_arm_and_task() -> None:
    found = scored([made(marks=("simulated",)), made(strategy="b", marks=("no sandbox",))])
    assert found["tasks"][0]["marks"] == ["no sandbox", "simulated"]
    assert sorted(arm["marks"] for arm in found["arms"]) == [["no sandbox"], ["simulated"]]


# --- properties -----------------------------------------------------------------------------------------------------

tests_of = st.lists(st.one_of(st.none(), st.floats(0, 1).map(lambda x: round(x, 2))), min_size=8, max_size=8)


def some(tests: list[float | None]) -> list[Run]:
    """Two strategies, two tasks, two seeds; None for a run that was stopped."""
    values = iter(tests)
    return [
        made([test or 0.4], strategy=s, task=f"fml/t{t}", seed=seed, test=test)
        for s in "ab"
        for t in range(2)
        for seed in range(2)
        for test in [next(values)]
    ]


@settings(max_examples=25)
@given(tests_of, st.randoms(use_true_random=False))
def test_the_order_of_runs_changes_nothing(tests: list[float | None], rng: random.Random) -> None:
    runs = some(tests)
    before = scored(runs)
    rng.shuffle(runs)
    assert scored(runs) == before


@settings(max_examples=25)
@given(tests_of)
def test_copies_of_runs_change_nothing_and_are_named(tests: list[float | None]) -> None:
    runs = some(tests)
    copies = [Run(**vars(run) | {"folder": f"z-copies/{run.folder}"}) for run in runs]
    kept, left_out = distinct([*copies, *runs])
    assert scored(kept) == scored(runs)
    assert len(left_out) == len(runs) and all("a copy of runs/" in each.why for each in left_out)


@settings(max_examples=25)
@given(tests_of)
def test_win_rates_are_shares_and_those_of_two_arms_sum_to_at_most_1(tests: list[float | None]) -> None:
    for over in ("win_rate_over_tasks", "win_rate_over_rounds"):
        rates = [arm[over]["rate"] for arm in scored(some(tests))["arms"]]
        assert None in rates or (all(0 <= rate <= 1 for rate in rates) and sum(rates) <= 1)


def test_one_run_is_a_table() -> None:
    found = scored([made()])
    (arm,) = found["arms"]
    assert arm["improvement"] == {"mean": pytest.approx(0.1), "sd": None, "n": 1}
    assert arm["win_rate_over_tasks"] == {"rate": None, "comparisons": 0}
    assert [row["metric"] for row in found["correlations"]] == list(DIMENSIONS)
    assert all(row["rho"] is None for row in found["correlations"])


def test_a_row_holds_all_that_further_statistics_need() -> None:
    (row,) = rows([made(seed=4)], {}, "paper")
    assert isinstance(row, Row) and (row.arm, row.task, row.round, row.run.seed) == ("greedy", "fml/task", 1, 4)
    assert row.score.improvement == pytest.approx(0.1)


def test_a_mean_whose_sum_is_no_number_keeps_its_sign() -> None:
    values = {"greedy": -1.5e308, "random": 0.0}
    runs = [made(test=test, metric=UNBOUNDED, strategy=arm, seed=s) for arm, test in values.items() for s in range(2)]
    assert mean([-1.5e308] * 2) == -1.5e308
    rates = {arm["arm"]: arm["win_rate_over_tasks"]["rate"] for arm in scored(runs)["arms"]}
    assert rates == {"greedy": 0.0, "random": 1.0}


def test_an_infinite_improvement_has_no_mean_and_no_deviation() -> None:
    """A p-value that may fall to 0 and is displayed as -log10."""
    small = Metric(name="p", direction="lower", best=1e-9, display="-log10")
    runs = [made(test=test, metric=small, seed=seed) for seed, test in enumerate([0.0, 0.01])]
    found = scored(runs)
    assert found["tasks"][0]["improvement"]["greedy"] == {"mean": None, "sd": None, "n": 2}
    assert [run["improvement"] is None for run in found["runs"]] == [True, False]
    json.dumps(found, allow_nan=False)


UNBOUNDED = Metric(name="count", direction="higher", best=1.0)
EXTREMES = st.sampled_from([0.0, 1e-300, 0.3, 0.3, 1.0, -1.0, 1e200, -1e200, 1e308, "violation", "bad_output", None])


@given(st.lists(st.tuples(EXTREMES, EXTREMES), min_size=4, max_size=12), st.sampled_from(["paper", "released"]))
def test_whatever_is_measured_every_table_is_made_and_is_json(
    measured: list[tuple[float | str | None, float | str | None]], mode: Mode
) -> None:
    """A candidate whose metric leaves all bounds must not take the other runs' tables away."""
    metrics = [UNBOUNDED, ERROR, Metric(name="p", direction="lower", best=1e-9, display="-log10")]
    runs = [
        made([value, 0.4], test=test, metric=metrics[task], task=f"t{task}", strategy=f"s{arm}", seed=seed)
        for (value, test), (seed, task, arm) in zip(
            measured, itertools.product(range(2), range(3), range(2)), strict=False
        )
    ]
    geometry = {run.folder: placed(run) for run in runs}
    found = scored_in_full(Gathered(runs, geometry), mode, "tokens")
    json.dumps(found, allow_nan=False)
    markdown("all", sheets(found))
