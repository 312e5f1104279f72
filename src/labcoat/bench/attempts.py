"""Attempts at what a sandbox must hold back: each runs a small program in it, within limits that are reached soon.

What came of an attempt decides whether the protection holds; an attempt that could not be made shows nothing.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from labcoat.bench import command, environment, gpus, probe, scratch, seccomp
from labcoat.bench.command import Bind, Command, Limits, Sandbox
from labcoat.bench.process import Finished
from labcoat.errors import CannotRunHere

State = Literal["holds", "weaker", "missing"]
Seen = tuple[State, str]

MEMORY, PROCESSES, DISK, TIME, LOGS = 96, 12, 4, 0.4, 4  # limits: MiB, a number, MiB, seconds, MiB
SPARE = 10.0  # seconds for what must end by itself
SHARE = 1.5  # processors that one may look like, on a busy machine


class Attempts:
    """One method for each protection; it says whether that holds, and what was seen."""

    def __init__(self, chosen: Sandbox, folder: Path, base: Path) -> None:
        """``folder`` is scratch, ``base`` the interpreter's prefix."""
        self.sandbox, self.folder, self.base = chosen, folder, base

    def at(self, what: str) -> Seen:
        """Try what the protection of that name must keep a program from.

        Raises:
            CannotRunHere: the attempt itself could not be made.
        """
        found: Callable[[], Seen] = getattr(self, what)
        return found()

    def run(self, name: str, *given: str, out: bool = False, **limits: Any) -> Finished:
        """One attempt, within limits that are wide but for those that are given."""
        path, folder = self.sandbox.path, self.folder / "out"
        binds = []
        if out:
            scratch.own(folder, command.user_of("worker"), 0o700)
            binds = [Bind(folder, "/out", writable=True)]
        library = environment.shared_objects(self.base)
        python = f"{path(Bind(self.base / 'bin', '/python/bin'))}/python{environment.VERSION}"
        argv = [python, "-I", "-S", "-c", Path(probe.__file__).read_text(), name, *map(path, binds), *given]
        env = command.variables(1) | ({"LD_LIBRARY_PATH": path(library)} if library else {})
        wide = {"timeout": SPARE, "memory_mb": 512, "processes": 64, "disk_mb": 64}
        program = environment.base_binds(self.base)
        return self.sandbox.run(Command(argv, binds, env, Limits(**{**wide, **limits}), program))

    def answer(self, name: str, *given: str, **limits: Any) -> Any:
        """What an attempt that ends by itself says of it."""
        done = self.run(name, *given, **limits)
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise CannotRunHere(f"the attempt ended with {done.ended or done.exit}: {last(done)}") from None

    def files(self) -> Seen:
        """Read what lies beside."""
        outside = self.folder / "outside"
        outside.write_text("not for candidates")
        outside.chmod(0o644)
        said = self.answer("files", str(outside))
        return "holds" if said else "missing", f"reading a file of ours: {said or 'it could'}"

    def network(self) -> Seen:
        """Connect to this machine."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            said = self.answer("network", str(server.getsockname()[1]))
        return "holds" if said else "missing", f"connecting to a port of this machine: {said or 'it could'}"

    def memory(self) -> Seen:
        """Take more than there is."""
        done = self.run("memory", str(4 * MEMORY), memory_mb=MEMORY)
        counted: State = "holds" if command.available() else "weaker"
        return (
            counted if done.ended == "memory" else "missing",
            f"taking {4 * MEMORY} of {MEMORY} MiB: {outcome(done)}"
            + ("" if command.available() else "; a peak between two looks is not seen"),
        )

    def processes(self) -> Seen:
        """Start more than there may be."""
        started = self.answer("processes", str(4 * PROCESSES), processes=PROCESSES)
        held = started <= PROCESSES + command.OURS
        return "holds" if held else "missing", f"starting {4 * PROCESSES} with a limit of {PROCESSES}: {started} began"

    def disk(self) -> Seen:
        """Write too much, in one file and in many."""
        done = self.run("disk", str(2 * DISK), out=True, disk_mb=DISK)
        refused = "File too large" in done.stdout
        state: State = "holds" if refused and done.ended == "disk" else "weaker" if done.ended == "disk" else "missing"
        one = "refused" if refused else "not refused"
        return state, f"one file of {2 * DISK} MiB with a limit of {DISK}: {one}; many files: {outcome(done)}"

    def time(self) -> Seen:
        """Never end."""
        done = self.run("sleep", timeout=TIME)
        return "holds" if done.ended == "timeout" else "missing", f"sleeping on after {TIME:g} s: {outcome(done)}"

    def logs(self) -> Seen:
        """Print without end."""
        kept = len(self.run("logs", str(LOGS)).stdout)
        held = 0 < kept < LOGS << 18
        return "holds" if held else "missing", f"printing {LOGS} MiB: {kept / 1024:.0f} KiB were kept"

    def threads(self) -> Seen:
        """Compute on more processors than one."""
        found = self.answer("threads", cpus=1)
        pinned = found["given"] == 1 and found["share"] < SHARE
        seen = f"two processes computed at once with cpus = 1: they got {found['share']:.1f} processors"
        widened = found["said"] or "it could"
        state: State = "holds" if pinned and found["said"] else "weaker" if found["given"] == 1 else "missing"
        return state, f"{seen}; leaving that one: {widened}"

    def calls(self) -> Seen:
        """Make calls that the filter denies."""
        numbers = seccomp.denied(os.uname().machine, command.available() is not None)
        if not numbers:
            return "missing", "nothing: which calls would be refused is not known for this machine"
        through = self.answer("calls", *map(str, numbers.values()))
        names = [name for name, number in numbers.items() if number in through]
        said = f"not refused: {', '.join(names)}" if names else "all refused"
        return "missing" if names else "holds", f"{len(numbers)} calls: {said}"

    def tree(self) -> Seen:
        """Leave a process behind."""
        marker = f"labcoat-{uuid.uuid4().hex}"
        self.answer("tree", marker)
        left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if marker in readable(path)]
        seen = f"a process left behind in a session of its own: {'alive' if left else 'ended'}"
        return "missing" if left else "holds" if self.sandbox.level == "bwrap" else "weaker", seen

    def user(self) -> Seen:
        """See what it may."""
        found = self.answer("user")
        seen = f"user {found['uid']}, {'some' if found['capabilities'] else 'no'} capabilities, "
        seen += "programs can give it more" if found["more"] else "and no program can give it more"
        if found["uid"] == 0 or found["capabilities"]:
            return "missing", seen
        return "weaker" if found["more"] else "holds", seen

    def gpu(self) -> Seen:
        """See devices, and start CUDA on one that is leased."""
        here = [f"nvidia{gpu.number}" for gpu in gpus.here()]
        shown = self.answer("gpu")["devices"]
        if not here or shown:
            return "missing" if shown else "holds", f"here: {', '.join(here) or 'none'}; seen: {len(shown)}"
        found = self.answer("gpu", gpus=1)
        seen = f"here: {', '.join(here)}; with one leased: {', '.join(found['devices'])}, cuInit: {found['cuda']}"
        return "holds" if len(found["devices"]) == 1 and found["cuda"] == 0 else "weaker", seen


def outcome(done: Finished) -> str:
    """How an attempt ended."""
    if done.ended:
        return f"ended after {done.seconds:.2f} s"
    return "not ended" if done.exit == 0 else f"exit code {done.exit}: {last(done)}"


def last(done: Finished) -> str:
    """The last line that a program said."""
    return (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1][:200]


def readable(path: Path) -> str:
    """What a file of ``/proc`` holds, if it is still there."""
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""
