"""From a reply to a code: all or nothing, in the file's own style, well-formed in the end."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from labcoat.editor import UNCHANGED, apply_reply
from labcoat.tree import Code, File


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


CHANGE = block("x = 1\n", "x = 2\n")


def edit(files: dict[str, bytes | str], reply: str) -> tuple[dict[str, bytes], str]:
    base = Code.of(files)
    edited = apply_reply(reply, base, lambda path: not path.startswith("fixed"))
    if edited.reason:
        assert edited.code is base
    return {path: file.read() for path, file in edited.code.items()}, edited.reason


def after(content: bytes | str, reply: str, path: str = "a.py") -> bytes:
    files, reason = edit({path: content}, f"### FILE: {path}\n{reply}")
    assert not reason
    return files[path]


def reason(content: bytes | str, reply: str, path: str = "a.py") -> str:
    return edit({path: content}, f"### FILE: {path}\n{reply}")[1]


class TestOrder:
    def test_each_block_works_on_the_result_of_those_before_it(self) -> None:
        assert after("x = 1\n", block("x = 1\n", "x = 2\n") + block("x = 2\n", "x = 3\n")) == b"x = 3\n"

    def test_blocks_change_a_whole_file_of_the_same_reply(self) -> None:
        assert after("x = 1\n", "```\nx = 2\n```\n" + block("x = 2\n", "x = 3\n")) == b"x = 3\n"

    def test_the_last_of_two_whole_files_stays(self) -> None:
        assert after("x = 1\n", "```\nx = 2\n```\nBetter:\n### FILE: a.py\n```\nx = 3\n```") == b"x = 3\n"

    def test_a_file_can_be_moved(self) -> None:
        files, _ = edit({"a.py": "x = 1\n"}, "### DELETE: a.py\n### FILE: b.py\n```\nx = 1\n```")
        assert files == {"b.py": b"x = 1\n"}

    def test_a_deleted_file_is_gone_for_later_blocks(self) -> None:
        files, said = edit({"a.py": "x = 1\n"}, f"### DELETE: a.py\n### FILE: a.py\n{CHANGE}")
        assert "a.py does not exist" in said
        assert files == {"a.py": b"x = 1\n"}

    def test_a_block_with_nothing_to_find_creates_a_file(self) -> None:
        files, _ = edit({"a.py": "x = 1\n"}, "### FILE: b.py\n" + block("", "y = 1\n"))
        assert files["b.py"] == b"y = 1\n"

    def test_a_block_with_nothing_to_find_changes_no_file_that_has_text(self) -> None:
        assert "the SEARCH text is empty" in reason("x = 1\n", block("", "y = 1\n"))


class TestStyle:
    @pytest.mark.parametrize(
        ("name", "old", "reply", "new"),
        [
            ("final newline", b"x = 1\n", "```\nx = 2\n```", b"x = 2\n"),
            ("final newline missing", b"x = 1", "```\nx = 2\n```", b"x = 2"),
            ("final newline missing, block", b"x = 1\ny = 1", block("y = 1\n", "y = 2\n"), b"x = 1\ny = 2"),
            ("final newline missing, last line deleted", b"x = 1\ny = 1", block("y = 1\n", ""), b"x = 1"),
            ("blank lines at the end go with a new text", b"x = 1\n\n\n", "```\nx = 2\n\n\n```", b"x = 2\n"),
            ("blank lines at the end stay under a block", b"x = 1\n\n\n", block("x = 1\n", "x = 2\n"), b"x = 2\n\n\n"),
            ("CRLF", b"x = 1\r\ny = 1\r\n", "```\nx = 2\ny = 2\n```", b"x = 2\r\ny = 2\r\n"),
            ("CRLF, block", b"x = 1\r\ny = 1\r\n", block("y = 1\n", "y = 2\nz = 2\n"), b"x = 1\r\ny = 2\r\nz = 2\r\n"),
            ("CRLF without the last", b"x = 1\r\ny = 1", block("y = 1\n", "y = 2\n"), b"x = 1\r\ny = 2"),
            ("mixed: other lines are not touched", b"x = 1\r\ny = 1\nz = 1\r\n", block("y = 1\n", "y = 2\n"),
             b"x = 1\r\ny = 2\nz = 1\r\n"),
            ("mixed: a line with a return is found", b"x = 1\r\ny = 1\n", CHANGE, b"x = 2\ny = 1\n"),
            ("LF, reply in CRLF", b"x = 1\n", block("x = 1\n", "x = 2\n").replace("\n", "\r\n"), b"x = 2\n"),
            ("byte-order mark", b"\xef\xbb\xbfx = 1\n", block("x = 1\n", "x = 2\n"), b"\xef\xbb\xbfx = 2\n"),
            ("unicode", "é = '☃'\n".encode(), block("é = '☃'\n", "é = '𝔘'\n"), "é = '𝔘'\n".encode()),
            ("an empty file", b"", "```\nx = 1\n```", b"x = 1\n"),
        ],
    )  # fmt: skip
    def test_is_kept(self, name: str, old: bytes, reply: str, new: bytes) -> None:
        assert after(old, reply) == new

    def test_a_file_that_is_not_utf8_takes_no_block_but_a_whole_file(self) -> None:
        old = "# coding: latin-1\nx = 'é'\n".encode("latin-1")
        assert "not UTF-8" in reason(old, block("x = 'é'\n", "x = 1\n"))
        assert after(old, "```\nx = 1\n```") == b"x = 1\n"

    def test_a_lone_surrogate_is_rejected(self) -> None:
        assert "lone surrogate" in reason("x = 1\n", "```\nx = '\ud800'\n```")


class TestSyntax:
    @pytest.mark.parametrize(
        ("path", "content", "said"),
        [
            ("a.py", "x = 1\ny = (\n", "a.py, line 2: '(' was never closed: y = ("),
            ("a.py", "def f():\nreturn 1\n", "a.py, line 2: expected an indented block after function definition"),
            ("a.py", "x = '\0'\n", "a.py: source code string cannot contain null bytes"),
            ("a.py", "# coding: klingon\nx = 1\n", "a.py: unknown encoding: klingon"),
            ("a.py", "x = " + "-" * 100_000 + "1\n", "a.py"),
            ("a.py", "x = " + "(" * 1000 + ")" * 1000 + "\n", "too many nested parentheses"),
            ("a.py", "x = " + "1" * 10_000 + "\n", "a.py"),
            ("a.pyi", "def f(\n", "a.pyi, line 1"),
            ("a.json", '{\n  "a": 1\n  "b": 2\n}\n', "a.json, line 3: Expecting ',' delimiter: \"b\": 2"),
            ("a.json", '{"a": 1,}\n', "a.json, line 1: "),  # 3.13 has other words for it
            ("a.json", "[" * 100_000 + "\n", "a.json"),
            ("a.toml", "x = 1\ny =\n", "a.toml, line 2: Invalid value"),
        ],
    )  # fmt: skip
    def test_an_error_names_file_line_and_message(self, path: str, content: str, said: str) -> None:
        found = reason("", f"```\n{content}```", path)
        assert found.startswith("Nothing was applied, because the result has errors:\n")
        assert said in found

    @pytest.mark.parametrize("path", ["a.yaml", "a.txt", "Makefile", "run.sh", "a.md", ".py"])
    def test_other_types_are_not_checked(self, path: str) -> None:
        assert after("", "```\n{ ( '\n```", path) == b"{ ( '\n"

    def test_errors_of_all_files_are_named(self) -> None:
        _, said = edit({}, "### FILE: a.py\n```\n(\n```\n### FILE: b.json\n```json\n{\n```")
        assert "a.py, line 1" in said
        assert "b.json, line 2" in said

    def test_a_file_that_was_broken_before_does_not_matter(self) -> None:
        files, said = edit({"fixed.py": "print 1\n", "a.py": "x = 1\n"}, "### FILE: a.py\n```\nx = 2\n```")
        assert (files["a.py"], said) == (b"x = 2\n", "")

    @pytest.mark.parametrize("level", ["error", "always"])
    def test_warnings_about_the_code_are_neither_shown_nor_errors(self, level: str) -> None:
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter(level)  # type: ignore[arg-type]
            assert after("", "```\nx = '\\d'\nassert (x, 1)\ny = x is 'a'\n```")
        assert not shown


class TestFiles:
    def test_read_only(self) -> None:
        files, said = edit({"a.py": "x = 1\n", "fixed.py": ""}, "### FILE: fixed.py\n```\nx = 2\n```")
        assert said == "fixed.py is read-only. Editable: a.py."
        assert files["fixed.py"] == b""

    def test_read_only_files_are_not_deleted(self) -> None:
        assert "read-only" in edit({"fixed.py": ""}, "### DELETE: fixed.py")[1]

    def test_a_whole_file_is_not_emptied_by_the_way(self) -> None:
        assert '"### DELETE: a.py"' in reason("x = 1\n", "```\n```")

    def test_a_new_file_may_be_empty(self) -> None:
        files, said = edit({}, "### FILE: pkg/__init__.py\n```\n```")
        assert (files, said) == ({"pkg/__init__.py": b""}, "")

    def test_a_file_is_no_folder(self) -> None:
        assert "a.py is a file, not a folder" in edit({"a.py": ""}, "### FILE: a.py/b.py\n```\nx = 1\n```")[1]
        assert "a: is a folder" in edit({"a/b.py": ""}, "### FILE: a\n```\nx = 1\n```")[1]

    def test_a_file_made_and_deleted_again_changes_nothing(self) -> None:
        assert edit({"a.py": ""}, "### FILE: b.py\n```\nx = 1\n```\n### DELETE: b.py")[1] == UNCHANGED

    def test_big_files_kept_by_reference_are_edited_too(self, tmp_path: Path) -> None:
        big = tmp_path / "a.py"
        big.write_text("x = 1\n")
        base = Code.of({"a.py": File.reference(big)})
        edited = apply_reply(f"### FILE: a.py\n{CHANGE}", base, lambda path: True)
        assert edited.code.text("a.py") == "x = 2\n"


class TestWithoutHeader:
    """One editable file and one fenced block, or SEARCH/REPLACE blocks: clear, unless the block is an excerpt."""

    OLD = "lr = 0.1\n\n\ndef fit():\n    return lr\n\n\ndef main():\n    fit()\n"

    def test_a_complete_file_is_accepted(self) -> None:
        new = self.OLD.replace("0.1", "0.2")
        assert edit({"a.py": self.OLD, "fixed.py": ""}, f"Here:\n```python\n{new}```\nDone.")[0]["a.py"] == new.encode()

    def test_blocks_are_accepted(self) -> None:
        files, _ = edit({"a.py": self.OLD}, "Here:\n```\n" + block("lr = 0.1\n", "lr = 0.2\n") + "```")
        assert files["a.py"] == self.OLD.replace("0.1", "0.2").encode()

    @pytest.mark.parametrize(
        "excerpt", ["lr = 0.2\n", "lr = 0.2\n\n\ndef main():\n    fit()\n    fit()\n"], ids=["short", "a function lost"]
    )
    def test_an_excerpt_is_not(self, excerpt: str) -> None:
        assert "not clear that it is all of a.py" in edit({"a.py": self.OLD}, f"```python\n{excerpt}```")[1]

    def test_a_command_is_not(self) -> None:
        assert edit({"a.py": self.OLD}, "Just run it:\n```bash\npip install x && python a.py\n```")[1]

    @pytest.mark.parametrize("reply", ["```python\nx = 1\n```", block("x = 1\n", "x = 2\n")])
    def test_with_two_editable_files_it_is_not_clear(self, reply: str) -> None:
        _, said = edit({"a.py": "x = 1\n", "b.py": "x = 1\n"}, reply)
        assert said.startswith("The reply does not name the file to change.")
        assert "Editable: a.py, b.py." in said
