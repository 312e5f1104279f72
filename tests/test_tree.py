"""Code is an immutable, hashed value."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labcoat.tree import Code, File, check_path, diff, matches

NAMES = st.sampled_from(["a.py", "b.py", "pkg/c.py", "pkg/deep/d.txt"])


def test_order_of_files_does_not_matter() -> None:
    assert Code.of({"a": "1", "b": "2"}) == Code.of({"b": "2", "a": "1"})


def test_names_are_part_of_the_identity() -> None:
    assert Code.of({"a": "1"}) != Code.of({"b": "1"})


def test_put_adds_replaces_and_deletes_and_leaves_the_old_value_alone() -> None:
    old = Code.of({"a": "1", "b": "2"})
    new = old.put({"a": "3", "b": None, "c": b"\xff"})
    assert {path: file.read() for path, file in new.items()} == {"a": b"3", "c": b"\xff"}
    assert list(old) == ["a", "b"]


@given(st.dictionaries(NAMES, st.binary(max_size=20)), st.dictionaries(NAMES, st.none() | st.binary(max_size=20)))
def test_put_is_what_a_dictionary_does(files: dict[str, bytes], changes: dict[str, bytes | None]) -> None:
    merged = {**files, **changes}
    expected = Code.of({path: content for path, content in merged.items() if content is not None})
    assert Code.of(files).put(changes) == expected


@pytest.mark.parametrize("path", ["", ".", "..", "/etc/passwd", "a/../b", "a//b", "./a", "a\\b", "a\0", "a/"])
def test_paths_that_could_leave_the_tree_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="relative path"):
        check_path(path)


def test_write_and_read_are_inverse_and_links_are_passed_over(tmp_path: Path) -> None:
    code = Code.of({"a.py": "x = 1\n", "pkg/b.bin": b"\x00\xff"})
    code.write(tmp_path / "w")
    (tmp_path / "w" / "link").symlink_to("/etc/passwd")
    (tmp_path / "w" / "__pycache__").mkdir()
    (tmp_path / "w" / "__pycache__" / "a.pyc").write_bytes(b"")
    assert Code.read(tmp_path / "w") == code


def test_a_big_file_is_kept_by_reference_with_the_hash_of_its_content(tmp_path: Path) -> None:
    content = b"x" * (Code.HELD_LIMIT + 1)
    (tmp_path / "weights").write_bytes(content)
    file = Code.read(tmp_path)["weights"]
    assert file.held is None
    assert file.sha == File.of(content).sha
    assert file.read() == content


def test_diff_names_added_deleted_and_binary_files() -> None:
    old = Code.of({"a.py": "x = 1\n", "gone.py": "y\n", "data": b"\xff"})
    new = Code.of({"a.py": "x = 2\n", "new.py": "z\n", "data": b"\xfe"})
    text = diff(old, new)
    assert "-x = 1\n+x = 2" in text
    assert "Binary files a/data and b/data differ" in text
    assert "+++ /dev/null\n@@ -1 +0,0 @@\n-y" in text
    assert "--- /dev/null\n+++ b/new.py" in text
    assert diff(old, old) == ""


def test_globs_reach_into_folders() -> None:
    assert matches("src/deep/a.py", ["src/*.py"])
    assert not matches("main.py", ["src/*.py", "algorithm.py"])


def test_diff_shows_ends_of_lines() -> None:
    def change(old: str, new: str) -> str:
        return diff(Code.of({"a": old}), Code.of({"a": new}))

    assert "\\ No newline at end of file" in change("x\n", "x")
    assert "-x\n+x\\r" in change("x\n", "x\r\n")
    assert change("a\fb\n", "a\nb\n") != ""
    assert diff(Code(), Code.of({"empty": ""})) == "--- /dev/null\n+++ b/empty"
