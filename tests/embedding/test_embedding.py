"""Vectors for code: the offline embedder, windows with their cache, and GraphCodeBERT's adapter."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labcoat.embedding import KNOWN, load, text_of
from labcoat.embedding.cache import Cache, Rows
from labcoat.embedding.pieces import REACH, pieces
from labcoat.embedding.tokens import HashedTokens
from labcoat.embedding.windows import WINDOW, Pool, Windowed, windows
from labcoat.errors import CannotRunHere, InputError
from labcoat.tree import Code


class Words:
    """A tiny encoder with a vector for each word: what a window gives can be computed by hand."""

    name = "words"
    dimensions = 2

    def __init__(self) -> None:
        self.encoded: list[tuple[int, ...]] = []

    def tokens(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def encode(self, windows: Sequence[Sequence[int]], pool: Pool) -> Rows:
        self.encoded += map(tuple, windows)
        rows = [[w[0], 1.0] if pool == "sum" else [float(np.mean(w)), 1.0] for w in windows]
        return np.array(rows, np.float32)


def words(count: int, first: int = 0) -> str:
    return " ".join(str(first + n) for n in range(count))


def test_files_are_joined_in_the_order_of_their_paths() -> None:
    assert text_of(Code.of({"b.py": "two", "a.py": "one", "c.py": "three"}), ["b.py", "a.py"]) == "one\ntwo"


def test_equal_text_gives_equal_vectors_of_length_one() -> None:
    first, again, other, empty = HashedTokens().embed(["x = 1 + y", "x  =  1 + y", "def f(): return 2", " \n"])
    assert first == again != other
    assert math.fsum(x * x for x in first) == pytest.approx(1)
    assert empty == [0.0] * 256


def test_a_small_edit_is_nearer_than_another_program() -> None:
    base = "def train(x, lr=0.1):\n    for step in range(100):\n        x = x - lr * grad(x)\n    return x\n"
    edited, other = base.replace("0.1", "0.3"), "class Tree:\n    def __init__(self, left, right):\n        pass\n"
    a, b, c = (np.array(v) for v in HashedTokens().embed([base, edited, other]))
    assert np.linalg.norm(a - b) < 0.5 < 1 < np.linalg.norm(a - c)


def test_vectors_do_not_depend_on_the_machine() -> None:
    vector = HashedTokens().embed(["alpha beta"])[0]
    places = {place: round(x, 6) for place, x in enumerate(vector) if x}
    assert places == {67: 0.57735, 154: -0.57735, 174: -0.57735}


def test_windows_follow_each_other_and_nothing_is_cut_off() -> None:
    tokens = list(range(2 * WINDOW + 1))
    cut = windows(tokens)
    assert [len(window) for window in cut] == [WINDOW, WINDOW, 1]
    assert [token for window in cut for token in window] == tokens
    assert windows([]) == []


BODIES = ["".join(f"    z = x + {m} * y\n" for m in range(n % 5, n % 5 + 30)) for n in range(20)]
PROGRAM = "".join(f"def function_{n}(x, y={n}):\n{body}    return z\n\n\n" for n, body in enumerate(BODIES))


def test_pieces_are_functions_where_these_have_the_right_length() -> None:
    cut = pieces(PROGRAM)
    assert len(cut) == 20 and all(piece.startswith("def function_") for piece in cut)
    assert pieces("x = 1\n" * (REACH // 6)) == ["x = 1\n" * (REACH // 6)]


@given(st.text(st.sampled_from("ab (}\n\t "), max_size=3 * REACH))
def test_pieces_lose_nothing(text: str) -> None:
    assert "".join(pieces(text)) == text and all(pieces(text))


FRESH = ["", "    z = 1\n", "import os\n\n\n"]


@given(st.integers(0, PROGRAM.count("\n") - 5), st.integers(0, 5), st.sampled_from(FRESH))
def test_an_edit_changes_the_pieces_beside_it_only(line: int, gone: int, fresh: str) -> None:
    lines = PROGRAM.splitlines(keepends=True)
    edited = "".join([*lines[:line], fresh, *lines[line + gone :]])
    assert len(set(pieces(edited)) - set(pieces(PROGRAM))) <= 3


def test_a_mean_encodes_what_an_edit_changed_only(tmp_path: Path) -> None:
    class Letters(Words):
        def tokens(self, text: str) -> list[int]:
            return [ord(letter) for letter in text]

    encoder = Letters()
    mean = Windowed("m", encoder, "mean", Cache(tmp_path / "m"))
    (before,) = mean.embed([PROGRAM])
    first = len(encoder.encoded)
    (after,) = mean.embed(["import os\n" + PROGRAM])
    assert 0 < len(encoder.encoded) - first <= 3 < first / 5
    assert before == pytest.approx([float(np.mean([ord(letter) for letter in PROGRAM])), 1.0]) and after != before


def test_a_sum_grows_with_length_and_a_mean_does_not(tmp_path: Path) -> None:
    summed = Windowed("s", Words(), "sum", Cache(tmp_path / "s"))
    assert summed.embed([words(3, 7), words(WINDOW + 2, 7), ""]) == [[7.0, 1.0], [7.0 + 517.0, 2.0], [0.0, 0.0]]
    mean = Windowed("m", Words(), "mean", Cache(tmp_path / "m"))
    short, long, empty = mean.embed([words(3, 7), " ".join(["8"] * (3 * WINDOW + 5)), ""])
    assert short == [8.0, 1.0] and long == pytest.approx([8.0, 1.0]) and empty == [0.0, 0.0]


def test_a_window_is_encoded_once_also_in_a_later_run(tmp_path: Path) -> None:
    first, later = Words(), Words()
    texts = [words(2 * WINDOW), words(2 * WINDOW) + " 5 6", words(WINDOW) + " 9"]
    vectors = Windowed("s", first, "sum", Cache(tmp_path / "c")).embed(texts)
    assert sorted(map(len, first.encoded)) == [1, 2, WINDOW, WINDOW]
    assert Windowed("s", later, "sum", Cache(tmp_path / "c")).embed(texts) == vectors and later.encoded == []
    Windowed("m", later, "mean", Cache(tmp_path / "c")).embed(texts)
    assert len(later.encoded) == 4


@given(st.lists(st.lists(st.integers(0, 3), max_size=30), max_size=8))
def test_batches_and_their_order_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]]
) -> None:
    texts = [" ".join(map(str, row)) for row in rows]
    folder = tmp_path_factory.mktemp("cache")
    together = Windowed("s", Words(), "sum", Cache(folder / "a")).embed(texts)
    alone = Windowed("s", Words(), "sum", Cache(folder / "b"))
    assert together == [alone.embed([text])[0] for text in texts]


def _fill(path: Path, first: int) -> None:
    cache = Cache(path)
    for number in range(50):
        cache.put("space", {(first, number): np.array([number], np.float32)})


def test_several_processes_may_fill_the_cache_at_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_fill, args=(tmp_path / "c", first)) for first in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    wanted = [(first, number) for first in range(3) for number in range(50)]
    assert len(Cache(tmp_path / "c").get("space", wanted)) == 150


def test_a_cache_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("not a table, and long enough to be read as one " * 40)
    with pytest.raises(CannotRunHere, match="file is not a database; free some space, or remove the file"):
        Cache(tmp_path / "c")


def test_a_disk_that_is_full_is_named_and_what_was_kept_before_is_there(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c")
    cache.put("space", {(1,): np.zeros(8, np.float32)})
    cache._table.execute("PRAGMA max_page_count = 2")
    with pytest.raises(CannotRunHere, match="c: database or disk is full; free some space"):
        cache.put("space", {(n,): np.zeros(800, np.float32) for n in range(2, 9)})
    assert list(Cache(tmp_path / "c").get("space", [(1,), (2,)])) == [(1,)]


def test_an_unknown_embedder_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    assert load("tokens", lambda: tmp_path).name == "tokens"
    with pytest.raises(InputError, match="unknown embedder 'bert'; known:") as caught:
        load("bert", lambda: tmp_path)
    assert all(name in str(caught.value) for name in KNOWN)
