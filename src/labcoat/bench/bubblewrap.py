"""The sandbox: bubblewrap in its allow-list form. What is not bound does not exist inside."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

from labcoat.bench import gpus, home, seccomp
from labcoat.bench.command import (
    FREE,
    PINNED,
    PRLIMIT,
    Bind,
    Command,
    Level,
    Limits,
    Sandbox,
    available,
    child_of,
    completed,
    counted,
    limited,
    variables,
)
from labcoat.bench.gpus import Gpu
from labcoat.bench.process import Child, Finished
from labcoat.bench.remedies import MISSING_BWRAP, MISSING_PRLIMIT, remedy
from labcoat.bench.streams import HeadTail, Sink
from labcoat.errors import CannotRunHere

INSIDE_USER = 1000
SYSTEM = ["/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec"]  # not share, local, include: data, ours
LOADER = ["/etc/ld.so.cache", "/etc/ld.so.conf"]
MASKED = ["/usr/lib/python3/dist-packages"]  # libraries that bundle data sets


class Bubblewrap(Sandbox):
    """Runs commands in a sandbox of their own; needs bubblewrap 0.8."""

    level: Level = "bwrap"

    def __init__(self) -> None:
        """Write the two files of ``/etc`` that we make up."""
        etc = home.folder("etc")
        self._empty = home.make(etc / "empty")
        self._etc = {"passwd": "worker:x:1000:1000::/tmp:/bin/sh\n", "group": "worker:x:1000:\n"}
        for name, text in self._etc.items():
            with home.named(etc):
                if not (etc / name).exists():
                    new = etc / f"{name}.{os.getpid()}"
                    new.write_text(text)
                    new.chmod(0o644)
                    new.rename(etc / name)
        self._folder = etc

    def path(self, bind: Bind) -> str:
        """The fixed path."""
        return bind.inside

    def enforced(self) -> dict[str, str]:
        """What holds a command back."""
        filtered = seccomp.program(os.uname().machine, counted=True)
        return {
            "files": "allow-list of mounts",
            "network": "own namespace, nothing but a loopback in it",
            **counted(nproc=True),
            "threads": PINNED if filtered else FREE,
            "calls": "seccomp filter" if filtered else "no filter for this machine",
            "tree": "own pid namespace, ended with all descendants, also when labcoat dies",
            "user": "unprivileged, dropped from root" if home.is_root() else "the user's own, in a user namespace",
            "gpu": "only devices that a task asks for and has leased are shown",
        }

    def start(self, command: Command, *, stdout: Sink, stderr: Sink, stdin: bool = False) -> Child:
        """Start ``command`` inside."""
        return self._start(command, stdout, stderr, stdin, [])

    def run(self, command: Command) -> Finished:
        """Run ``command``; a sandbox that fails to come up is our error and never a candidate's crash."""
        out, err = HeadTail(), HeadTail()
        status = os.memfd_create("status")  # bwrap writes an exit code there only if the command really started
        try:
            child = self._start(command, out, err, False, [status])
            finished = completed(child, out, err, command.limits.timeout)
            os.lseek(status, 0, os.SEEK_SET)
            started = b'"exit-code"' in os.read(status, 1 << 16)
        finally:
            os.close(status)
        if finished.ended is None and finished.exit is not None and finished.exit < 0:
            raise CannotRunHere(
                f"bwrap was killed by {signal.Signals(-finished.exit).name}; is this machine out of memory?"
            )
        if finished.ended is None and finished.exit != 0 and not started:
            raise CannotRunHere(f"the sandbox did not come up: {remedy(finished.stderr, sysctls())}")
        return finished

    def _start(self, command: Command, stdout: Sink, stderr: Sink, stdin: bool, status: list[int]) -> Child:
        filtered = seccomp.descriptor(counted=available() is not None)
        handed = [*status, *([] if filtered is None else [filtered])]
        argv = [shutil.which("bwrap") or "bwrap"]
        argv += [part for fd in status for part in ("--json-status-fd", str(fd))]
        argv += [] if filtered is None else ["--seccomp", str(filtered)]
        lease, leased = gpus.lease(command.limits.gpus, command.limits.gpu_memory_mb)
        argv += arguments(self._binds([*command.program, *command.binds]), command, leased)
        argv += [*limited(command.limits, nproc=True), *command.argv]
        try:
            return child_of(
                command, argv, env={}, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=handed, lease=lease
            )
        finally:
            if filtered is not None:
                os.close(filtered)

    def _binds(self, binds: Sequence[Bind]) -> list[Bind]:
        masked = [Bind(self._empty, path) for path in MASKED if os.path.isdir(path)]
        etc = [Bind(self._folder / name, f"/etc/{name}") for name in self._etc]
        return [*system(), *masked, *etc, *binds]

    def probe(self) -> str | None:
        """None if a sandbox of the full form works here, else a sentence with the remedy."""
        if shutil.which("bwrap") is None:
            return MISSING_BWRAP
        if not os.access(PRLIMIT, os.X_OK):
            return MISSING_PRLIMIT
        limits = Limits(timeout=20, memory_mb=256)
        try:
            found = self.run(Command(argv=["/usr/bin/true"], binds=[], env=variables(1), limits=limits))
        except CannotRunHere as error:
            return str(error)
        return None if found.exit == 0 else f"a sandboxed `true` ended with {found.exit or found.ended}: {found.stderr}"


def system() -> list[Bind]:
    """The parts of this system that a program needs to start."""
    return [Bind(Path(path), path) for path in [*SYSTEM, *LOADER] if os.path.exists(path)]


def arguments(binds: Iterable[Bind], command: Command, leased: Sequence[Gpu]) -> list[str]:
    """Arguments of bwrap up to the command, which sees ``binds`` and the ``leased`` GPUs."""
    half = command.limits.memory_mb << 19  # what lies in a tmpfs is memory too, but no process owns it
    shared = 2 * half if leased else half  # loaders of a program on a GPU hand their batches over there
    argv = ["--unshare-user", "--unshare-all", "--uid", str(INSIDE_USER), "--gid", str(INSIDE_USER), "--disable-userns"]
    argv += ["--die-with-parent", "--new-session", "--hostname", "labcoat", "--clearenv"]
    for name, value in {**command.env, **gpus.variables(leased)}.items():
        argv += ["--setenv", name, value]
    for link in ("bin", "lib", "lib32", "lib64"):
        if os.path.islink(f"/{link}"):
            argv += ["--symlink", os.readlink(f"/{link}"), f"/{link}"]
        elif os.path.isdir(f"/{link}"):
            argv += ["--ro-bind", f"/{link}", f"/{link}"]
    # The sandbox's init has the worker's own user: what it could do to it through /proc is hidden.
    argv += ["--proc", "/proc", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1", "--dev", "/dev"]
    argv += gpus.arguments(leased)
    argv += ["--size", str(half), "--tmpfs", "/tmp", "--size", str(shared), "--tmpfs", "/dev/shm"]
    for bind in binds:
        argv += ["--bind" if bind.writable else "--ro-bind", str(bind.host), bind.inside]
    # The root itself and /dev are tmpfs without a size: closed, or they would be a way to fill the memory.
    return [*argv, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", command.cwd, "--"]


def sysctls() -> dict[str, str]:
    """The kernel's switches that decide about user namespaces, where they exist."""
    names = [
        "kernel/apparmor_restrict_unprivileged_userns",
        "kernel/unprivileged_userns_clone",
        "user/max_user_namespaces",
    ]
    found = {name.replace("/", "."): Path("/proc/sys", name) for name in names}
    return {name: path.read_text().strip() for name, path in found.items() if path.exists()}
