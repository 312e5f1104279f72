"""The artefact is copied without following anything, within caps, and hashed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labcoat.bench import artefact
from labcoat.bench.outputs import BadOutput, Tampered
from labcoat.tree import Code, sha256


def test_files_are_copied_and_hashed(tmp_path: Path) -> None:
    code = Code.of({"model.bin": b"\0\1", "parts/a/w.txt": "w"})
    code.write(tmp_path / "source")
    (tmp_path / "source/model.bin").chmod(0)
    (tmp_path / "source/parts").chmod(0)
    files = artefact.keep(tmp_path / "source", tmp_path / "kept", cap=23)
    assert files == {"model.bin": sha256(b"\0\1"), "parts/a/w.txt": sha256(b"w")}
    assert artefact.hash_of(files) == code.sha == Code.read(tmp_path / "kept").sha
    assert (tmp_path / "kept/parts").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "kept/model.bin").stat().st_mode & 0o777 == 0o644


def test_names_are_bytes_too_and_what_was_taken_once_is_taken_again(tmp_path: Path) -> None:
    for unit in range(3):
        (tmp_path / "units" / str(unit) / ("d/" * 20)).mkdir(parents=True)
        for number in range(artefact.MOST_FILES // 2):
            (tmp_path / "units" / str(unit) / f"{number:0100d}").touch()
    with pytest.raises(BadOutput, match="more than 100000 bytes"):
        artefact.keep(tmp_path / "units/0", tmp_path / "a", cap=100_000)
    files = artefact.keep(tmp_path / "units", tmp_path / "b", cap=None)
    assert len(files) == 3 * artefact.MOST_FILES // 2


def test_caps(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with (source / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(BadOutput, match="more than 1000 bytes"):
        artefact.keep(source, tmp_path / "a", cap=1000)
    (source / "sparse").unlink()
    (source / ("d/" * 30)).mkdir(parents=True)
    with pytest.raises(BadOutput, match="nested deeper than 20"):
        artefact.keep(source, tmp_path / "b", cap=1000)


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefact, "MOST_FILES", 5)
    for number in range(6):
        (tmp_path / str(number)).touch()
    with pytest.raises(BadOutput, match="more than 5 entries"):
        artefact.keep(tmp_path, tmp_path.with_name("kept"), cap=1000)


@pytest.mark.parametrize("kind", ["symlink", "folder link", "fifo", "hard link"])
def test_links_and_special_files(tmp_path: Path, kind: str) -> None:
    secret, source = tmp_path / "secret", tmp_path / "source"
    source.mkdir()
    secret.write_text("answers")
    {
        "symlink": lambda: (source / "x").symlink_to(secret),
        "folder link": lambda: (source / "x").symlink_to("/etc"),
        "fifo": lambda: os.mkfifo(source / "x"),
        "hard link": lambda: (source / "x").hardlink_to(secret),
    }[kind]()
    with pytest.raises(Tampered, match="/artefact/x"):
        artefact.keep(source, tmp_path / "kept", cap=1000)


def test_names_that_a_journal_cannot_hold(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/source")
    open(os.fsencode(tmp_path) + b"/source/\xff\n", "w").close()
    with pytest.raises(BadOutput, match=r"\\udcff"):
        artefact.keep(tmp_path / "source", tmp_path / "kept", cap=1000)
