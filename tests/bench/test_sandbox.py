"""What a sandboxed command can see and do, what is said where there is no sandbox, and what holds without one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import pytest

from labcoat.bench import bubblewrap, command, home, processors, sandbox, unsandboxed
from labcoat.bench.command import Bind, Command, Limits, variables
from labcoat.bench.environment import Environment
from labcoat.bench.process import Finished
from labcoat.bench.remedies import remedy
from labcoat.bench.scratch import own
from labcoat.errors import CannotRunHere, InputError
from tests.bench.tiny import DAEMONS, alive

LIMITS = Limits(timeout=10, memory_mb=200, processes=20, disk_mb=1)


def run(
    where: sandbox.Sandbox,
    made: Environment,
    code: str,
    *binds: Bind,
    args: tuple[str, ...] = (),
    limits: Limits = LIMITS,
    cwd: str = "/",
) -> Finished:
    """Run Python code in a sandbox."""
    argv = [made.interpreter(where.path), "-c", textwrap.dedent(code), *args]
    env = variables(1, seed=5) | made.variables(where.path)
    return where.run(Command(argv, binds, env, limits, program=made.binds, cwd=cwd))


LOOK = """
import json, os, socket
def attempt(action):
    try:
        return action() or "done"
    except OSError as error:
        return error.strerror
def write(path):
    open(path, "w").close()
    return "written"
