"""Environments: built once, by one of many, whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labcoat.bench import environment, home, process
from labcoat.bench.environment import Environment
from labcoat.errors import CannotRunHere, InputError

BUILD = """
import sys
from labcoat.bench import environment
print("built", environment.prepare(sys.argv[1:], lambda text: print(text, flush=True)).folder)
"""

# A package that takes its time to be built, and writes down when that begins and ends.
SLOW = """import os, time, zipfile
def build_wheel(folder, *rest):
    for word in ("begin", "end"):
        with open(os.environ["SLOW_LOG"], "a") as log:
            log.write(f"{word} {os.getpid()}\\n")
        time.sleep(2 if word == "begin" and not os.path.exists(os.environ["SLOW_LOG"] + ".quick") else 0)
    name = "slow-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("slow.py", "")
        wheel.writestr("slow-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: slow\\nVersion: 1.0\\n")
        wheel.writestr("slow-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("slow-1.0.dist-info/RECORD", "")
    return name
"""


def write_wheel(folder: Path, name: str, members: dict[str, bytes], more: str = "") -> None:
    """A wheel, version 1.0, that pip accepts; ``more`` are lines of its metadata."""
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in members.items():
            wheel.writestr(path, content)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{more}"
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", metadata)
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")


def write_slow(folder: Path) -> None:
    """The slow package, as sources."""
    source = folder / "slow-1.0"
    source.mkdir()
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    project = '[project]\nname = "slow"\nversion = "1.0"\n'
    (source / "pyproject.toml").write_text(build + project)
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
    (source / "backend.py").write_text(SLOW)
    with tarfile.open(folder / "slow-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, "slow-1.0")


@contextmanager
def disk(place: Path, megabytes: int) -> Iterator[Path]:
    """A disk of its own at ``place``, as small as one likes."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts a disk")
    place.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "labcoat-test", str(place)]
    if subprocess.run(argv, capture_output=True, check=False).returncode != 0:
        pytest.skip("no disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def wheels(
    numpy_environment: Environment, labcoat_home: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty folder that is pip's only index, and a fresh home that has the copied Python, if one is needed."""
    (open_folder / "wheels").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(open_folder / "wheels"))
    monkeypatch.setenv("SLOW_LOG", str(open_folder / "log"))
    fresh = home.make(open_folder / "home")
    if (labcoat_home / "pythons").exists():
        (fresh / "pythons").symlink_to(labcoat_home / "pythons")
    monkeypatch.setenv("LABCOAT_HOME", str(fresh))
    return open_folder / "wheels"


