"""OpenEvolve against the golden traces of the original's database, and our own rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from random import Random
from typing import Any

import pytest

from labcoat.history import History
from labcoat.lab import Brief, Code, Metric, Trial
from labcoat.models import Models
from labcoat.models.scripted import ScriptedModel
from labcoat.strategies import openevolve, openevolve_rules
from labcoat.strategies.openevolve import STRATEGY, OpenEvolve
from labcoat.strategies.openevolve_rules import Database, Draw, Program, program_of
from labcoat.testing import traced
from tests.strategies.plays import best_value, golden, play, title

TRACES = golden("openevolve")
IN_ROUNDS = list({trace["script"]: trace for trace in TRACES if trace["params"]["schedule"] == "round"}.values())
FIRST_COPY = 1000


def params_of(trace: dict[str, Any]) -> OpenEvolve:
    """The trace's parameters as ours, with the original's rule for the archive."""
    ours = {key: value for key, value in trace["params"].items() if key in OpenEvolve.model_fields}
    return OpenEvolve(**ours, archive_failures=True)


def tried(value: float | None) -> Trial:
    """A trial; without a value it failed."""
    ok = value is not None
    return Trial("", Code.of({}), ok, "ok" if ok else "crash", value, "", "")


def program(value: float | None, text: str = "", island: int = 0, settled: bool = False) -> Program:
    return Program(tried(value), text, -inf if value is None else value, island, settled)


def a_database(*programs: Program, **params: Any) -> Database:
    database = Database(OpenEvolve(**params))
    for one in programs:
        database.add(one)
    return database


def fixed(low: float, high: float) -> Random:
    """A generator whose next number lies between the two."""
    return Random(next(seed for seed in range(1000) if low <= Random(seed).random() < high))


class Traced(Database):
    """A database that is given the programs of a trace.

    Its axes are those of the trace, its draw by fitness and the fitness of what failed are the original's, and its
    first program may migrate.
    """

    def __init__(self, trace: dict[str, Any]) -> None:
        self.outcomes = trace["outcomes"]
        self.axes: list[str] = trace["params"]["feature_dimensions"]
        self.given_axes = [axis for axis in self.axes if axis.startswith("f")]
        self.num_axes = len(self.axes)
        self.numbers: dict[Program, int] = {}
        self.sources: dict[Trial, int] = {}
        self.states: list[str] = []
        self.sizes: list[list[int]] = []
        self.cells_given: list[list[int]] = []
        self.displaced: list[int | None] = []
        self.migrants: list[list[int]] = []
        super().__init__(params_of(trace))

    def add(self, new: Program) -> Program | None:
        """Number the program; unless it is a copy, give it what the trace says of it."""
        copy = new.trial in self.sources
        number = len(self.sources) + len(self.migrants)
        if copy:
            number = FIRST_COPY + len(self.migrants)
            self.migrants.append([len(self.sources) - 1, self.numbers[self.origin(new)], number, new.island])
        else:
            number = len(self.sources)
            self.sources[new.trial] = number
            given = self.outcomes[number]
            fitness = 0.0 if given["buggy"] else given["metric"]
            new = replace(new, text=given["code"], fitness=fitness, settled=False)
        self.numbers[new] = number
        displaced = super().add(new)
        if not copy:
            owner = self.grids[new.island].get(self.cell(new)) is new
            self.cells_given.append([*self.cell(new)])
            self.displaced.append((None if displaced is None else self.numbers[displaced]) if owner else -1)
            if number == 0:
                self.note()
        return displaced

    def origin(self, copy: Program) -> Program:
        return next(one for one in self.programs if one.trial is copy.trial and not one.settled)

    def count(self, island: int) -> list[Program]:
        """The state is compared after the migration, if there is one."""
        copies = super().count(island)
        self.note()
        return copies

    def note(self) -> None:
        state = json.dumps([*self.snapshot().values()], separators=(",", ":"))
        self.states.append(hashlib.sha1(state.encode()).hexdigest()[:8])
        self.sizes.append([len(self.programs), len(self.archive), sum(map(len, self.grids))])

    def snapshot(self) -> dict[str, Any]:
        number = self.numbers
        return {
            "islands": [sorted(number[one] for one in island) for island in self.islands],
            "cells": [sorted([*cell, number[one]] for cell, one in grid.items()) for grid in self.grids],
            "archive": sorted(number[one] for one in self.archive),
            "best": None if self.best is None else number[self.best],
            "island_best": [None if one is None else number[one] for one in self.island_best],
            "programs": sorted(number[one] for one in self.programs),
        }

    def features(self, program: Program) -> list[float | None]:
        """The values on the trace's axes."""
        return [self.feature(axis, program) for axis in self.axes]

    def feature(self, axis: str, program: Program) -> float | None:
        length, diversity = super().features(program) if axis in ("complexity", "diversity") else (None, None)
        if axis.startswith("f"):
            given: list[float] = self.outcomes[self.sources[program.trial]]["features"]
            return given[self.given_axes.index(axis)]
        return {"complexity": length, "diversity": diversity, "score": program.fitness}[axis]

    def weights(self, members: Sequence[Program]) -> list[float]:
        """The original weighs the bare fitness."""
        return [max(one.fitness, openevolve_rules.FLOOR) for one in members]


