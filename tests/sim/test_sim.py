"""Strategies on landscapes: the grid, its rows, and what the tables say of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from labcoat import catalog, strategies
from labcoat.errors import InputError
from labcoat.history import History
from labcoat.sim import Cell, Failure, Grid, Row, markdown, results, run_cell, write
from labcoat.sim.tables import tables

LANDSCAPES = [f"sim/{name}" for name in ("open-slope", "haystack", "fragile", "desert")]


def grid(runs: Path, **options: object) -> Grid:
    given: dict[str, object] = {"seeds": 2, "steps": 8} | options
    return Grid.of(runs=runs, **given)  # type: ignore[arg-type]


def made_up(strategy: str, landscape: str, improvement: float, phi_opp: float, seed: int = 0) -> Row:
    """A run as the tables see it."""
    return Row(
        strategy=strategy, landscape=landscape, seed=seed, steps=100, valid=90, improving=10, phi_opp=phi_opp,
        density=phi_opp, baseline=0.3, best=0.3 + improvement, test_baseline=0.3, test=0.3 + improvement,
        improvement=improvement, position=improvement / 0.7,
    )  # fmt: skip


def test_by_default_all_strategiesare_on_the_twelve_landscapes(tmp_path: Path) -> None:
    found = grid(tmp_path)
    assert found.strategies == tuple(strategies.names())
    assert len(found.landscapes) == 12
    assert len(set(found.cells())) == 12 * 2 * len(found.strategies)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategies": ["autoresaerch"]}, "did you mean autoresearch"),
        ({"strategies": ["random", "random"]}, "--strategy random: given twice"),
        ({"landscapes": ["sim/plain"]}, "unknown task"),
        ({"landscapes": ["fml/fairlearn-adult"]}, "no simulated task with a known optimum"),
        ({"seeds": 0}, "--seeds 0"),
        ({"steps": 0}, "--steps 0"),
    ],
)
def test_a_grid_that_cannot_be_run_is_refused_before_anything_is_written(
    options: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        grid(tmp_path, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("landscape", [*LANDSCAPES, "sim/ridge"])
def test_a_row_is_what_the_journal_says(landscape: str, tmp_path: Path) -> None:
    row = run_cell(Cell("autoresearch", landscape, 3, 30, "offline:mutate", tmp_path))
    (folder,) = (path.parent for path in tmp_path.glob("**/run.json"))
    history, manifest = History(folder), catalog.find(landscape).manifest
    shown, sign = history.to_json(), 1 if manifest.metric.direction == "higher" else -1
    assert (row.steps, row.valid) == (30, sum(trial["status"] == "ok" for trial in shown["trials"]))
    assert (row.baseline, row.best) == (shown["baseline"]["value"], shown["best"]["value"])
    assert (row.test_baseline, row.test) == (shown["test"]["baseline"]["value"], shown["test"]["value"])
    values = [trial["value"] for trial in shown["trials"] if trial["status"] == "ok"]
    assert row.improving == sum(sign * (value - row.baseline) > 0 for value in values)
    assert manifest.metric.best is not None and manifest.metric.worst is not None
    span = abs(manifest.metric.best - manifest.metric.worst)
    assert row.improvement == pytest.approx(max(0.0, sign * (row.test - row.test_baseline) / span))
    assert (row.density > 0) == (row.improving > 0)


def test_a_finished_run_is_read_and_not_run_again(tmp_path: Path) -> None:
    cell = Cell("random", "sim/haystack", 0, 10, "offline:mutate", tmp_path)
    first = run_cell(cell)
    (events,) = tmp_path.glob("**/events.jsonl")
    before = events.read_bytes()
    assert run_cell(cell) == first
    assert events.read_bytes() == before


def test_what_is_written_can_be_read_again(tmp_path: Path) -> None:
    found = grid(tmp_path / "runs", strategies=["random", "autoresearch"], landscapes=LANDSCAPES)
    cells = found.cells()
    failed = {cells[0]: Failure("the disk is full\nfree some", 3)}
    told = results(found, [run_cell(cell) for cell in cells[1:]], failed)
    write(tmp_path / "out", told)
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == told
    with (tmp_path / "out" / "results.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["improvement"]) for row in rows] == [row["improvement"] for row in told["rows"]]
    report = (tmp_path / "out" / "report.md").read_text()
    assert "1 runs failed" in report and "random on sim/open-slope, seed 0: the disk is full" in report
    assert all(landscape in report for landscape in LANDSCAPES)


def test_results_do_not_depend_on_the_order_in_which_runs_end(tmp_path: Path) -> None:
    found = grid(tmp_path, landscapes=["sim/triples", "sim/haystack"], strategies=["random", "autoresearch"])
    rows = [run_cell(cell) for cell in found.cells()]
    assert results(found, rows, {}) == results(found, rows[::-1], {})


# --- what the tables say ----------------------------------------------------------------------------------------------


def test_a_crossover_is_found_where_there_is_one() -> None:
    rows = []
    for n in range(12):
        dense = n >= 6
        rows += [
            made_up("autoresearch", f"l/{n}", 0.5 if dense else 0.05, n / 10),
            made_up("tree", f"l/{n}", 0.3 if dense else 0.15, n / 10),
            made_up("random", f"l/{n}", 0.1 if dense else 0.01, n / 10),
        ]
    split = tables(rows)["density"][0]
    assert split["by"] == "phi_opp"
    assert split["dense"] == [f"l/{n}" for n in range(6, 12)]
    assert {row["other"]: row["crossover"] for row in split["crossover"]} == {"tree": "shown", "random": "absent"}
    ranked = {row["strategy"]: (row["dense_rank"], row["sparse_rank"]) for row in split["strategies"]}
    assert ranked == {"autoresearch": (1, 2), "tree": (2, 1), "random": (3, 3)}
    correlation = {row["strategy"]: row["correlation"]["value"] for row in split["strategies"]}
    assert correlation["autoresearch"] > 0.5 > 0 > correlation["tree"]


def test_one_landscape_that_speaks_for_it_shows_no_crossover() -> None:
    rows = []
    for n in range(12):
        ahead = {11: 0.9, 0: -0.9}.get(n, 0.0)
        rows += [made_up("autoresearch", f"l/{n}", 1 + ahead, n), made_up("tree", f"l/{n}", 1.0, n)]
    (compared,) = tables(rows)["density"][0]["crossover"]
    assert compared["crossover"] == "in sign"


def test_a_strategy_that_equals_the_control_is_not_said_to_improve_on_it() -> None:
    rows = []
    for n in range(12):
        rows += [made_up("random", f"l/{n}", 0.1, n), made_up("equal", f"l/{n}", 0.1 + 0.01 * (-1) ** n, n)]
        rows += [made_up("good", f"l/{n}", 0.2, n)]
    found = tables(rows)
    over = {row["strategy"]: row["over_control"] for row in found["strategies"]}
    assert over["random"] is None
    assert over["good"]["low"] > 0 > over["equal"]["low"]
    assert found["strategies"][0]["strategy"] == "good"


def test_seeds_that_one_strategy_did_not_finish_are_left_out_for_all() -> None:
    rows = [made_up(name, "l/0", value, 0.1, seed) for name, value in (("a", 0.1), ("b", 0.2)) for seed in range(3)]
    (whole,) = tables(rows)["landscapes"]
    (less,) = tables([*rows[:-1], made_up("c", "l/0", 0.9, 0.1, seed=0)])["landscapes"]
    assert whole["win_rate"] == {"a": 0.0, "b": 1.0}
    assert less["win_rate"] == {"a": 0.0, "b": 0.5, "c": 1.0}


def test_nothing_finished_is_a_report_too(tmp_path: Path) -> None:
    found = grid(tmp_path)
    assert "No seed of any landscape is finished for all strategies." in markdown(results(found, [], {}))
