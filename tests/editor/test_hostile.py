"""Replies that nobody writes by accident are read, or rejected, in linear time."""

from __future__ import annotations

import time

import pytest

from labcoat.editor import apply_reply
from labcoat.editor.operations import Rejected
from labcoat.editor.patch import LONGEST_REPLY, parse
from labcoat.tree import Code

HEADER = "### FILE: a.py\n```python\n"
UNITS = {
    "blank lines": ("", "\n"),
    "one line": ("", "a"),
    "backticks": ("", "`"),
    "tildes": ("", "~"),
    "spaces": ("", " "),
    "fences": ("", "```\n"),
    "tagged fences": ("", "```python\n"),
    "tagged fences under a header": (HEADER, "```python\n"),
    "fences around headers": ("", "```\n### FILE: a.py\n```\n"),
    "fences in lists of blank lines": ("", "```\n\n\n\n"),
    "headers": ("", "### FILE: a.py\n"),
    "bold": ("", "**a.py**\n"),
    "hashes": ("", "#"),
    "colons": ("### FILE: a.py", ":"),
    "attributes": ("```python ", "title="),
    "open blocks": ("", "<<<<<<< SEARCH\n"),
    "less-than signs": ("", "<"),
    "dividers": ("### FILE: a.py\n<<<<<<< SEARCH\n", "=======\n"),
    "equals signs": ("### FILE: a.py\n<<<<<<< SEARCH\n", "="),
    "empty blocks": ("### FILE: a.py\n", "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n"),
    "fenced blocks": ("### FILE: a.py\n", "```\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n```\n"),
    "thoughts": ("", "<think>\n"),
    "thoughts on one line": ("", "<think>"),
    "ended thoughts": ("", "</think>\n"),
    "ended thoughts on one line": ("", "</think>"),
    "triple quotes": (HEADER, '"""\n'),
    "triple quotes on one line": (HEADER, '"""'),
    "both triple quotes on one line": (HEADER, "\"\"\"'''"),
    "quotes": (HEADER, "\"'"),
    "escapes in a string": (HEADER + '"""', '\\"'),
    "backslashes": (HEADER + "'", "\\"),
    "quoted fences": (HEADER, '"""\n```\n'),
    "text files with inner fences": ("### FILE: a.txt\n```\n", "```x\n"),
}


@pytest.mark.parametrize("name", UNITS)
def test_as_long_as_a_reply_may_be(name: str) -> None:
    start, unit = UNITS[name]
    reply = start + unit * ((LONGEST_REPLY - len(start)) // len(unit))
    began = time.process_time()
    try:
        parse(reply)
    except Rejected as rejected:
        assert len(rejected.reason) < 1000
    assert time.process_time() - began < 2  # quadratic time would be minutes


@pytest.mark.parametrize("name", UNITS)
def test_five_megabytes(name: str) -> None:
    start, unit = UNITS[name]
    began = time.process_time()
    with pytest.raises(Rejected, match="the limit is"):
        parse(start + unit * (5_000_000 // len(unit)))
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("line", "misses", "said"),
    [("    pass\n", 1, "not in the file"), ("    pass\n", 0, "50001 times"), ("pass\n", 0, "50001 times")],
)
def test_a_search_in_a_long_file_of_equal_lines(line: str, misses: int, said: str) -> None:
    base = Code.of({"a.txt": line * 100_000})
    search = "    pass\n" * 50_000 + "other\n" * misses
    began = time.process_time()
    edited = apply_reply(f"### FILE: a.txt\n<<<<<<< SEARCH\n{search}=======\n>>>>>>> REPLACE", base, lambda path: True)
    assert said in edited.reason
    assert time.process_time() - began < 5