port = int(__import__("sys").argv[1])
places = ["/", "/ws", "/usr/bin", "/etc", "/env", "/python/lib", "/dev", "/tmp", "/dev/shm", "/proc"]
print(json.dumps({
    "env": dict(os.environ), "root": os.listdir("/"), "etc": os.listdir("/etc"), "usr": os.listdir("/usr"),
    "packages": attempt(lambda: os.listdir("/usr/lib/python3/dist-packages")),
    "dev": os.listdir("/dev"), "pids": [p for p in os.listdir("/proc") if p.isdigit()],
    "fds": os.listdir("/proc/self/fd"),
    "uid": [os.getuid(), os.geteuid(), os.getgid()], "host": socket.gethostname(),
    "local": attempt(lambda: socket.create_connection(("127.0.0.1", port), 1)),
    "net": attempt(lambda: socket.create_connection(("192.0.2.1", 80), 1)),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "writes": {p: attempt(lambda: write(p + "/x")) for p in places},
    "tmp": os.statvfs("/tmp").f_blocks * os.statvfs("/tmp").f_frsize,
}))
"""


def test_nothing_of_the_host_is_visible(
    bwrap: sandbox.Bubblewrap, numpy_environment: Environment, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        done = run(bwrap, numpy_environment, LOOK, Bind(open_folder, "/ws"), args=(port,), cwd="/ws")
    assert done.exit == 0, done.stderr
    seen = json.loads(done.stdout)
    allowed = {"PATH", "HOME", "LANG", "PWD", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "LD_LIBRARY_PATH"}
    allowed |= {"CUDA_VISIBLE_DEVICES"}
    assert set(seen["env"]) <= allowed | set(command.THREADS) | {"OPENBLAS_CORETYPE"}
    assert (
        seen["env"]["HOME"] == "/tmp" and seen["env"]["OMP_NUM_THREADS"] == "1" and seen["env"]["PYTHONHASHSEED"] == "5"
    )
    assert set(seen["root"]) <= {
        "bin",
        "dev",
        "env",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "proc",
        "python",
        "tmp",
        "usr",
        "ws",
    }
    assert set(seen["etc"]) <= {"group", "ld.so.cache", "ld.so.conf", "passwd"}
    assert set(seen["usr"]) <= {"bin", "lib", "lib32", "lib64", "libexec"}
    assert seen["packages"] in ("done", "No such file or directory")  # an empty folder, or none
    assert not {"sda", "vda", "kmsg", "mem", "kvm", "fuse"} & set(seen["dev"])
    assert len(seen["pids"]) <= 3 and len(seen["fds"]) == 4
    assert seen["uid"] == [1000, 1000, 1000] and seen["host"] == "labcoat"
    assert seen["interfaces"] == ["lo"]
    assert seen["local"] == "Connection refused" and seen["net"] == "Network is unreachable"
    writable = {path for path, result in seen["writes"].items() if result == "written"}
    assert writable == {"/tmp", "/dev/shm"}
    assert seen["tmp"] == LIMITS.memory_mb << 19


def test_packages_of_the_base_interpreter_are_hidden(bwrap: sandbox.Bubblewrap, numpy_environment: Environment) -> None:
    code = """
    import glob, sys
    print(sys.prefix, sys.base_prefix, sys.executable)
    print([p for folder in glob.glob("/python/lib*/python*/*-packages") for p in glob.glob(folder + "/*")])
    import numpy
    print(numpy.__file__)"""
    lines = run(bwrap, numpy_environment, code).stdout.splitlines()
    assert lines[0] == "/env /python /env/bin/python" and lines[1] == "[]"
    assert lines[2].startswith("/env/lib/")


def test_no_new_namespaces_and_no_privileges(bwrap: sandbox.Bubblewrap, numpy_environment: Environment) -> None:
    code = """
    import ctypes, os
    print(ctypes.CDLL(None, use_errno=True).unshare(0x10000000), ctypes.get_errno() != 0)
    print([line for line in open("/proc/self/status") if line.startswith(("CapEff", "NoNewPrivs"))])
    try: os.setuid(0)
    except OSError as error: print(error.strerror)"""
    out = run(bwrap, numpy_environment, code).stdout
    assert out.startswith("-1") and "CapEff:\\t0000000000000000" in out and "NoNewPrivs:\\t1" in out
    assert "Invalid argument" in out or "not permitted" in out


def test_limits_inside(bwrap: sandbox.Bubblewrap, numpy_environment: Environment) -> None:
    code = """
    import os, resource, time
    print(resource.getrlimit(resource.RLIMIT_CORE))
    try:
        open("/tmp/big", "wb").write(b"x" * (3 << 20))
    except OSError as error:
        print(error.strerror)
    started = 0
    try:
        for _ in range(100):
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
            started += 1
    except BlockingIOError:
        print("forks", 10 < started < 20)"""
    done = run(bwrap, numpy_environment, code)
    assert done.stdout == "(0, 0)\nFile too large\nforks True\n" and done.seconds < 5


def test_memory_and_time(either: sandbox.Sandbox, numpy_environment: Environment) -> None:
    hog = run(either, numpy_environment, "x = b'x' * (500 << 20); import time; time.sleep(60)")
    assert hog.ended == "memory" and hog.seconds < 8
    slow = run(either, numpy_environment, "import time; time.sleep(60)", limits=Limits(timeout=0.5, memory_mb=200))
    assert slow.ended == "timeout" and slow.exit is None


def test_nothing_outlives_the_command(either: sandbox.Sandbox, numpy_environment: Environment) -> None:
    marker = f"marker-{uuid.uuid4().hex}"
    done = run(either, numpy_environment, DAEMONS + "time.sleep(60)", args=(marker,), limits=Limits(0.8, 200))
    assert done.ended == "timeout" and done.stdout.count("daemon") == 2
    assert not alive(marker)
    run(either, numpy_environment, DAEMONS + "time.sleep(0.5)", args=(marker,))
    assert not alive(marker)


CONTROLLER = """
import sys
from pathlib import Path
from labcoat.bench import sandbox
from labcoat.bench.command import Command, Limits, variables
from labcoat.bench.environment import Environment
made = Environment(Path(sys.argv[1]), "")
where = sandbox.Bubblewrap()
argv = [made.interpreter(where.path), "-c", sys.argv[2], sys.argv[3]]
env = variables(1) | made.variables(where.path)
where.run(Command(argv, [], env, Limits(timeout=60, memory_mb=200), program=made.binds))
"""


def test_nothing_outlives_a_killed_controller(bwrap: sandbox.Bubblewrap, numpy_environment: Environment) -> None:
    marker = f"marker-{uuid.uuid4().hex}"
    argv = [sys.executable, "-c", CONTROLLER, str(numpy_environment.folder), DAEMONS + "time.sleep(60)", marker]
    with subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}) as controller:
        give_up = time.monotonic() + 60
        # the controller itself, bwrap twice, the command, two daemons
        while len(found := alive(marker)) < 6 and time.monotonic() < give_up:
            time.sleep(0.05)
        assert len(found) >= 6
        controller.send_signal(signal.SIGKILL)
    give_up = time.monotonic() + 2
    while alive(marker) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not alive(marker)


def test_a_sandbox_that_does_not_come_up_is_our_error(
    bwrap: sandbox.Bubblewrap, numpy_environment: Environment, open_folder: Path
) -> None:
    with pytest.raises(CannotRunHere, match="the sandbox did not come up: bwrap: Can't find source path"):
        run(bwrap, numpy_environment, "", Bind(open_folder / "missing", "/ws"))
    pretender = run(bwrap, numpy_environment, "import sys; print('bwrap: no', file=sys.stderr); sys.exit(1)")
    assert pretender.exit == 1


def test_without_a_sandbox_paths_are_real_but_not_shown(numpy_environment: Environment, open_folder: Path) -> None:
    (open_folder / "name.txt").write_text("x")
    code = "import os, sys; print(os.getcwd(), os.listdir('.'), file=sys.stderr); print(sorted(os.environ)); 1 / 0"
    done = run(sandbox.Unsandboxed(), numpy_environment, code, Bind(open_folder, "/ws"), cwd="/ws")
    assert done.stderr.startswith("/ws ['name.txt']") and "ZeroDivisionError" in done.stderr
    assert "PYTHONHASHSEED" in done.stdout and "LABCOAT_HOME" not in done.stdout


def test_without_a_sandbox_changes_are_found(numpy_environment: Environment, open_folder: Path) -> None:
    mine = own(open_folder / "ws", command.user_of("worker"), 0o755)
    (mine / "code.py").write_text("1")
    if (user := command.user_of("worker")) is not None:
        os.chown(mine / "code.py", user, user)
    where = sandbox.Unsandboxed()
    read = "import sys; open(sys.argv[1] + '/code.py').read()"
    write = "import sys, os; p = sys.argv[1] + '/code.py'; open(p, 'w').write('2'); os.utime(p, (0, 0))"
    add = "import sys; open(sys.argv[1] + '/other.py', 'w').write('2')"
    for code, ended in ((read, None), (write, "tampered"), (add, "tampered")):
        assert run(where, numpy_environment, code, Bind(mine, "/ws"), args=(str(mine),)).ended == ended
    done = run(where, numpy_environment, write, Bind(mine, "/ws", writable=True), args=(str(mine),))
    assert (done.ended, done.exit) == (None, 0)


def test_without_a_sandbox_all_that_is_shared_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    top = Path("/h")
    binds = [Bind(top / "work/b/test/0/inputs", "/inputs"), Bind(top / "work/b/out", "/out", writable=True)]
    binds += [Bind(top / "data/d/train", "/train"), Bind(Path("/x"), "/ws")]
    program = [Bind(top / "envs/e/env", "/env"), Bind(Path("/usr/lib"), "/python/lib"), Bind(top / "etc/empty", "/e")]
    request = Command(["x"], binds, {}, LIMITS, program)
    assert unsandboxed.read_only(request) == [top / "work/b/test", top / "data/d/train", Path("/x")]
    monkeypatch.setattr(home, "is_root", lambda: False)
    stamps = {top / "data/d": top / "data/d/fingerprint", top / "envs/e": top / "envs/e/complete"}
    assert unsandboxed.shared(request, top) == stamps
    monkeypatch.setattr(home, "is_root", lambda: True)
    assert unsandboxed.shared(request, top) == {}  # root's own, and a worker is somebody else


@pytest.mark.parametrize(
    ("stderr", "sysctls", "expected"),
    [
        (
            "bwrap: setting up uid map: Permission denied",
            {"kernel.apparmor_restrict_unprivileged_userns": "1"},
            "AppArmor",
        ),
        ("bwrap: loopback: Failed RTM_NEWADDR", {"kernel.apparmor_restrict_unprivileged_userns": "1"}, "AppArmor"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", {}, "systempaths=unconfined"),
        ("bwrap: Creating new namespace failed", {"user.max_user_namespaces": "0"}, "user.max_user_namespaces=15000"),
        ("bwrap: No permissions to create new namespace", {"kernel.unprivileged_userns_clone": "0"}, "userns_clone=1"),
        ("bwrap: No permissions to create new namespace", {}, "seccomp=unconfined"),
        ("bwrap: Unknown option --disable-userns", {}, "older than 0.8.0"),
        ("bwrap: Can't find source path /x", {}, "bwrap: Can't find source path /x"),
        ("", {}, "bwrap said nothing"),
    ],
)
def test_remedies(stderr: str, sysctls: dict[str, str], expected: str) -> None:
    found = remedy(stderr, sysctls)
    assert expected in found and "\n" not in found


def test_probe_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "sudo apt-get install bubblewrap" in str(sandbox.probe())
    with pytest.raises(CannotRunHere, match="sudo apt-get install bubblewrap"):
        sandbox.choose(None, constants_only=False)
    with pytest.raises(CannotRunHere, match=r"^--sandbox bwrap: "):
        sandbox.choose("bwrap", constants_only=True)
    assert sandbox.choose(None, constants_only=True).level == "none"
    assert sandbox.choose("none", constants_only=False).level == "none"
    monkeypatch.setattr(bubblewrap, "PRLIMIT", "/nowhere/prlimit")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    assert "util-linux" in str(sandbox.probe())


def test_choose(bwrap: sandbox.Bubblewrap) -> None:
    assert sandbox.choose(None, constants_only=True).level == "bwrap"
    enforced = sandbox.facts(sandbox.choose("bwrap", constants_only=False))["enforced"]
    assert enforced["network"] == "own namespace, nothing but a loopback in it"
    with pytest.raises(InputError, match="bwrap or none"):
        sandbox.choose("docker", constants_only=False)  # type: ignore[arg-type]


def test_only_what_arithmetic_needs_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    monkeypatch.setattr(processors, "usable", lambda: [0, 1, 2, 3])
    found = variables(cpus=3, seed=2**32 + 1)
    assert (
        found["OPENBLAS_CORETYPE"] == "Haswell" and found["OMP_NUM_THREADS"] == "3" and found["PYTHONHASHSEED"] == "1"
    )
    assert variables(cpus=64)["OMP_NUM_THREADS"] == "4"  # no more threads than there are processors for them
