"""Embedding beside runs: what is there when they end, and when it stops waiting."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from labcoat.budget import Limits
from labcoat.embedding.tokens import HashedTokens
from labcoat.errors import InputError, Stopped
from labcoat.history import History
from labcoat.journal.lock import Lock
from labcoat.report.counting import Count
from labcoat.report.follow import QUIET, follow

Simulate = Callable[..., History]


class Kept(HashedTokens):
    """The offline embedder, with what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return super().embed(texts)


class Told:
    """How far it was said to be."""

    done = total = 0

    @contextlib.contextmanager
    def __call__(self, what: str, total: int) -> Iterator[Count]:
        def count(done: int = 1, *, more: int = 0) -> None:
            self.done += done
            self.total += more
            assert self.done <= self.total

        yield count


def codes(*runs: History) -> set[str]:
    return {run.text(step) for run in runs for step in run.steps}


def test_codes_are_embedded_as_they_come_each_once_and_new_runs_are_seen(simulate: Simulate, tmp_path: Path) -> None:
    """Between two looks a stopped run goes on, and another one begins."""
    kept, told, looks = Kept(), Told(), 0
    with pytest.raises(Stopped):
        simulate("autoresearch", task="sim/ridge", steps=9, limits=Limits(calls=4))
    before = len(History.find(tmp_path).steps)

    def pause(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            assert told.done == told.total == before
            simulate("autoresearch", task="sim/ridge", steps=9)
        if looks == 3:
            simulate("random", task="sim/valley", steps=3)

    follow([tmp_path], kept, told, print, pause)
    runs = [History(folder) for folder in sorted(path.parent for path in tmp_path.glob("**/run.json"))]
    assert [len(run.steps) for run in runs] == [10, 4]
    assert set(kept.asked) == codes(*runs) and told.done == told.total == 14
    assert looks == 3 + QUIET


def test_a_run_at_work_is_waited_for_though_it_writes_nothing(simulate: Simulate, tmp_path: Path) -> None:
    folder = simulate("random", steps=2).folder
    looks = 0
    with contextlib.ExitStack() as held:
        held.enter_context(Lock(folder / "lock"))

        def pause(seconds: float) -> None:
            nonlocal looks
            looks += 1
            if looks == 4 * QUIET:
                held.close()

        follow([tmp_path], Kept(), Told(), print, pause)
    assert looks == 5 * QUIET - 1


def test_what_cannot_be_read_is_passed_over_and_nothing_at_all_is_said(simulate: Simulate, tmp_path: Path) -> None:
    folder = simulate("random", steps=2).folder
    (folder / "events.jsonl").write_text("no event\n")
    follow([tmp_path], Kept(), Told(), print, lambda seconds: None)
    with pytest.raises(InputError, match="no run there"):
        follow([tmp_path / "nothing"], Kept(), Told(), print, lambda seconds: None)


def test_without_an_embedder_no_code_is_counted(simulate: Simulate, tmp_path: Path) -> None:
    simulate("random", steps=2)
    told = Told()
    follow([tmp_path], None, told, print, lambda seconds: None)
    assert told.done == told.total == 0


def test_a_run_of_another_machine_is_waited_for_and_named(simulate: Simulate, tmp_path: Path) -> None:
    """It may have died there, and then nobody but a person can say so."""
    lock = simulate("random", steps=2).folder / "lock"
    lock.write_text(json.dumps({"host": "another", "pid": 7, "boot_id": "b", "epoch": 1, "held": True}))
    told: list[str] = []

    def pause(seconds: float) -> None:
        if told:
            lock.unlink(missing_ok=True)

    follow([tmp_path], None, Told(), told.append, pause)
    (text,) = told
    assert "process 7 on another holds it" in text and f"remove {lock}" in text


def test_a_run_that_is_removed_or_half_there_ends_nothing(simulate: Simulate, tmp_path: Path) -> None:
    gone, half = (simulate("random", steps=2, seed=seed).folder for seed in range(2))
    (half / "blobs").unlink()
    simulate("random", steps=3, seed=2)
    kept, looks = Kept(), 0

    def pause(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            shutil.rmtree(gone)

    follow([tmp_path], kept, Told(), print, pause)
    assert len(kept.asked) >= 4 and looks == QUIET


def test_looking_leaves_no_file_open(simulate: Simulate, tmp_path: Path) -> None:
    simulate("random", steps=2)
    open_before = len(os.listdir("/proc/self/fd"))
    follow([tmp_path], Kept(), Told(), print, lambda seconds: None)
    assert len(os.listdir("/proc/self/fd")) == open_before
