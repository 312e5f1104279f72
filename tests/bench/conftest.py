"""One shared home with one cheap environment, both kinds of sandbox, and benches of a tiny task."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from labcoat.bench import environment, home, sandbox, scratch
from labcoat.bench.worker import SandboxedBench
from tests.bench.tiny import make_task

RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
SHARED = Path(tempfile.gettempdir()) / f"labcoat-tests-{os.getuid()}-{RUN}"  # not pytest's own, which is 0700


def with_numpy(made: environment.Environment) -> environment.Environment:
    """Put our own numpy into an environment without requirements: no index is asked, it takes a second."""
    packages = next((made.folder / "env/lib").glob("python*/site-packages"))
    with home.locked(made.folder / "numpy.lock", lambda text: None, "numpy"):
        if not (made.folder / "numpy-complete").exists():
            ours = Path(np.__file__).parent
            for name in ("numpy", "numpy.libs"):
                if (ours.parent / name).exists():
                    shutil.copytree(ours.parent / name, packages / name, ignore=shutil.ignore_patterns("tests", "*.a"))
            scratch.open_tree(packages)
            (made.folder / "numpy-complete").touch()
    return made


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """A folder that every user can enter, shared by all pytest workers; the last one removes it."""
    with SHARED.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield home.make(SHARED)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            scratch.remove(SHARED)
            SHARED.with_suffix(".lock").unlink(missing_ok=True)


@pytest.fixture(scope="session", autouse=True)
def labcoat_home(shared: Path) -> Iterator[Path]:
    """Never the user's own home."""
    patch = pytest.MonkeyPatch()
    patch.setenv("LABCOAT_HOME", str(shared / "home"))
    yield shared / "home"
    patch.undo()


@pytest.fixture(scope="session")
def numpy_environment(labcoat_home: Path) -> environment.Environment:
    """The environment of the tiny task."""
    return with_numpy(environment.prepare([], lambda text: None))


@pytest.fixture(scope="session")
def bwrap() -> sandbox.Bubblewrap:
    """The sandbox, where it works."""
    if reason := sandbox.probe():
        pytest.skip(reason)
    return sandbox.Bubblewrap()


@pytest.fixture(params=["bwrap", "none"])
def either(request: pytest.FixtureRequest) -> sandbox.Sandbox:
    """Both kinds of sandbox, one after the other."""
    if request.param == "none":
        return sandbox.Unsandboxed()
    found: sandbox.Bubblewrap = request.getfixturevalue("bwrap")
    return found


@pytest.fixture
def open_folder(shared: Path) -> Iterator[Path]:
    """A fresh folder that every user can enter."""
    path = Path(tempfile.mkdtemp(dir=shared))
    path.chmod(0o755)
    yield path
    scratch.remove(path)


OpenBench = Callable[..., SandboxedBench]


@pytest.fixture
def open_bench(numpy_environment: environment.Environment, open_folder: Path) -> Iterator[OpenBench]:
    """Make and prepare a bench of a tiny task; closed at the end."""
    opened: list[SandboxedBench] = []

    def make(kind: sandbox.Sandbox, **parts: str) -> SandboxedBench:
        bench = SandboxedBench(make_task(open_folder / f"task{len(opened)}", **parts), kind, lambda text: None)
        opened.append(bench)
        bench.prepare()
        return bench

    yield make
    for bench in opened:
        bench.close()
