"""The page about a user's own project: its project is made as it says, its commands run and print what it shows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import conftest
from tests.docs.test_docs import DOCS, blocks, command, is_shown, perform, same
from tests.own.small import bare_environment

PAGE = DOCS / "own-project.md"
shared, bwrap, open_folder = conftest.shared, conftest.bwrap, conftest.open_folder


@pytest.fixture(autouse=True)
def labcoat_home(shared: Path) -> Iterator[Path]:
    """Never the user's own home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABCOAT_HOME", str(shared / "home"))
        yield shared / "home"


def test_the_walkthrough_runs_and_prints_what_it_shows(
    bwrap: object, open_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(open_folder)
    files = re.findall(r"^`(project/[\w./]+)`:\n\n```\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for name, text in files:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    shutil.copytree(bare_environment(), "project/.venv", symlinks=True)
    ran, output = 0, list[str]()
    for block in blocks(PAGE):
        for line in block.text.splitlines() if block.kind == "console" else []:
            if line.startswith("$ "):
                args, expected = command(line)
                code, text = perform(args, monkeypatch, capsys)
                assert code == expected, f"{line}\n{text}"
                output = [same(given) for given in text.splitlines()]
                ran += 1
            else:
                assert is_shown(line, output), f"not printed: {line}\n" + "\n".join(output)
    assert (len(files), ran) == (5, 4)


def test_every_option_is_explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    options = set(re.findall(r"--[\w-]+", perform(["task", "new", "--help"], monkeypatch, capsys)[1]))
    rows = "\n".join(re.findall(r"^\| `--.*$", PAGE.read_text(), re.MULTILINE))
    assert options - set(re.findall(r"--[\w-]+", rows)) == {"--help", "--seed"}  # the last one is of the example
