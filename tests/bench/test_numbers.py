"""Numbers that a command reports: found where they are, and nothing read that is no plain file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labcoat.bench import numbers, streams
from labcoat.bench.outputs import BadOutput


@pytest.mark.parametrize(
    ("name", "said", "value"),
    [
        ("val_loss", "val_loss: 0.123", 0.123),
        ("val_loss", "epoch 1 val_loss = 2\nepoch 2 val_loss = 1.5e-3, lr 3", 1.5e-3),
        ("loss", "loss=1\nval_loss=2\nval/loss=3\nval-loss=4\nmy.loss=5", 1.0),
        ("val/acc", "val/acc : -.5", -0.5),
        ("acc (top 1)", "acc (top 1): 93.1%", 93.1),
        ("acc", '{"acc": 0.5, "n": 3}', 0.5),
        ("acc", "\x1b[1macc\x1b[0m: \x1b[32m0.75\x1b[0m\n", 0.75),
        ("acc", "acc: 0.5.", 0.5),
        ("acc", "acc: 1,234.5, n = 3", 1234.5),
        ("acc", "acc: 0.5\nacc: 12,34 and acc: 3/10 and acc: 5e or acc: 1st", 0.5),
    ],
)
def test_the_last_number_of_that_name_counts(name: str, said: str, value: float) -> None:
    assert numbers.printed(name, said, "") == value


def test_not_a_number_is_read_as_such() -> None:
    assert str(numbers.printed("loss", "loss: 1\nloss: nan", "")) == "nan"
    assert numbers.printed("loss", "loss = -inf", "") == float("-inf")


def test_loggers_write_to_standard_error_and_what_is_printed_comes_first() -> None:
    assert numbers.printed("loss", "no news", "INFO loss: 3") == 3
    assert numbers.printed("loss", "loss: 2", "INFO loss: 3") == 2


def test_of_much_only_the_end_counts() -> None:
    much = streams.HeadTail()
    much.feed(b"loss: 9\n" + b"x" * streams.HEAD + b"a_" + b"loss: 5\n".ljust(streams.TAIL))
    with pytest.raises(BadOutput, match="of much only the last 48 KiB"):
        numbers.printed("loss", much.text(), "")
    much.feed(b"loss: 4\n")
    assert numbers.printed("loss", much.text(), "") == 4


def test_a_missing_number_says_what_was_looked_for_and_shows_the_end() -> None:
    said = "\n".join(f"line {number}" for number in range(40))
    with pytest.raises(BadOutput, match=r"no number acc: looked for `acc = NUMBER` or `acc: NUMBER`") as caught:
        numbers.printed("acc", said, "")
    assert "line 39" in str(caught.value) and "line 24" not in str(caught.value)
    with pytest.raises(BadOutput, match="which is nothing"):
        numbers.printed("acc", "", "")


def test_keys_of_a_json_file(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/m.json").write_text('{"acc": 1, "big": 1' + "0" * 400 + ', "nan": NaN, "yes": true, "text": "1"}')
    assert numbers.written("acc", tmp_path, "out/m.json") == 1.0
    assert numbers.written("big", tmp_path, "out/m.json") == float("inf")
    assert str(numbers.written("nan", tmp_path, "out/m.json")) == "nan"
    for name in ("yes", "text", "loss"):
        with pytest.raises(BadOutput, match=rf"no number {name}: looked for that key .* has: acc, big"):
            numbers.written(name, tmp_path, "out/m.json")
    for text in ("[1]", "{", "[" * 100_000, "\0"):
        (tmp_path / "out/m.json").write_text(text)
        with pytest.raises(BadOutput, match="no number acc"):
            numbers.written("acc", tmp_path, "out/m.json")


def test_only_plain_files_are_read_and_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "m.json").write_text('{"acc": 1}')
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "link.json").symlink_to(outside / "m.json")
    (workspace / "folder").symlink_to(outside)
    os.mkfifo(workspace / "pipe.json")
    (workspace / "dir.json").mkdir()
    with (workspace / "giant.json").open("wb") as giant:
        giant.truncate(1 << 40)
    for name in ("link.json", "folder/m.json", "pipe.json", "dir.json", "giant.json", "none.json", "no/m.json"):
        with pytest.raises(BadOutput, match=name):
            numbers.written("acc", workspace, name)
        numbers.forget(workspace, name)
    assert (outside / "m.json").exists()


def test_an_old_report_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"acc": 1}')
    numbers.forget(tmp_path, "m.json")
    with pytest.raises(BadOutput, match=r"m\.json is missing: the command did not write it"):
        numbers.written("acc", tmp_path, "m.json")
