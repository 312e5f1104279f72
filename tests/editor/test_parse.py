"""Which operations a reply holds, whatever its dress."""

from __future__ import annotations

import pytest

from labcoat.editor.operations import Delete, Operation, Rejected, Replace, WholeFile
from labcoat.editor.patch import parse

BLOCK = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"
OTHER = "<<<<<<< SEARCH\nfoo\n=======\nbar\n>>>>>>> REPLACE\n"


def replace(path: str = "a.py") -> Replace:
    return Replace(path, "old\n", "new\n")


def other(path: str = "a.py") -> Replace:
    return Replace(path, "foo\n", "bar\n")


def whole(path: str = "a.py", content: str = "x = 1\n") -> WholeFile:
    return WholeFile(path, content)


def operations(reply: str) -> list[Operation]:
    return list(parse(reply).operations)


def reason(reply: str) -> str:
    with pytest.raises(Rejected) as rejected:
        parse(reply)
    return rejected.value.reason


@pytest.mark.parametrize(
    "header",
    [
        "### FILE: a.py",
        "###  file:  a.py  ",
        "## File: a.py",
        "# FILE: a.py",
        "FILE: a.py",
        "File: `a.py`",
        "### FILE: `a.py`",
        "### `FILE: a.py`",
        "### FILE: a.py:",
        "### FILE: a.py (modified)",
        "### NEW FILE: a.py",
        '### FILE: "a.py"',
        "**FILE: a.py**",
        "**FILE: `a.py`**",
        "**FILE:** a.py",
        "**File**: `a.py`:",
        "### **FILE: a.py**",
        "**a.py**",
        "**`a.py`**:",
        "`a.py`",
        "`a.py`:",
        "a.py",
        "a.py:",
        "### a.py",
        "#### `a.py`",
        "1. **a.py**",
        "### 2. `a.py`",
        "- `a.py`:",
        "### FILE: a.py\nHere is what I changed:",
    ],
)
def test_headers(header: str) -> None:
    assert operations(f"Sure!\n\n{header}\n```python\nx = 1\n```\nDone.") == [whole()]
    assert operations(f"Sure!\n\n{header}\n\n{BLOCK}Done.") == [replace()]
    assert operations(f"{header}\n```\n{BLOCK}```") == [replace()]


@pytest.mark.parametrize(
    ("header", "path"),
    [
        ("### FILE: src/my model.py", "src/my model.py"),
        ("### FILE: pkg/__init__.py", "pkg/__init__.py"),
        ("**pkg/__init__.py**", "pkg/__init__.py"),
        ("### FILE: Makefile", "Makefile"),
        ("### FILE: ./a.py", "./a.py"),
        ("### FILE: .config/räksmörgås.py", ".config/räksmörgås.py"),
    ],
)
def test_paths_in_headers(header: str, path: str) -> None:
    assert operations(f"{header}\n```\nx = 1\n```") == [whole(path)]


@pytest.mark.parametrize(
    "info",
    [
        "a.py",
        "python a.py",
        "python:a.py",
        'python title="a.py"',
        "python title='a.py'",
        'python {filename="a.py"}',
        "python file=a.py",
    ],
)
def test_path_on_the_fence(info: str) -> None:
    assert operations(f"```{info}\nx = 1\n```") == [whole()]
    assert operations(f"```{info}\n{BLOCK}```") == [replace()]


@pytest.mark.parametrize("info", ["", "py", "python", "Python", "python3", "json", "toml", "text", "{.python}"])
@pytest.mark.parametrize("fence", ["```", "~~~", "`````", "  ```"])
def test_fences(fence: str, info: str) -> None:
    assert operations(f"### FILE: a.py\n{fence}{info}\nx = 1\n{fence}\n") == [whole()]


@pytest.mark.parametrize("info", ["", "py", "python", "diff", "text"])
def test_blocks_in_fences(info: str) -> None:
    assert operations(f"### FILE: a.py\n```{info}\n{BLOCK}\n{OTHER}```\n") == [replace(), other()]
    assert operations(f"### FILE: a.py\n```{info}\n{BLOCK}```\nand\n```{info}\n{OTHER}```") == [replace(), other()]