def agree(database: Traced, trace: dict[str, Any]) -> None:
    """All that is independent of the draws is as in the original."""
    structure = trace["structure"]
    assert database.states == structure["state_sha1"]
    assert database.sizes == structure["sizes"]
    assert database.displaced == structure["displaced"]
    assert database.migrants == structure["migrants"]
    assert database.snapshot() == [*structure["snapshots"].values()][-1]


# --- the golden traces --------------------------------------------------------------------------------------------


def schedule(trace: dict[str, Any]) -> list[list[int]]:
    """The islands whose parents are drawn together, batch by batch."""
    islands, left = trace["params"]["num_islands"], trace["budget"]
    if trace["params"]["schedule"] == "serial":
        return [[number % islands] for number in range(left)]
    return [list(range(min(islands, left - done))) for done in range(0, left, islands)]


@pytest.mark.parametrize("trace", TRACES, ids=title)
def test_the_rules_take_the_decisions_of_the_original_with_the_same_draws(trace: dict[str, Any]) -> None:
    database, rng = Traced(trace), Random(trace["seed"])
    assert database.bins == trace["structure"]["bins"]
    database.add(program(1.0))
    decisions: list[dict[str, Any]] = []
    for islands in schedule(trace):
        draws = [database.draw(island, rng) for island in islands]
        for island, draw in zip(islands, draws, strict=True):
            decisions.append(decided(database, len(decisions) + 1, island, draw))
            database.add(program(1.0, island=island))
            database.count(island)
    assert decisions == trace["decisions"]
    assert rng.random() == trace["final"]["rng_next"]
    agree(database, trace)


def decided(database: Traced, step: int, island: int, draw: Draw) -> dict[str, Any]:
    number = database.numbers
    inspirations = [number[one] for one in draw.inspirations]
    decision = {"parent": number[draw.parent], "island": island, "inspirations": inspirations, "mode": draw.mode}
    return {"step": step, "action": "evolve", **decision}


@pytest.mark.parametrize("trace", TRACES, ids=title)
def test_who_lives_is_independent_of_who_is_drawn(trace: dict[str, Any]) -> None:
    database = Traced(trace)
    database.add(program(1.0))
    for island in [island for islands in schedule(trace) for island in islands]:
        database.add(program(1.0, island=island))
        database.count(island)
    agree(database, trace)
    assert database.cells_given == trace["structure"]["cell"]


