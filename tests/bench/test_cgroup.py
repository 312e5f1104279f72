"""Control groups: where they can be made, and what they hold that a watcher cannot."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from labcoat.bench import cgroup, sandbox
from labcoat.bench.cgroup import Hierarchy
from labcoat.bench.command import Bind, Limits, available
from labcoat.bench.environment import Environment
from tests.bench.test_sandbox import run

needs_group = pytest.mark.skipif(available() is None, reason="no control groups can be made here")
LIMITS = Limits(timeout=15, memory_mb=200, processes=20, disk_mb=2)


def test_version_1_is_found_by_its_two_hierarchies(tmp_path: Path) -> None:
    for controller in ("memory", "pids"):
        (tmp_path / controller / "job").mkdir(parents=True)
    found = cgroup.find(tmp_path, "8:pids:/job\n4:memory:/job\n0::/\n", Path.is_dir)
    assert found == Hierarchy(1, tmp_path / "memory/job", tmp_path / "pids/job")


@pytest.mark.parametrize(("delegated", "expected"), [("memory pids", "user/slice"), ("cpu", "user")])
def test_version_2_is_the_nearest_group_that_hands_both_controllers_down(
    tmp_path: Path, delegated: str, expected: str
) -> None:
    place = tmp_path / "user/slice/app"
    place.mkdir(parents=True)
    (tmp_path / "cgroup.controllers").write_text("memory pids")
    for folder, text in (
        (place, ""),
        (place.parent, delegated),
        (tmp_path / "user", "cpu memory pids"),
        (tmp_path, ""),
    ):
        (folder / "cgroup.subtree_control").write_text(text)
    found = cgroup.find(tmp_path, "0::/user/slice/app\n", Path.is_dir)
    assert found == Hierarchy(2, tmp_path / expected, tmp_path / expected)


@pytest.mark.parametrize("membership", ["", "0::/\n", "4:memory:/gone\n8:pids:/gone\n"])
def test_elsewhere_there_is_none(tmp_path: Path, membership: str) -> None:
    assert cgroup.find(tmp_path, membership) is None


MEMFD = """
import os
f = os.memfd_create("m")
for _ in range(900):
    os.write(f, bytes(1 << 20))
print("kept")
"""
TMPFS = """
for n in range(90):
    open(f"/dev/shm/{n}" if n % 2 else f"/tmp/{n}", "wb").write(bytes(2 << 20))
    x = bytes(4 << 20)
print("kept")
"""
SOCKETS = """
import socket
kept = []
while len(kept) < 2000:
    a, b = socket.socketpair()
    a.setblocking(False)
    kept += [a, b]
    try:
        while True:
            a.send(bytes(1 << 16))
    except BlockingIOError:
        pass
print("kept")
"""


@needs_group
@pytest.mark.parametrize("code", [MEMFD, TMPFS, SOCKETS], ids=["memfd", "tmpfs", "sockets"])
def test_memory_that_belongs_to_no_process_counts(
    bwrap: sandbox.Bubblewrap, numpy_environment: Environment, code: str
) -> None:
    limits = Limits(timeout=15, memory_mb=120, processes=20, disk_mb=8)
    done = run(bwrap, numpy_environment, code, limits=limits)
    assert "kept" not in done.stdout
    # The kernel ends it, or refuses: a full tmpfs is an error, and so are too many open files.
    assert done.ended == "memory" or "OSError" in done.stderr, done


def test_a_hierarchy_that_takes_no_process_is_none(tmp_path: Path) -> None:
    for controller in ("memory", "pids"):
        (tmp_path / controller).mkdir()
    (tmp_path / "memory" / f"labcoat-{os.getpid()}-probe").write_text("in the way")
    assert cgroup.find(tmp_path, "8:pids:/\n4:memory:/\n") is None


@needs_group
def test_groups_of_killed_controllers_are_swept() -> None:
    place = available()
    assert place is not None
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = cgroup.Group(place, 1 << 20, 5)
    gone = place.pids / f"labcoat-{dead.pid}-0"
    gone.mkdir()
    cgroup.sweep(place)
    assert not gone.exists()
    assert [p.name for p in place.pids.iterdir() if p.name.startswith(f"labcoat-{os.getpid()}-")]  # ours stays
    left.close()


@needs_group
def test_nothing_of_the_group_is_left(bwrap: sandbox.Bubblewrap, numpy_environment: Environment) -> None:
    run(bwrap, numpy_environment, "print(1)")
    place = available()
    assert place is not None
    assert [p.name for p in place.memory.iterdir() if p.name.startswith(f"labcoat-{os.getpid()}-")] == []


def test_many_small_files_are_a_full_disk_too(
    either: sandbox.Sandbox, numpy_environment: Environment, open_folder: Path
) -> None:
    open_folder.chmod(0o777)
    code = "import sys\nn = 0\nwhile True:\n    open(f'{sys.argv[1]}/{n}', 'w').close(); n += 1"
    bind = Bind(open_folder, "/out", writable=True)
    done = run(either, numpy_environment, code, bind, args=(either.path(bind),), limits=LIMITS)
    assert done.ended == "disk" and done.seconds < 10


def test_calls_that_reach_past_the_namespaces_are_denied(
    bwrap: sandbox.Bubblewrap, numpy_environment: Environment
) -> None:
    code = """
    import ctypes, os, socket
    libc = ctypes.CDLL(None, use_errno=True)
    def call(*args):
        return os.strerror(ctypes.get_errno()) if libc.syscall(*args) == -1 else "allowed"
    number = {"x86_64": (101, 250, 425, 29), "aarch64": (117, 219, 425, 194)}[os.uname().machine]
    for arguments in ((number[0], 16, 1, 0, 0), (number[1], 0, -3, 0), (number[2], 1, 0), (number[3], 0, 4096, 0o1600)):
        print(call(*arguments))
    for family in (40, socket.AF_PACKET):
        try:
            print(socket.socket(family, socket.SOCK_DGRAM))
        except OSError as error:
            print(error.strerror)
    print(socket.socket(socket.AF_UNIX).family.name, socket.socket(socket.AF_INET).family.name)
    try:
        print(os.listdir("/proc/1"))
    except OSError as error:
        print(error.strerror)
    """
    done = run(bwrap, numpy_environment, code)
    denied = "Operation not permitted"
    assert done.stdout.splitlines() == [*[denied] * 6, "AF_UNIX AF_INET", "[]"], done.stderr