def builder(*requires: str) -> subprocess.Popen[str]:
    """Another process that builds."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", BUILD, *requires]
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True)


def import_in(made: Environment, module: str) -> int | None:
    """The exit code of an import in an environment."""
    argv = [made.interpreter(environment.outside), "-c", f"import {module}"]
    return process.run(argv, env=made.variables(environment.outside), timeout=20).exit


def test_two_builders_at_once(wheels: Path) -> None:
    builders = [builder() for _ in range(2)]
    said = [one.communicate(timeout=60)[0] for one in builders]
    assert [one.returncode for one in builders] == [0, 0]
    assert said[0].splitlines()[-1] == said[1].splitlines()[-1]
    assert sum("making an environment" in text for text in said) == 1
    assert sum("waiting for another process" in text for text in said) == 1


def test_it_works_where_it_was_built(numpy_environment: Environment) -> None:
    argv = [numpy_environment.interpreter(environment.outside), "-c", "import sys, numpy; print(sys.prefix)"]
    env = {"PATH": os.environ["PATH"]} | numpy_environment.variables(environment.outside)
    done = process.run(argv, env=env, timeout=20)
    assert done.stdout.strip() == str(numpy_environment.folder / "env"), done.stderr
    assert all(bind.inside.startswith(("/env", "/python")) for bind in numpy_environment.binds)
    assert not os.path.isabs(os.readlink(numpy_environment.folder / "env/bin/python"))


def test_a_failed_build_is_told_and_leaves_nothing(wheels: Path) -> None:
    said = r"pip install failed: No matching distribution found for late==1.0\n(.*\n)*the index has no such package"
    with pytest.raises(CannotRunHere, match=said):
        environment.prepare(["late==1.0"], lambda text: None)
    (lock,) = home.folder("envs").iterdir()
    write_wheel(wheels, "late", {"late.py": b""})
    made = environment.prepare(["late==1.0"], lambda text: None)
    assert lock == made.folder.with_suffix(".lock") and made.lock == "late==1.0\n"
    assert import_in(made, "late") == 0 and import_in(made, "early") == 1
    assert sorted(path.name for path in made.folder.iterdir()) == ["complete", "env", "inside.cfg", "python"]


@pytest.mark.slow
def test_whenever_a_builder_is_killed_the_next_one_is_right(wheels: Path) -> None:
    write_wheel(wheels, "late", {"late.py": b""})
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    for _ in range(5):
        killed = builder("late==1.0")
        time.sleep(moments.uniform(0.2, 4))
        killed.kill()
        killed.communicate()
        made = environment.prepare(["late==1.0"], lambda text: None)
        assert made.lock == "late==1.0\n" and import_in(made, "late") == 0, f"seed {seed}"
        (made.folder / "complete").unlink()


@pytest.mark.slow
def test_what_a_killed_builder_started_is_waited_for(wheels: Path, open_folder: Path) -> None:
    write_slow(wheels)
    log, said = open_folder / "log", list[str]()
    first = builder("slow==1.0")
    give_up = time.monotonic() + 60
    while not log.exists() and time.monotonic() < give_up:
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    (open_folder / "log.quick").touch()
    made = environment.prepare(["slow==1.0"], said.append)
    assert said[0] == "waiting for another process: it builds the same environment"
    lines = [line.split() for line in log.read_text().splitlines()]
    assert [word for word, _ in lines] == ["begin", "end"] * (len(lines) // 2)
    assert lines[0][1] == lines[1][1]  # the orphan came to its end before anything else began
    assert made.lock == "slow==1.0\n" and import_in(made, "slow") == 0


@pytest.mark.parametrize("megabytes", [3, 60])
def test_a_full_disk_is_told_and_not_kept_full(
    megabytes: int, wheels: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(wheels, "big", {"big.bin": bytes(80 << 20)})
    with disk(open_folder / "disk", megabytes) as small:
        if (open_folder / "home/pythons").exists():
            (small / "pythons").symlink_to(open_folder / "home/pythons")
        monkeypatch.setenv("LABCOAT_HOME", str(small))
        said = rf"^{small}/envs/\w+: no space left \(\d+ MiB are not enough\); free some space or set LABCOAT_HOME"
        with pytest.raises(CannotRunHere, match=said) as caught:
            environment.prepare(["big==1.0"], lambda text: None)
        assert ("ensurepip failed" if megabytes == 3 else "pip install failed") in str(caught.value.__cause__)
        assert [path.suffix for path in (small / "envs").iterdir()] == [".lock"]
        assert home.free(small) > (megabytes - 1) << 20


def test_a_full_disk_is_told_where_python_is_copied(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = open_folder / "closed"
    base.mkdir(mode=0o700)
    (base / "big").write_bytes(bytes(5 << 20))
    monkeypatch.setattr(sys, "base_prefix", str(base))
    with disk(open_folder / "disk", 3) as small:
        monkeypatch.setenv("LABCOAT_HOME", str(small))
        with pytest.raises(CannotRunHere, match=rf"^{small}/pythons/.*: no space left \([23] MiB"):
            environment.base_prefix(lambda text: None)
        assert [path.suffix for path in (small / "pythons").iterdir()] == [".lock"]


def test_a_python_without_ensurepip(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = process.run

    def run(argv: list[str], **more: object) -> process.Finished:
        if "ensurepip" in argv:
            return process.Finished(1, "", f"{argv[0]}: No module named ensurepip", 0.1)
        return real(argv, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "run", run)
    with pytest.raises(CannotRunHere, match=r"sudo apt-get install python3\.\d+-venv"):
        environment.prepare(["x==1"], lambda text: None)


@pytest.mark.parametrize(
    "requirement", ["tzdata", "tzdata====", "tzdata==", "tzdata>=1", "tzdata==1.*", "--pre", "a @ b"]
)
def test_what_is_not_pinned_is_refused(requirement: str) -> None:
    with pytest.raises(InputError, match=r"^task.toml: score.requires: '.*': not pinned; write name==version"):
        environment.prepare(["numpy==2.4.6", requirement], lambda text: None, "score.requires")


def test_what_is_pinned_is_not_refused() -> None:
    environment.check_pinned(["a==1", "a-b.c_d == 1!2.0rc1+cpu", "a[x,y]==1", "a==1; python_version < '3.12'"], "x")


VERSIONS = "ERROR: Could not find a version that satisfies the requirement a==9 (from versions: %s)\n"
NONE_FOUND = "ERROR: No matching distribution found for a==9\n"
RETRY = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError()': /simple/a/\n"


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (VERSIONS % "1.0, 2.0" + NONE_FOUND, "the index has other versions only for Python 3.1x: correct FIELD"),
        (
            VERSIONS % "none" + NONE_FOUND,
            "the index has no such package for Python 3.1x: correct FIELD in task.toml, or",
        ),
        (
            RETRY * 5 + VERSIONS % "none" + NONE_FOUND,
            "the network failed: check package index and proxy: PIP_INDEX_URL",
        ),
        ("ERROR: HTTP error 403 while getting http://x/a.whl\n", "the network failed: check package index and proxy"),
        (
            "ERROR: ResolutionImpossible: for help visit x\n",
            "these versions cannot be installed together: correct FIELD",
        ),
        ("ERROR: Failed building wheel for a\n", None),
    ],
)
def test_what_to_do_follows_from_what_pip_said(said: str, hint: str | None) -> None:
    found = [text.replace(environment.VERSION, "3.1x") for text in environment.hints(said, "FIELD")]
    assert len(found) == (hint is not None) and all(hint is not None and text.startswith(hint) for text in found)


def test_what_pip_said_is_cut_to_its_reason() -> None:
    many = ", ".join(f"1.{minor}" for minor in range(200))
    found = environment.reason("Looking in links: x\n" + RETRY * 5 + VERSIONS % many + NONE_FOUND + "\n[notice] x\n")
    versions = VERSIONS.removesuffix("\n") % "..., 1.197, 1.198, 1.199"
    assert found == "\n".join(
        ["No matching distribution found for a==9", "Looking in links: x", versions, "[notice] x"]
    )
    long = "\n".join(f"line {number} " + "x" * 1000 for number in range(50))
    assert len(environment.reason(long).splitlines()) == 6 and len(environment.reason(long)) < 2000
    assert environment.reason("ERROR: Exception:\nTraceback\n  x\nKeyError: 1").splitlines()[0] == "KeyError: 1"
    assert environment.reason("OSError: [Errno 28] No space left on device\nERROR: a\n").startswith(
        "OSError: [Errno 28]"
    )
    assert environment.reason("") == "it said nothing"


def test_equal_lists_share_an_environment(numpy_environment: Environment) -> None:
    assert environment.prepare([], lambda text: pytest.fail(text)).folder == numpy_environment.folder


def test_pip_gets_the_users_index_and_nothing_that_redirects_and_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_INDEX_URL", "PIP_TARGET", "PIP_USER", "PYTHONPATH", "VIRTUAL_ENV", "https_proxy", "ANY_API_KEY"):
        monkeypatch.setenv(name, "x")
    found = environment.ours()
    assert found["PIP_INDEX_URL"] == found["https_proxy"] == "x"
    assert not {"PIP_TARGET", "PIP_USER", "PYTHONPATH", "VIRTUAL_ENV", "ANY_API_KEY"} & set(found)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs a copy")
def test_root_copies_a_python_that_workers_cannot_reach(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = open_folder / "closed/python"
    for name in (
        "bin/python3",
        "lib/python3.11/os.py",
        "lib/python3.11/site-packages/secret.py",
        "lib/python3.11/test/t.py",
    ):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(name)
    (base / "bin/python3").chmod(0o700)
    (open_folder / "closed").chmod(0o700)
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder / "home"))
    monkeypatch.setattr(sys, "base_prefix", str(base))
    copy = environment.base_prefix(lambda text: None)
    assert copy != base and home.closed_to_others(copy) is None and environment.base_prefix(lambda text: None) == copy
    assert (copy / "bin/python3").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in sorted(copy.rglob("*.py"))] == ["os.py"]
    (open_folder / "closed").chmod(0o755)
    assert environment.base_prefix(lambda text: None) == base
