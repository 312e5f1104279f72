"""The page that adds a task: the task that it makes, in fewer than 100 lines, is sound."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from labcoat import checking
from labcoat.task import Task
from tests.docs.test_docs import DOCS, blocks

PAGE = DOCS / "add-a-task.md"


def example(folder: Path) -> Path:
    """Write the files of the page: each is named in its first line, or in the text just before it."""
    text = PAGE.read_text(encoding="utf-8")
    for block in blocks(PAGE):
        if block.kind in ("toml", "py"):
            before = "\n".join(text.splitlines()[: block.line - 1]).rpartition("```")[2]
            inside = re.match(r"# (curve/\S+)\n", block.text)
            name = inside[1] if inside else re.findall(r"`(curve/\S+)`", before)[0]
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(block.text.partition("\n")[2] if inside else block.text)
    return folder / "curve"


def test_it_is_a_task_of_fewer_than_a_hundred_lines(tmp_path: Path) -> None:
    folder = example(tmp_path)
    task = Task.load(folder)
    assert list(task.baseline) == ["algorithm.py", "main.py"]
    files = [path for path in folder.rglob("*") if path.is_file()]
    lines = sum(1 for path in files for line in path.read_text().splitlines() if line.strip())
    assert len(files) == 7
    assert f"in {lines} lines" in PAGE.read_text() and lines < 100


def test_a_better_width_has_a_better_score(tmp_path: Path) -> None:
    """On data of the example's kind, with its own functions."""
    folder, found = example(tmp_path), {}
    rng = np.random.default_rng(0)
    x = rng.uniform(size=200)
    y = np.sin(5 * x) + rng.normal(0, 0.2, 200)
    scorer: dict[str, object] = {}
    exec((folder / "scorer.py").read_text(), scorer)
    for width in (0.5, 0.1):
        algorithm: dict[str, object] = {}
        exec((folder / "workspace/algorithm.py").read_text().replace("WIDTH = 0.5", f"WIDTH = {width}"), algorithm)
        predicted = algorithm["predict"](x[:100], y[:100], x[100:])  # type: ignore[operator]
        found[width] = scorer["score"]({"y": predicted}, {"y": y[100:]})["rmse"]["value"]  # type: ignore[operator]
    assert found[0.1] < found[0.5] - 0.05


@pytest.mark.slow
def test_it_passes_its_check(tmp_path_factory: pytest.TempPathFactory) -> None:
    checked = checking.check(Task.load(example(tmp_path_factory.mktemp("page"))))
    assert checked.holds and {row.verdict for row in checked.rows} <= {"holds", "not run"}
    assert sum(row.verdict == "holds" for row in checked.rows) > 45
