"""Where things are kept, and what is said when they cannot be."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from labcoat.bench import home, scratch
from labcoat.errors import CannotRunHere
from tests.bench.tiny import PYTHON


def test_home_follows_the_environment(monkeypatch: pytest.MonkeyPatch, open_folder: Path) -> None:
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder / "a/b"))
    assert home.home() == open_folder / "a/b" and (open_folder / "a/b").is_dir()
    monkeypatch.delenv("LABCOAT_HOME")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(open_folder / "cache"))
    assert home.home() == open_folder / "cache/labcoat"


def test_root_needs_a_home_that_workers_can_reach(monkeypatch: pytest.MonkeyPatch, open_folder: Path) -> None:
    (open_folder / "closed").mkdir(mode=0o700)
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder / "closed/home"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(CannotRunHere, match=f"chmod o\\+x {open_folder}/closed"):
        home.home()


@pytest.mark.parametrize(("code", "said"), [(errno.ENOSPC, "no space left"), (errno.EACCES, "Permission denied")])
def test_errors_of_the_file_system_name_folder_and_remedy(code: int, said: str) -> None:
    with pytest.raises(CannotRunHere, match=rf"^/some/where: {said}.*LABCOAT_HOME"), home.named(Path("/some/where")):
        raise OSError(code, os.strerror(code), "file")
    with pytest.raises(FileNotFoundError), home.named(Path("/some/where")):
        raise FileNotFoundError(errno.ENOENT, "ours")
    assert ("free some space" in str(home.trouble(Path("/x"), OSError(code, "")))) == (code == errno.ENOSPC)


def test_a_tree_that_cannot_be_copied_is_named_with_what_the_system_says(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/nowhere").symlink_to("gone")
    with (
        pytest.raises(CannotRunHere, match=r"^/some/where: \[Errno 2\] No such file.*free"),
        home.named(Path("/some/where")),
    ):
        shutil.copytree(tmp_path / "tree", tmp_path / "copy")


@pytest.mark.parametrize(
    "place", ["/etc/passwd", "/etc/passwd/x", "/proc/x", "{0}/circle", "{0}/nowhere/x", "{0}/" + "long" * 99]
)
def test_a_place_that_cannot_be_a_folder_is_named(
    place: str, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_folder / "circle").symlink_to("circle")
    (open_folder / "nowhere").symlink_to("/proc/nowhere")
    place = place.format(open_folder)
    monkeypatch.setenv("LABCOAT_HOME", place)
    with pytest.raises(CannotRunHere, match="; set LABCOAT_HOME to a folder that can be made and written to") as caught:
        home.home()
    assert str(caught.value).startswith(os.path.realpath(place))
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder))
    (open_folder / "envs").touch()
    with pytest.raises(CannotRunHere, match=f"^{open_folder}/envs: Not a directory; set LABCOAT_HOME"):
        home.folder("envs")


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LABCOAT_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(CannotRunHere, match="no home folder: set LABCOAT_HOME"):
        home.home()


def test_a_lock_lasts_as_long_as_a_process_that_inherited_it(open_folder: Path) -> None:
    said: list[str] = []
    with home.locked(open_folder / "lock", said.append, "x") as lock:
        heir = subprocess.Popen(["sleep", "0.5"], pass_fds=[lock])
    with home.locked(open_folder / "lock", said.append, "the heir"):
        assert heir.poll() is not None or heir.wait(1) == 0
    assert said == ["waiting for another process: the heir"]


def test_space_is_checked() -> None:
    home.check_space(Path("/"), least=0)
    with pytest.raises(CannotRunHere, match="no space left"):
        home.check_space(Path("/"), least=1 << 60)


def test_scratch_is_removed_and_the_scratch_of_the_dead_is_swept() -> None:
    ours = scratch.Scratch()
    dead = ours.folder.with_name("bench-dead")
    (dead / "deep").mkdir(parents=True)
    dead.with_suffix(".owner").touch()
    other = scratch.Scratch()
    assert not dead.exists() and not dead.with_suffix(".owner").exists() and ours.folder.exists()
    with other.part("trial") as folder:
        (folder / "x").touch()
    assert not folder.exists()
    for one in (ours, other):
        one.close()
        assert not one.folder.exists() and not one.folder.with_suffix(".owner").exists()


def test_hostile_trees_are_removed(open_folder: Path) -> None:
    path = open_folder / "tree"
    path.mkdir()
    nest = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    subprocess.run([PYTHON, "-S", "-c", nest], cwd=path, check=True)
    (path / "closed/inner").mkdir(parents=True)
    (path / "closed").chmod(0)
    (path / "link").symlink_to("/etc")
    scratch.remove(path)
    assert not path.exists() and Path("/etc/passwd").exists()


def test_the_salt_is_made_once_and_for_our_eyes_only(monkeypatch: pytest.MonkeyPatch, open_folder: Path) -> None:
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder / "one"))
    home.home().joinpath("salt.new").write_bytes(b"half of a sal")  # of one who was killed
    old = os.umask(0)
    try:
        salt = home.salt()
    finally:
        os.umask(old)
    assert len(salt) == 32 and home.salt() == salt
    assert (open_folder / "one/salt").stat().st_mode & 0o777 == 0o600
    assert not (open_folder / "one/salt.new").exists()
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder / "two"))
    assert home.salt() != salt


def test_processes_that_start_together_have_one_salt(open_folder: Path) -> None:
    code = "from labcoat.bench import home; print(home.salt().hex())"
    started = [
        subprocess.Popen(
            [PYTHON, "-c", code], env=os.environ | {"LABCOAT_HOME": str(open_folder)}, stdout=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    said = {process.communicate()[0].strip() for process in started}
    assert said == {(open_folder / "salt").read_bytes().hex()}


@pytest.mark.parametrize("content", [b"", b"too short", bytes(33)])
def test_something_else_is_no_salt(content: bytes, monkeypatch: pytest.MonkeyPatch, open_folder: Path) -> None:
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder))
    (open_folder / "salt").write_bytes(content)
    with pytest.raises(CannotRunHere, match=f"salt: holds {len(content)} bytes, a salt has 32"):
        home.salt()
