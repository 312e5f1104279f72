"""Where a SEARCH text is found, and what is said if it is not."""

from __future__ import annotations

import pytest

from labcoat.editor.match import substitute
from labcoat.editor.operations import Rejected

FILE = """\
import os


class Model:
    def fit(self, x):
        lr = 0.1
        return x * lr

    def score(self):
        return 1
"""


def reason(text: str, search: str, replace: str = "new\n") -> str:
    with pytest.raises(Rejected) as rejected:
        substitute(text, search, replace)
    return rejected.value.reason


@pytest.mark.parametrize(
    ("name", "text", "search", "replace", "expected"),
    [
        ("exact", "a\nb\nc\n", "b\n", "x\ny\n", "a\nx\ny\nc\n"),
        ("the first line", "a\nb\n", "a\n", "x\n", "x\nb\n"),
        ("the last line", "a\nb\n", "b\n", "x\n", "a\nx\n"),
        ("everything", "a\nb\n", "a\nb\n", "", ""),
        ("deletion", "a\nb\nc\n", "b\n", "", "a\nc\n"),
        ("a whole line, not a part of one", "lr = 0.15\nlr = 0.1\n", "lr = 0.1\n", "new\n", "lr = 0.15\nnew\n"),
        ("exact before tolerant", "  b\nb \nb\n", "b\n", "x\n", "  b\nb \nx\n"),
        ("trailing space in the file", "a\nb  \nc\n", "b\nc\n", "x\n", "a\nx\n"),
        ("trailing space in the search", "a\nb\nc\n", "b \nc\t\n", "x\n", "a\nx\n"),
        ("spaces on a blank line", "a\n    \nc\n", "a\n\nc\n", "x\n", "x\n"),
        ("trailing before indentation", "  b\nb \n", "b\n", "x\n", "  b\nx\n"),
        ("less indentation than the file", "class A:\n    def f():\n        pass\n", "def f():\n    pass\n",
         "def g():\n    # new\n\n    return 1\n", "class A:\n    def g():\n        # new\n\n        return 1\n"),
        ("more indentation than the file", "def f():\n    pass\n", "    def f():\n        pass\n",
         "    def f():\n        return\n", "def f():\n    return\n"),
        ("tabs in the file", "class A:\n\tdef f():\n\t\tpass\n", "    def f():\n        pass\n",
         "    def f():\n        if x:\n            y\n", "class A:\n\tdef f():\n\t\tif x:\n\t\t\ty\n"),
        ("tabs in the file, two spaces in the search", "if a:\n\tif b:\n\t\tc\n", "if a:\n  if b:\n    c\n",
         "if a:\n  c\n", "if a:\n\tc\n"),
        ("tabs in the search", "if a:\n    if b:\n        c\n", "if a:\n\tif b:\n\t\tc\n",
         "if a:\n\tc\n", "if a:\n    c\n"),
        ("tabs and another level", "class A:\n\tdef f():\n\t\tpass\n", "def f():\n    pass\n", "def f():\n    return\n",
         "class A:\n\tdef f():\n\t\treturn\n"),
        ("form feeds and separators are no line ends", "a\x0cb\u2028c\nd\n", "d\n", "e\n", "a\x0cb\u2028c\ne\n"),
    ],
    ids=lambda value: value if isinstance(value, str) and "\n" not in value else "",
)  # fmt: skip
def test_the_one_place_that_is_meant(name: str, text: str, search: str, replace: str, expected: str) -> None:
    assert substitute(text, search, replace) == expected


@pytest.mark.parametrize(
    ("name", "text", "search"),
    [
        ("an uneven shift", "if a:\n        b\n", "if a:\n    b\n"),
        ("a part of a line", "lr = 0.1  # rate\n", "lr = 0.1\n"),
        ("other inner space", "f(a,  b)\n", "f(a, b)\n"),
        ("longer than the file", "a\n", "a\nb\n"),
        ("the empty file", "", "a\n"),
    ],
)
def test_no_match(name: str, text: str, search: str) -> None:
    assert "not in the file" in reason(text, search)


def test_a_replacement_that_cannot_be_shifted_left_does_not_match() -> None:
    assert "not in the file" in reason("f()\n", "    f()\n", "g()\n")


@pytest.mark.parametrize(
    ("name", "text", "search", "places"),
    [
        ("exact", "a\nb\na\n", "a\n", "2 times, at lines 1, 3."),
        ("overlapping", "a\na\na\n", "a\na\n", "2 times, at lines 1, 2."),
        ("trailing space", "a \nb\na\t\n", "a\n", "2 times, at lines 1, 3."),
        ("indentation", "  a\nb\n\ta\n", "a\n", "2 times, at lines 1, 3."),
        ("many", "a\n" * 20, "a\n", "20 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, ..."),
    ],
)
def test_several_matches_are_counted_and_placed(name: str, text: str, search: str, places: str) -> None:
    said = reason(text, search)
    assert places in said
    assert "Add lines before or after" in said


def test_the_closest_region_is_shown_with_line_numbers() -> None:
    said = reason(FILE, "    def fit(self, x):\n        lr = 0.01\n        return x * lr\n")
    assert said.endswith("    5|     def fit(self, x):\n    6|         lr = 0.1\n    7|         return x * lr")


def test_the_most_similar_line_is_shown_if_none_is_equal() -> None:
    assert reason(FILE, "        lr = 0.01\n").endswith("    6|         lr = 0.1")


def test_nothing_is_shown_if_nothing_is_similar() -> None:
    assert "Nothing in it looks like that text" in reason(FILE, "@@@@@@\n")
    assert "Nothing in it looks like that text" in reason(FILE, "\n" * 7)


def test_a_long_region_is_cut() -> None:
    text = "".join(f"line {n}\n" for n in range(100))
    assert reason(text, text.replace("line 50", "other")).count("|") == 12
