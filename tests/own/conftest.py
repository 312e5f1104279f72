"""A small project, its task, and a home of labcoat for the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labcoat.bench import sandbox
from labcoat.bench.self_reported import SelfReportedBench
from labcoat.new_task import Made, Wishes, make
from labcoat.task import Task
from tests.bench import conftest
from tests.own.small import make_project

shared, bwrap, open_folder = conftest.shared, conftest.bwrap, conftest.open_folder

Make = Callable[..., Made]
Open = Callable[[Task], SelfReportedBench]


@pytest.fixture(scope="session", autouse=True)
def labcoat_home(shared: Path) -> Iterator[Path]:
    """Never the user's own home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABCOAT_HOME", str(shared / "home"))
        yield shared / "home"


@pytest.fixture
def project(open_folder: Path) -> Path:
    """The small project."""
    return make_project(open_folder / "project")


@pytest.fixture
def new(project: Path, open_folder: Path) -> Make:
    """Make a task of the project."""

    def made(**wishes: Any) -> Made:
        plain: dict[str, Any] = {
            "project": project, "edit": ["src/*.py"], "command": "python train.py --seed {seed}", "metric": "loss",
            "direction": "lower", "data": [project / "data"], "to": open_folder / "task", "timeout": 20,
        }  # fmt: skip
        return make(Wishes(**plain | wishes))

    return made


@pytest.fixture
def open_own(bwrap: sandbox.Bubblewrap) -> Iterator[Open]:
    """Open and prepare benches; closed at the end."""
    opened: list[SelfReportedBench] = []

    def bench(task: Task) -> SelfReportedBench:
        opened.append(SelfReportedBench(task, bwrap, lambda text: None))
        opened[-1].prepare()
        return opened[-1]

    yield bench
    for one in opened:
        one.close()