@pytest.mark.parametrize(
    ("name", "reply", "expected"),
    [
        ("two files", f"### FILE: a.py\n{BLOCK}### FILE: b.py\n{OTHER}", [replace(), other("b.py")]),
        ("one file twice", f"### FILE: a.py\n{BLOCK}\n### FILE: a.py\n{OTHER}", [replace(), other()]),
        ("kinds mixed", f"### FILE: a.py\n```\nx = 1\n```\n{BLOCK}**b.py**\n{OTHER}",
         [whole(), replace(), other("b.py")]),
        ("a file in a fence after blocks in one", f"### FILE: b.py\n```\n{BLOCK}```\n\n**a.py**\n```\nx = 1\n```",
         [replace("b.py"), whole()]),
        ("everything in one fence", f"```\n### FILE: a.py\n{BLOCK}\n### FILE: b.py\n{OTHER}\n```\nDone.",
         [replace(), other("b.py")]),
        ("whole files in a fence", "````\n### FILE: a.py\n```\nx = 1\n```\n### FILE: b.py\n```\nx = 1\n```\n````",
         [whole(), whole("b.py")]),
        ("whole files in a fence as long", "```\n### FILE: a.py\n```\nx = 1\n```\n### FILE: b.py\n```\nx = 1\n```\n```",
         [whole(), whole("b.py")]),
        ("the header inside the fence", "```python\n### FILE: a.py\nx = 1\n```", [whole()]),
        ("an example after the answer", f"### FILE: a.py\n{BLOCK}\nTry:\n```bash\npython a.py\n```", [replace()]),
        ("an example before the answer", f"Now:\n```python\nold\n```\n### FILE: a.py\n{BLOCK}", [replace()]),
        ("a fence too many", "### FILE: a.py\n```\nx = 1\n```\n```\n### FILE: b.py\n```\nx = 1\n```",
         [whole(), whole("b.py")]),
        ("a fence too many before a bold path", "### FILE: a.py\n```\nx = 1\n```\n```\n**b.py**\n```\nx = 1\n```",
         [whole(), whole("b.py")]),
        ("a fence without its end around blocks", f"### FILE: a.py\n```python\n{BLOCK}", [replace()]),
        ("an indented fence", "1. ### FILE\n### FILE: a.py\n   ```\n   if x:\n       y = 1\n   ```",
         [whole(content="if x:\n    y = 1\n")]),
        ("a comment before a block in its fence", f"### FILE: a.py\n```python\n# faster\n{BLOCK}```", [replace()]),
        ("carriage returns", f"### FILE: a.py\n{BLOCK}".replace("\n", "\r\n"), [replace()]),
        ("an empty file", "### FILE: pkg/__init__.py\n```python\n```", [whole("pkg/__init__.py", "")]),
        ("a deleted file", "### DELETE: a.py", [Delete("a.py")]),
        ("a deleted file in bold", "**DELETE: `a.py`**", [Delete("a.py")]),
        ("a deleted and a changed file", f"### DELETE: b.py\n\n### FILE: a.py\n{BLOCK}", [Delete("b.py"), replace()]),
        ("a remark under a header", f"### FILE: b.py\nNo change needed.\n\n### FILE: a.py\n{BLOCK}", [replace()]),
        ("blocks without a header", f"{BLOCK}\n{OTHER}", [replace(""), other("")]),
        ("one fenced block without a header", "Here:\n```python\nx = 1\n```\nDone.", [whole("")]),
        ("markers in other lengths", "### FILE: a.py\n<<<<< search\nold\n======\nnew\n>>>>>>>> Replace", [replace()]),
        ("blank lines are kept", "### FILE: a.py\n<<<<<<< SEARCH\n\nold\n=======\n\n>>>>>>> REPLACE",
         [Replace("a.py", "\nold\n", "\n")]),
        ("a heading of an explanation", f"## Delete: the old loop in a.py\n### FILE: a.py\n{BLOCK}", [replace()]),
    ],
    ids=lambda value: value if isinstance(value, str) and "\n" not in value else "",
)  # fmt: skip
def test_shapes(name: str, reply: str, expected: list[Operation]) -> None:
    assert operations(reply) == expected


class TestBackticksInsideAFile:
    @pytest.mark.parametrize(
        "content",
        [
            '"""\n```\n"""\nx = 1\n',
            '"""Title.\n\n```python\nx\n```\n\nAnd:\n```\ny\n```\n"""\n',
            "def f():\n    r'''\n    ```\n    '''\n",
            "s = '''a\n```\nb'''\nt = \"it's\"  # don't \"\"\" stop\n",
            's = "\\"" + \'"""\'\nx = """\n```\n"""\n',
            'f("""a""", """b\n```\nc""", \'\'\'\n~~~\n```\n\'\'\')\n',
            'x = """\\"""\n```\n"""\n',
            'x = """\n### FILE: b.py\n```python\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n"""\n',
        ],
    )
    @pytest.mark.parametrize("fence", ["```", "~~~", "````"])
    def test_python_ends_outside_its_strings(self, content: str, fence: str) -> None:
        compile(content, "", "exec")
        reply = (
            f"### FILE: a.py\n{fence}python\n{content}{fence}\n\nRun:\n```\npython a.py\n```\n### FILE: b.py\n{BLOCK}"
        )
        assert operations(reply) == [whole(content=content), replace("b.py")]

    def test_in_other_files_a_fence_with_a_tag_opens_an_inner_block(self) -> None:
        content = "# Title\n```python\nx\n```\ntext\n```sh\ny\n```\n"
        assert operations(f"### FILE: a.md\n```markdown\n{content}```\n") == [whole("a.md", content)]

    def test_headers_in_comments_are_content(self) -> None:
        content = "# FILE: b.py\n### FILE: c.py\nx = 1\n"
        assert operations(f"### FILE: a.py\n```\n{content}```\n") == [whole(content=content)]

    def test_a_longer_fence_holds_anything(self) -> None:
        content = "```\n```\n```x\n"
        assert operations(f"### FILE: a.txt\n`````\n{content}`````\n") == [whole("a.txt", content)]