@pytest.mark.parametrize("trace", IN_ROUNDS, ids=title)
def test_the_whole_strategy_draws_and_adds_as_the_rules_do(
    trace: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Traced(trace)
    monkeypatch.setattr(openevolve, "Database", lambda params: database)
    tried = trace | {"outcomes": trace["outcomes"][1:]}  # the first program is the baseline
    found = traced(tried).search(STRATEGY, params_of(trace), steps=trace["budget"])
    assert [(d.facts["island"], d.facts["mode"]) for d in found.decisions] == [
        (decision["island"], decision["mode"]) for decision in trace["decisions"]
    ]
    assert found.rng.random() == trace["final"]["rng_next"]
    agree(database, trace)


# --- cells --------------------------------------------------------------------------------------------------------


def test_a_grid_can_hold_the_archive() -> None:
    assert a_database(feature_bins=5, archive_size=30).bins == 6
    assert a_database(feature_bins=10, archive_size=100).bins == 10
    assert a_database(feature_bins=3, archive_size=1).bins == 3


def test_a_cell_is_where_length_and_diversity_lie_in_what_was_seen() -> None:
    first, longer, middle = program(0.1, "a"), program(0.2, "a" * 101), program(0.3, "a" * 51)
    database = a_database(first, longer, feature_bins=5, archive_size=1)
    assert database.cell(longer) == (4, 2)
    assert database.cell(first) == (0, 2)
    database.add(middle)
    assert database.cell(middle)[0] == 2
    database.add(program(0.4, "a" * 1001))
    assert database.cell(middle)[0] == 0


def test_diversity_is_the_mean_distance_to_the_oldest_other_texts() -> None:
    a, b, c = program(0.1, "aa"), program(0.2, "ab\n"), program(0.3, "ab\n\nc")
    database = a_database(a, b, c, diversity_reference_size=2)
    assert openevolve_rules.distance(a, b) == openevolve_rules.distance(b, a) == pytest.approx(0.1 + 10 + 1.0)
    assert database.references == [a, b]
    assert database.diversity(c) == pytest.approx((0.3 + 20 + 1.5 + 0.2 + 10 + 0.5) / 2)
    assert database.diversity(program(0.4, "aa")) == database.diversity(a)


# --- who lives ----------------------------------------------------------------------------------------------------


def test_a_better_program_takes_the_cell_and_the_place_in_the_archive_and_the_other_is_gone() -> None:
    first, old, new = program(0.1, "xxx"), program(0.5, "x"), program(0.6, "x")
    database = a_database(first, old)
    assert database.add(new) is old
    for holder in (database.programs, database.islands[0], database.archive, database.grids[0].values()):
        assert [*holder] == [first, new]


@pytest.mark.parametrize("value", [0.5, 0.4, None])
def test_an_equal_or_worse_program_lives_on_without_a_cell(value: float | None) -> None:
    first, old, new = program(0.1, "xxx"), program(0.5, "x"), program(value, "x")
    database = a_database(first, old)
    owners = [*database.grids[0].values()]
    assert database.add(new) is None
    assert [*database.grids[0].values()] == owners
    assert new in database.islands[0]
    assert database.best is old


def test_what_failed_never_leads_and_is_displaced_by_what_is_valid() -> None:
    first, bad, good = program(-2e9, "xxx"), program(None, "x"), program(-1e9, "x")
    database = a_database(first, bad)
    assert [*database.archive] == [first] == [database.best]
    assert database.add(good) is bad
    assert database.best is good


def test_failures_enter_the_archive_where_the_parameter_says_so_and_leave_it_first() -> None:
    bad, good = program(None, "x" * 9), program(0.1, "x")
    database = a_database(bad, archive_failures=True, archive_size=1)
    assert list(database.archive) == [bad]
    database.add(good)
    assert list(database.archive) == [good]


def test_a_full_archive_takes_what_is_strictly_better_than_its_worst() -> None:
    programs = [program(value, "x" * 10**n) for n, value in enumerate((0.3, 0.2, 0.2, 0.5))]
    database = a_database(*programs, archive_size=2)
    assert list(database.archive) == [programs[0], programs[3]]


def test_above_its_size_the_population_loses_those_without_a_cell_first_and_never_the_best() -> None:
    poor, best, homeless = program(0.1, "x" * 50), program(0.9, "x"), program(0.8, "x")
    database = a_database(poor, best, homeless, population_size=3)
    newer = program(0.2, "x" * 99)
    database.add(newer)
    assert [*database.programs] == [poor, best, newer]
    newest = program(0.05, "x" * 300)
    database.add(newest)
    assert [*database.programs] == [best, newer, newest]


def test_an_island_that_lost_its_best_has_another_one() -> None:
    here = [program(0.2, "x"), program(0.1, "x" * 20)]
    there = [program(0.9, "y", island=1), program(0.8, "y" * 20, island=1)]
    database = a_database(*here, *there, population_size=4, num_islands=2)
    assert database.island_best == [here[0], there[0]]
    for n in (40, 60):
        database.add(program(0.7, "y" * n, island=1))
    assert not database.islands[0]
    assert database.island_best == [None, there[0]]


# --- migration ----------------------------------------------------------------------------------------------------


def test_the_best_migrates_to_both_neighbours_and_its_copies_stay() -> None:
    best = program(0.9, "best")
    database = a_database(best, program(0.5, "other", island=1), num_islands=4)
    copies = database.migrate()
    from_first = [copy for copy in copies if copy.trial is best.trial]
    assert [copy.island for copy in from_first] == [1, 3]
    assert all(copy.settled and copy.text == "best" for copy in from_first)
    assert not [copy for copy in database.migrate() if copy.trial is best.trial]


def test_the_baseline_never_migrates_and_nothing_where_its_code_is_there_already() -> None:
    baseline = program(0.9, "baseline", settled=True)
    assert a_database(baseline, program(0.5, "b", island=1), num_islands=3).migrate() != []
    assert a_database(baseline, num_islands=3).migrate() == []
    twins = [program(0.5, "same", island=island) for island in range(2)]
    assert a_database(*twins, num_islands=2).migrate() == []
    assert a_database(program(0.5, "alone"), num_islands=1).migrate() == []


def test_migration_is_due_when_the_most_children_of_an_island_say_so() -> None:
    database = a_database(program(0.9, "best"), num_islands=2, migration_interval=2)
    assert [len(database.count(island)) for island in (0, 1, 1, 0, 0, 0)] == [0, 0, 1, 0, 0, 0]


# --- who has children ---------------------------------------------------------------------------------------------


def test_a_parent_is_drawn_from_all_of_the_island_from_the_archive_or_by_fitness() -> None:
    good, bad = program(0.9, "x"), program(None, "x" * 50)
    database = a_database(good, bad, program(0.95, "y", island=1), exploration_ratio=0.2, exploitation_ratio=0.7)
    drawn: dict[str, list[Program]] = {"explore": [], "exploit": [], "weighted": []}
    for seed in range(300):
        draw = database.draw(0, Random(seed))
        drawn[draw.mode].append(draw.parent)
        assert draw.mode == ("explore" if (u := Random(seed).random()) < 0.2 else "exploit" if u < 0.9 else "weighted")
    assert {*drawn["explore"]} == {good, bad}
    assert {*drawn["exploit"]} == {*drawn["weighted"]} == {good}


def test_an_empty_island_borrows_from_the_first_and_the_inspirations_with_it() -> None:
    best, other = program(0.9, "x"), program(0.5, "x" * 50)
    database = a_database(best, other, num_inspirations=1)
    for low, high, mode in ((0.0, 0.2, "explore"), (0.25, 0.85, "exploit"), (0.91, 1.0, "weighted")):
        draw = database.draw(2, fixed(low, high))
        assert draw.mode == f"empty-{mode}"
        assert draw.inspirations == [other if draw.parent is best else best]


def test_the_weight_is_the_share_of_the_way_from_the_worst_valid_to_the_best() -> None:
    database = a_database()
    values = (2.0, 6.0, None, 4.0)
    assert database.weights([program(value) for value in values]) == [0.001, 1.0, 0.001, 0.5]
    assert database.weights([program(None), program(7.0), program(7.0)]) == [0.001, 1.0, 1.0]
    assert database.weights([program(None), program(None)]) == [1.0, 1.0]
    assert database.weights([program(-1.7e308), program(1.7e308), program(0.0)]) == [0.001, 1.0, 0.5]


def test_inspirations_are_the_best_the_elite_and_neighbours_without_the_parent_or_a_repetition() -> None:
    best, second, *others = programs = [program(1 - n / 10, "x" * (900 - 100 * n)) for n in range(8)]
    database = a_database(*programs, num_inspirations=4, elite_selection_ratio=0.5)
    drawn = [database.inspirations(others[0], 0, Random(seed)) for seed in range(20)]
    for found in drawn:
        assert found[:2] == [best, second]
        assert len({*found}) == 4 and others[0] not in found
    assert len({*drawn[0], *(one for found in drawn for one in found)}) > 4
    assert best not in database.inspirations(best, 0, Random(0))
    few = a_database(best, second, num_inspirations=4)
    assert few.inspirations(second, 0, Random(0)) == [best]
    assert a_database().inspirations(best, 0, Random(0)) == []


def test_neighbours_are_at_most_two_cells_away_and_others_are_taken_where_there_are_none() -> None:
    best = program(0.9, "x" * 1000)
    near, far = program(0.5, "x" * 900), [program(0.4, "x" * n) for n in (1, 2, 3)]
    database = a_database(best, near, *far, num_inspirations=2)
    cells = [database.cell(one) for one in (best, near, *far)]
    assert abs(cells[0][0] - cells[1][0]) <= 2 < abs(cells[0][0] - cells[2][0])
    for seed in range(20):
        assert database.near(best, database.islands[0], [], 4, Random(seed)) in ([near], [])
    assert {database.inspirations(best, 0, Random(seed))[-1] for seed in range(20)} > {*far[:1]}


def test_fitness_is_the_metric_or_its_negative_and_the_baseline_is_settled() -> None:
    baseline = Trial("baseline", Code.of({"a.py": "x = 1\n", "b.txt": "no"}), True, "ok", 0.5, "", "")
    lower = Brief("", Metric(name="m", direction="lower"), ("*.py",), baseline)
    first, bad = program_of(lower, baseline, 0), program_of(lower, tried(None), 1)
    assert (first.fitness, first.text, first.settled) == (-0.5, "x = 1\n", True)
    assert (bad.fitness, bad.island, bad.settled) == (-inf, 1, False)


def test_the_presets_have_the_values_of_the_original_and_of_the_released_port() -> None:
    original, released = (OpenEvolve(**STRATEGY.presets[preset]) for preset in ("original", "released"))
    numbers = (original.num_islands, original.feature_bins, original.archive_size, original.population_size)
    assert numbers == (5, 10, 100, 1000)
    assert (original.migration_interval, original.num_inspirations, original.diversity_reference_size) == (50, 2, 20)
    numbers = (released.num_islands, released.feature_bins, released.archive_size, released.migration_interval)
    assert numbers == (3, 5, 30, 10)
    assert (released.num_inspirations, released.diversity_reference_size) == (3, 10)


# --- what the model sees ------------------------------------------------------------------------------------------


def test_the_first_generation_starts_from_the_baseline_on_every_island() -> None:
    found, seen = play(STRATEGY, [0.7, 0.8, None])
    assert [decision.parent for decision in found.decisions] == [None] * 3
    assert [decision.facts["island"] for decision in found.decisions] == [0, 1, 2]
    assert all(decision.facts["mode"].startswith("empty-") for decision in found.decisions[1:])
    first = seen[0][1]
    assert [part.name for part in first.parts] == ["task", "metric", "file", "instruction"]
    assert "EPOCHS = 5\n" in first.files["train.py"]


def test_a_child_is_proposed_in_sight_of_other_programs_and_of_the_latest_children() -> None:
    found, seen = play(STRATEGY, [0.7, 0.9, 0.8, 0.6], num_islands=1, exploration_ratio=0, exploitation_ratio=0)
    prompt = [prompt for purpose, prompt in seen if purpose == "idea"][-1]
    parent = found.trials[3].parent
    assert parent is not None
    files = parent.code.text("train.py")
    assert prompt.files == {"train.py": files}
    assert prompt.get("metric") == f"Baseline: score = 0.5 (higher is better)\nThese files: {parent.line}"
    shown = [line for line in prompt.get("programs").splitlines() if line.startswith("- score")]
    assert shown == sorted(shown) and len(shown) >= 2 and f"- {parent.line}" not in shown
    assert prompt.get("programs").count(f"-{files.splitlines()[0]}") == len(shown)
    assert prompt.get("history").splitlines()[:3] == [
        "Latest children on this island, of one program or another:",
        "- [better than its parent] score = 0.7 (higher is better)",
        "  idea 0",
    ]


def test_only_so_many_of_the_latest_children_are_shown() -> None:
    _, seen = play(STRATEGY, [0.7, 0.9, 0.8, 0.6], num_islands=1, num_recent=2)
    history = [prompt for purpose, prompt in seen if purpose == "idea"][-1].get("history")
    assert [line for line in history.splitlines() if line.startswith("  ")] == ["  idea 1", "  idea 2"]
    _, seen = play(STRATEGY, [0.7, 0.9], num_islands=1, num_recent=0, num_top_programs=0, num_inspirations=0)
    assert not any(prompt.get("history") or prompt.get("programs") for _, prompt in seen)


def test_of_a_failed_parent_the_error_and_the_idea_are_shown() -> None:
    found, seen = play(STRATEGY, [None] * 9, num_islands=1, exploration_ratio=1, exploitation_ratio=0)
    asked = [prompt for purpose, prompt in seen if purpose == "idea"]
    edits = [prompt for purpose, prompt in seen if purpose == "edit"]
    repairs = [decision for decision in found.decisions if decision.parent is not None]
    assert repairs
    for step, parent in [(decision.step, decision.parent) for decision in repairs]:
        assert found.decisions[step].action == "repair"
        assert f"Error of {parent}" in asked[step].get("error") and f"Error of {parent}" in edits[step].get("error")
        assert f"idea {parent}" in asked[step].get("instruction")
        instruction = edits[step].get("instruction")
        assert instruction.index(f"Idea: idea {parent}") < instruction.index(f"Change: idea {step}")


# --- whole runs ---------------------------------------------------------------------------------------------------


def test_it_beats_the_control_where_nothing_fails_and_where_much_does(simulate: Callable[..., History]) -> None:
    for task, metric, sign in (("sim/valley", "score", 1), ("sim/ridge", "loss", -1)):
        means = [
            sum(sign * best_value(simulate(name, task=task, steps=100, seed=seed), metric) for seed in range(2)) / 2
            for name in ("openevolve", "random")
        ]
        assert means[0] > means[1] + 0.1


def test_a_rejected_edit_costs_a_step_and_gives_no_program(simulate: Callable[..., History]) -> None:
    talk = Models({"*": ScriptedModel(lambda prompt, call: "I would rather talk about it.")})
    run = simulate("openevolve", steps=12, model=talk, params={"exploration_ratio": 1})
    assert [step.outcome.status for step in run.trials] == ["edit_failed"] * 12
    assert {step.parent for step in run.trials} == {0}
