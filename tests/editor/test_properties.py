"""What holds for every edit, in every format of answer."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from labcoat.editor import Edited, apply_reply
from labcoat.editor.operations import Rejected
from labcoat.editor.patch import parse
from labcoat.tree import Code

WORDS = st.sampled_from(
    ["a", "b", "c", "lr = 0.1", "    x", "\tx", "  y  ", "", "```", "~~~", "é☃", "# FILE: b.txt", "====="]
)
LINES = st.lists(WORDS | st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12), max_size=12)
# What shows a reader where things end cannot be content, except inside Python strings.
CLEAN = LINES.map(lambda lines: [line for line in lines if not line.strip().startswith((">>>>>", "<<<<<"))])
PARTS = st.lists(st.sampled_from([
    "### FILE: a.txt\n", "**b.txt**\n", "### DELETE: b.txt\n", "```\n", "```python\n", "~~~\n", "<<<<<<< SEARCH\n",
    "=======\n", ">>>>>>> REPLACE\n", "<think>\n", "</think>\n", "one\n", "two\n", "text", "\n", '"""\n', "\r\n", "\0",
]) | st.text(max_size=5), max_size=30).map("".join)  # fmt: skip


def text(lines: list[str], end: str = "\n") -> str:
    return "".join(line + end for line in lines)


def fenced(content: str) -> str:
    longest = max(
        (len(line) for line in content.replace("~", "`").split("\n") if set(line.strip()) <= {"`"}), default=0
    )
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{content}{fence}"


def is_valid(edited: Edited, base: Code) -> bool:
    """A rejection leaves the code alone and says why; a success changes it."""
    return edited.code is base if edited.reason else edited.code != base


@given(st.text() | PARTS)
def test_parse_raises_nothing_but_rejected(reply: str) -> None:
    try:
        assert parse(reply).operations
    except Rejected as rejected:
        assert rejected.reason


@given(PARTS)
def test_apply_is_all_or_nothing(reply: str) -> None:
    base = Code.of({"a.txt": "one\ntwo\n", "b.txt": "", "fixed.txt": "one\n"})
    edited = apply_reply(reply, base, lambda path: path in ("a.txt", "b.txt"))
    assert is_valid(edited, base)
    assert edited.code["fixed.txt"] == base["fixed.txt"]


@given(LINES, CLEAN)
def test_a_whole_file_gives_its_content(old: list[str], new: list[str]) -> None:
    base = Code.of({"a.txt": text(old), "b.txt": "b\n"})
    edited = apply_reply(f"Yes:\n\n### FILE: a.txt\n{fenced(text(new))}\nDone.", base, lambda path: True)
    assert is_valid(edited, base)
    if text(new).strip():
        assert edited.code.text("a.txt").rstrip() == text(new).rstrip()


@given(CLEAN, CLEAN, st.booleans(), st.booleans())
def test_blocks_turn_the_old_text_into_the_new(old: list[str], new: list[str], crlf: bool, inside_fence: bool) -> None:
    """Every line is made unique, as the rules of the format ask, and every difference becomes a block."""
    old, new = ([f"{n} {line}" for n, line in enumerate(lines)] for lines in (old, new))
    new = [line for line in old if len(line) % 3] + [f"new {line}" for line in new]
    end = "\r\n" if crlf else "\n"
    base = Code.of({"a.txt": text(["first", *old], end)})
    blocks = [
        f"<<<<<<<<<< SEARCH\n{text(['first', *old][a:b])}==========\n{text(['first', *new][c:d])}>>>>>>>>>> REPLACE\n"
        for tag, a, b, c, d in difflib.SequenceMatcher(None, ["first", *old], ["first", *new]).get_opcodes()
        if tag in ("replace", "delete")
    ]
    appended = not any("new 0" in block for block in blocks) and any(line.startswith("new") for line in new)
    if appended:  # an insertion needs a neighbour to hold on to
        last = next(line for line in reversed(["first", *new]) if not line.startswith("new"))
        tail = [line for line in new if line.startswith("new")]
        blocks.append(f"<<<<<<<<<< SEARCH\n{last}\n==========\n{text([last, *tail])}>>>>>>>>>> REPLACE\n")
    body = f"```\n{''.join(blocks)}```" if inside_fence else "\n".join(blocks)
    edited = apply_reply(f"### FILE: a.txt\n{body}", base, lambda path: True)
    if blocks:
        assert edited.reason == ""
        assert edited.code["a.txt"].read() == text(["first", *new], end).encode()
    else:
        assert edited.code is base


@given(
    st.lists(
        st.sampled_from(['"""', "'''", "```", "```python", "text", "it's", 'say "x"', "\\", "# '''", "x = 1"]),
        max_size=9,
    )
)
def test_the_fence_of_valid_python_is_found_whatever_its_strings_hold(lines: list[str]) -> None:
    content = text(["x = 0", *lines, "y = 0"])
    try:
        compile(content, "", "exec")
    except SyntaxError:
        return
    reply = f"### FILE: a.py\n```python\n{content}```\nand\n```\nmore\n```\n"
    edited = apply_reply(reply, Code.of({"a.py": "z = 0\n"}), lambda path: True)
    assert (edited.code.text("a.py"), edited.reason) == (content, "")