class TestThoughts:
    DRAFT = f"### FILE: a.py\n{OTHER}"

    @pytest.mark.parametrize(
        "thought",
        [
            f"<think>\nMaybe\n{DRAFT}\n```\n</think>\n",
            f"<think>{DRAFT}</think>",
            f"<thinking>\n{DRAFT}</thinking>\n",
            f"Maybe\n{DRAFT}\n</think>\n",  # some servers swallow the opening tag
            f"Let me see.\n<think>\n{DRAFT}</think>\n\n",
        ],
    )
    def test_are_passed_over(self, thought: str) -> None:
        assert operations(f"{thought}### FILE: a.py\n{BLOCK}") == [replace()]

    def test_the_tag_in_code_is_code(self) -> None:
        content = 'text = text.split("</think>")\n"""\n<think>\n</think>\n"""\n'
        assert operations(f"### FILE: a.py\n```\n{content}```") == [whole(content=content)]

    def test_a_reply_that_ends_in_thought_holds_no_edit(self) -> None:
        assert "no edit" in reason(f"<think>\n{self.DRAFT}")


class TestDividers:
    def test_an_underlined_heading_is_content(self) -> None:
        reply = "### FILE: a.rst\n<<<<<<< SEARCH\nTitle\n=====\n=======\nLonger\n======\n>>>>>>> REPLACE"
        assert operations(reply) == [Replace("a.rst", "Title\n=====\n", "Longer\n======\n")]

    def test_longer_markers_tell_the_divider_from_content(self) -> None:
        reply = "### FILE: a.rst\n<<<<<<<<< SEARCH\nHeading\n=======\n=========\nText\n>>>>>>>>> REPLACE"
        assert operations(reply) == [Replace("a.rst", "Heading\n=======\n", "Text\n")]

    def test_two_are_rejected(self) -> None:
        said = reason("### FILE: a.rst\n<<<<<<< SEARCH\nHeading\n=======\n=======\nText\n>>>>>>> REPLACE")
        assert 'block 1 (a.rst) has 2 "=======" lines' in said
        assert "longer markers" in said


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("", "no edit"),
        ("  \n\n", "no edit"),
        ("I'm sorry, I can't help with that.", "no edit"),
        ("Set the learning rate in `train.py` to 0.2.\n\n* then\n* run it", "no edit"),
        ("### FILE: a.py\nUnchanged.", "no edit"),
        ("### FILE: a.py\na = 1\nb = 2\nc = 3\nd = 4\n", "text under the header of a.py is in no block"),
        (f"### FILE: a.py\na = 1\nb = 2\nc = 3\nd = 4\n### FILE: b.py\n{BLOCK}", "a.py is in no block"),
        ("```\na\n```\nor\n```\nb\n```", "2 fenced blocks and none names its file"),
        ("### FILE: a.py\n```python\nx = 1\n", "block for a.py is never closed: the reply was cut off"),
        ('### FILE: a.py\n```python\nx = """\n```\n', "triple-quoted string without an end"),
        ("### FILE: a.py\n<<<<<<< SEARCH\nx\n=======\ny\n", 'block 1 (a.py) has no ">>>>>>> REPLACE" line'),
        (f"### FILE: a.py\n{BLOCK}<<<<<<< SEARCH\nx\n=======\n{BLOCK}", 'block 2 (a.py) has no ">>>>>>> REPLACE" line'),
        ("### FILE: a.py\n<<<<<<< SEARCH\nx\n>>>>>>> REPLACE", 'block 1 (a.py) has no "=======" line'),
        ("### FILE: a.py\n```diff\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n```", "a.py is a diff"),
        ("<<<<<<< SEARCH\nx", "SEARCH/REPLACE block 1 has no"),
    ],
)
def test_rejections_say_what_is_missing(reply: str, said: str) -> None:
    assert said in reason(reply)


def test_a_reply_without_an_edit_is_told_the_format() -> None:
    said = reason("No.")
    assert "### FILE: path" in said
    assert "<<<<<<< SEARCH" in said
