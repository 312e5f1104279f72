"""Which file a path means."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from labcoat.editor.operations import Rejected
from labcoat.editor.paths import resolve

PRESENT = {"train.py", "src/a/model.py", "src/b/model.py", "src/net.py", "eval.py", "data/eval.txt"}
GLOBS = ["train.py", "src/*", "new_*.py", "lib/net.py"]


def is_editable(path: str) -> bool:
    return any(fnmatchcase(path, glob) for glob in GLOBS)


def reason(named: str, create: bool = False) -> str:
    with pytest.raises(Rejected) as rejected:
        resolve(named, PRESENT, is_editable, create)
    return rejected.value.reason


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("train.py", "train.py"),
        ("./train.py", "train.py"),
        ("././src//net.py", "src/net.py"),
        ("src\\net.py", "src/net.py"),
        ("net.py", "src/net.py"),
        ("./net.py", "src/net.py"),
        ("b/model.py", "src/b/model.py"),
        ("workspace/train.py", "train.py"),
        ("project/src/b/model.py", "src/b/model.py"),
    ],
)
def test_existing(named: str, path: str, create: bool) -> None:
    assert resolve(named, PRESENT, is_editable, create) == path


@pytest.mark.parametrize("named", ["new_loss.py", "src/deep/er.py", "./lib/net.py", "./src/train.py"])
def test_new_where_a_pattern_allows(named: str) -> None:
    assert resolve(named, PRESENT, is_editable, create=True) == named.removeprefix("./")


def test_a_new_file_beside_one_that_may_be_meant_is_asked_back() -> None:
    said = reason("src/train.py", create=True)
    assert "src/train.py does not exist, and there is train.py" in said
    assert "### FILE: ./src/train.py" in said


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("model.py", "model.py can mean src/a/model.py or src/b/model.py"),
        ("eval.py", "eval.py is read-only. Editable: src/a/model.py, src/b/model.py, src/net.py, train.py."),
        ("other.py", "no file other.py, and it may not be created. Editable: src/a/model.py"),
        ("/etc/passwd", "outside the workspace"),
        ("/train.py", "outside the workspace"),
        ("~/train.py", "outside the workspace"),
        ("C:\\train.py", "outside the workspace"),
        ("../train.py", "outside the workspace"),
        ("src/../train.py", "outside the workspace"),
        ("src\\..\\train.py", "outside the workspace"),
        (".", "not a path"),
        ("./", "not a path"),
        ("src/\0.py", "not a path"),
        ("src/\x1b.py", "not a path"),
        ("src/\ud800.py", "not a path"),
        ("src/" + "x" * 300, "not a path"),
        ("", "does not name the file"),
        ("et.py", "no file et.py"),
    ],
)
def test_rejected(named: str, said: str, create: bool) -> None:
    assert said in reason(named, create)


def test_a_block_cannot_create() -> None:
    assert "new_loss.py does not exist. To create it, give the whole file." in reason("new_loss.py")


def test_no_name_means_the_only_editable_file() -> None:
    assert resolve("", PRESENT, lambda path: path == "train.py", create=True) == "train.py"


def test_a_file_at_the_root_is_not_confused_with_one_below() -> None:
    assert resolve("model.py", {"model.py", "a/model.py"}, lambda path: True, create=False) == "model.py"


def test_long_lists_are_cut() -> None:
    with pytest.raises(Rejected, match="and 10 more"):
        resolve("", {f"{n}.py" for n in range(30)}, lambda path: True, create=False)
