"""The paper's own figures: what comes out of its tables, and that a wrong figure would be seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import pytest
from scipy import stats

from labcoat.paper import headline, opportunity, process, published, report, results
from labcoat.paper.check import VERDICTS, Check
from labcoat.paper.published import Printed

Edit = Callable[..., None]
CACHED = [
    published.improvement, published.means, published.standings, published.metrics, published.tasks, published.text,
    headline.pairs,
]  # fmt: skip


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Edit]:
    """Change the rows of a table that have given values, as if they had been printed so."""

    def forget() -> None:
        for function in CACHED:
            function.cache_clear()

    def change(table: str, where: dict[str, str], **values: str) -> None:
        rows = published._rows
        assert any(where.items() <= row.items() for row in rows(table))
        monkeypatch.setattr(
            published,
            "_rows",
            lambda name: [
                {**row, **values} if name == table and where.items() <= row.items() else row for row in rows(name)
            ],
        )
        forget()

    yield change
    monkeypatch.undo()
    forget()


def every() -> list[Check]:
    return [check for checks in report.sections().values() for check in checks]


def find(claim: str, checks: Iterable[Check]) -> Check:
    (found,) = (check for check in checks if check.claim == claim)
    return found


def test_the_tables_are_whole() -> None:
    assert {agent: len(own) for agent, own in published.improvement().items()} == dict.fromkeys(published.means(), 19)
    assert len(published.means()) == 6 and len(published.standings()) == 7
    assert set(published.tasks()) == set(published.means()["AIDE"]) and len(published.tasks()) == 18
    assert len(published.metrics()) == 12
    assert all(len(metric.values) == 6 for metric in published.metrics().values())


def test_every_claim_is_asked_once_and_every_verdict_is_given() -> None:
    claims = [check.claim for check in every()]
    assert len(claims) == len(set(claims)) > 70
    assert {check.verdict for check in every()} == set(VERDICTS)


def test_what_is_supported_has_an_interval_without_zero() -> None:
    for check in every():
        found = check.estimate
        if found is not None and check.verdict == "agrees":
            assert found.low is not None and found.high is not None
            assert found.low > 0 or found.high < 0, check.claim


def test_the_figures_that_come_out_otherwise() -> None:
    assert [check.claim for check in every() if check.verdict == "differs"] == [
        "win rates are shares over N tasks",
        "p-value of Late-gain fraction, n = 324",
        "improvement on the relative scale is unbounded above",
    ]


def test_the_figures_that_need_what_is_not_published() -> None:
    assert [check.claim for check in every() if check.verdict == "cannot be re-derived"] == [
        "mean improvement of Adaptive",
        "win rates of six agents",
        "opportunity density of each task",
        "means of Adaptive on both halves",
        "worst values of the bounded metrics",
        "Adaptive is ahead of TAS v2 in mean improvement",
        "Adaptive is ahead of AutoR in mean improvement",
    ]


def test_the_leaders_are_not_told_apart() -> None:
    check = find("TAS v2 is ahead of AutoR", every())
    assert check.verdict == "not supported" and check.estimate is not None
    assert check.estimate.value == pytest.approx(0.016 / 18)
    assert (check.estimate.low, check.estimate.high) == pytest.approx((-0.026, 0.032), abs=0.002)


def test_of_the_four_predictors_two_stand_after_holm() -> None:
    names = ["AUC-over-steps", "First-improvement step", "Exploration Reach", "Effective dim"]
    verdicts = [find(f"{name} is associated with improvement", every()).verdict for name in names]
    assert verdicts == ["agrees", "agrees", "not supported", "not supported"]


TABLE2, TABLE3, TABLE4, TABLE5, TEXT = (
    "table2_normalised_improvement.csv",
    "table3_seven_agents.csv",
    "table4_process_metrics.csv",
    "table5_tasks.csv",
    "text.csv",
)


@pytest.mark.parametrize(
    ("claim", "figures", "table", "where", "values"),
    [
        ("MEAN row: means over 18 tasks", results.checks, TABLE2, {"task": "MEAN", "agent": "AIDE"}, {"mean": "0.180"}),
        ("MEAN row: ±", results.checks, TABLE2, {"task": "MEAN", "agent": "AIDE"}, {"sd": "0.224"}),
        (
            "means ± deviations of three values that are never negative",
            *(results.checks, TABLE2, {"task": "OpenOOD", "agent": "AIDE"}, {"sd": "0.040"}),
        ),
        (
            "tasks on which AutoR is first or last of six; the most of all",
            *(results.checks, TABLE2, {"task": "Opacus", "agent": "AutoR"}, {"mean": "0.005"}),
        ),
        (
            "mean improvement of the six agents of Table 2",
            *(results.checks, TABLE3, {"agent": "AIDE"}, {"mean_improvement": "0.179"}),
        ),
        (
            "win rates, if N are pairs of a task and a round",
            *(results.checks, TABLE3, {"agent": "AIDE"}, {"win_rate_percent": "49.5"}),
        ),
        (
            "places on AUC-over-steps, 1 the largest",
            *(process.checks, TABLE4, {"agent": "AutoR", "metric": "AUC-over-steps"}, {"value": "0.16"}),
        ),
        ("p-value of Token cost (M), n = 324", process.checks, TABLE4, {"metric": "Token cost (M)"}, {"p": ".035"}),
        (
            "p-value of First-improvement step, n = 305",
            *(process.checks, TEXT, {"name": "p", "of": "First-improvement step"}, {"value": "9.6e-8"}),
        ),
        ("median opportunity density", opportunity.figures, TABLE5, {"task": "Opacus"}, {"phi_opp": "0.150"}),
        ("tasks labelled by the median", opportunity.figures, TABLE5, {"task": "Opacus"}, {"partition": "SPARSE-OPP"}),
        (
            "means on the sparse half",
            *(opportunity.figures, TEXT, {"name": "sparse", "of": "OEvolve"}, {"value": "0.060"}),
        ),
        (
            "AutoR is first of seven on the dense half and sixth on the sparse",
            *(opportunity.figures, TEXT, {"name": "sparse", "of": "Adaptive"}, {"value": "0.030"}),
        ),
    ],
)
def test_a_wrong_figure_is_seen(
    claim: str,
    figures: Callable[[], list[Check]],
    table: str,
    where: dict[str, str],
    values: dict[str, str],
    edit: Edit,
) -> None:
    assert find(claim, every()).verdict == "agrees"
    edit(table, where, **values)
    assert find(claim, figures()).verdict == "differs"


def test_a_claim_that_the_values_do_support_is_supported(edit: Edit) -> None:
    claim = "TAS v2 is well above AIRA"
    assert find(claim, every()).verdict == "not supported"
    edit(TABLE2, {"agent": "AIRA"}, mean="0.000")
    assert find(claim, headline.checks()).verdict == "agrees"


@pytest.mark.parametrize(
    ("text", "slack"), [("0.1315", 5e-5), (".039", 5e-4), ("58.5", 0.05), ("1.6e-68", 5e-70), ("10", 0.5)]
)
def test_a_number_is_as_exact_as_it_is_printed(text: str, slack: float) -> None:
    assert Printed(text).slack == pytest.approx(slack)


def test_a_percentage_tells_how_many_comparisons_were_won() -> None:
    assert results.wins(58.5, 270) == [158] and results.wins(56.2, 324) == [182]
    assert results.wins(58.5, 90) == []


def test_a_p_value_fits_the_number_of_runs_it_was_computed_from() -> None:
    assert process.fits(-0.291, "2.3e-7", 305) and not process.fits(-0.291, "2.3e-7", 324)
    assert process.fits(-0.042, ".462", 305) and not process.fits(-0.042, ".462", 324)
    assert process.fits(0.784, "<.001", 324) and not process.fits(0.094, "<.001", 324)


def test_likeness_within_tasks_is_that_of_a_one_way_analysis(edit: Edit) -> None:
    """Two tasks of which all is known: three rounds of six agents, equal within an agent."""
    assert 0.7 < process.likeness() < 0.9
    edit("table2_normalised_improvement.csv", {}, sd="0")
    groups = [[own[task] for own in published.means().values() for _ in range(3)] for task in published.tasks()]
    ratio = float(stats.f_oneway(*groups).statistic)
    assert process.likeness() == pytest.approx((ratio - 1) / (ratio + 17))


def test_headroom_is_what_the_baselines_leave() -> None:
    assert headline.room("OpenOOD") == pytest.approx(0.07)
    assert headline.room("gCastle") == 1.0
    assert headline.room("PrivacyMeter") == pytest.approx(0.642)
    rooms = {task: headline.room(task) for task in published.tasks()}
    for own in published.means().values():
        assert all(value <= rooms[task] + 5e-4 for task, value in own.items())


def test_the_halves_are_nine_tasks_each() -> None:
    dense, sparse = opportunity.halves()
    assert len(dense) == len(sparse) == 9 and {"Unlearning", "Opacus"} < set(dense)


def test_pairs_are_all_of_six_agents_in_data_too() -> None:
    pairs = report.data()["pairs"]
    assert len(pairs) == math.comb(6, 2)
    assert all(pair["holm"] >= pair["benjamini_hochberg"] >= pair["p"] for pair in pairs)
