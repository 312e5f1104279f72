"""Which triple quote is open after a line: the regular expressions agree with a reader of one character at a time.

CPython before 3.11.5 matches too much for a possessive repeat of a group (gh-106052); there, such a pattern fails here.
"""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest

import labcoat.editor
from labcoat.editor.fences import open_string

CHARACTERS = "\"'\\#a"
TRIPLE = ('"""', "'''")


def read(line: str, quote: str) -> str:
    """What ``open_string`` has to find."""
    at = 0
    while at < len(line):
        if quote:
            if line[at] == "\\":
                at += 2
            elif line.startswith(quote, at):
                at += len(quote)
                quote = ""
            else:
                at += 1
        elif line[at] == "#":
            return ""
        elif line[at] in "\"'":
            quote = line[at : at + 3] if line.startswith(TRIPLE, at) else line[at]
            at += len(quote)
        else:
            at += 1
    return quote if quote in TRIPLE else ""  # any other string ends with its line


@pytest.mark.parametrize("quote", ["", *TRIPLE])
def test_every_short_line(quote: str) -> None:
    for length in range(8):
        for line in map("".join, itertools.product(CHARACTERS, repeat=length)):
            assert open_string(line, quote) == read(line, quote), line


@pytest.mark.parametrize("quote", ["", *TRIPLE])
def test_long_lines(quote: str) -> None:
    rng = random.Random(0)
    for _ in range(3000):
        parts = rng.choices([*CHARACTERS[:3], *TRIPLE, "word", 'r"x"', "# "], [4, 4, 4, 4, 4, 4, 4, 0.3], k=40)
        line = "".join(parts)
        assert open_string(line, quote) == read(line, quote), line


@pytest.mark.parametrize("path", sorted(Path(labcoat.editor.__file__).parent.glob("*.py")), ids=lambda path: path.name)
def test_no_group_is_repeated_possessively(path: Path) -> None:
    """The tests above tell only under an old Python; this one does under any."""
    code = "\n".join(line for line in path.read_text().split("\n") if not line.lstrip().startswith("#"))
    assert not re.search(r"\)(?:[*+?]|\{[\d,]*\})\+", code)
