"""Run folders of earlier formats stay readable: one of each is kept as it was written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import labcoat
from labcoat.history import History
from labcoat.journal import SCHEMA
from labcoat.tree import diff

FROZEN = sorted(path for path in (Path(__file__).parent / "frozen").iterdir() if path.is_dir())


@pytest.fixture(params=FROZEN, ids=[path.name for path in FROZEN])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> History:
    """A copy of a frozen run, opened."""
    return labcoat.open_run(shutil.copytree(request.param, tmp_path / request.param.name))


def assert_contains(found: Any, frozen: Any, path: str = "") -> None:
    """Everything that was shown then is shown now; fields may have been added."""
    if isinstance(frozen, dict):
        for name, value in frozen.items():
            assert name in found, f"{path}.{name} is gone"
            assert_contains(found[name], value, f"{path}.{name}")
    elif isinstance(frozen, list):
        assert len(found) == len(frozen), path
        for number, value in enumerate(frozen):
            assert_contains(found[number], value, f"{path}[{number}]")
    else:
        assert found == frozen, path


def test_there_is_one_of_this_format() -> None:
    assert f"v{SCHEMA}" in {path.name for path in FROZEN}


def test_it_shows_what_it_showed(history: History) -> None:
    shown = json.loads((history.folder / "show.json").read_text())
    assert_contains(history.to_json(), shown)


def test_every_content_is_intact_and_every_step_can_be_looked_at(history: History) -> None:
    assert history.journal.blobs.verify() > 0
    assert history.best is not None
    assert diff(history.code(history.steps[0]), history.code(history.best))
    for step in history.steps:
        assert list(history.events_of(step))[-1]["key"] == step.key


def test_it_becomes_a_repository(history: History, tmp_path: Path) -> None:
    assert labcoat.export_git(history, tmp_path / "tree.git").is_dir()
