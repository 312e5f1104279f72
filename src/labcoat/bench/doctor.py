"""What holds a candidate back on this machine, found by trying: a small program attempts each thing in the sandbox.

The words of what is enforced are those that ``run.json`` gets; what was seen decides whether they are true here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from labcoat.bench import cgroup, command, environment, gpus, home, probe, remedies, sandbox, scratch, seccomp
from labcoat.bench.command import Bind, Command, Level, Limits, Sandbox
from labcoat.bench.home import Report
from labcoat.bench.process import Finished
from labcoat.errors import CannotRunHere

State = Literal["holds", "weaker", "missing"]
Seen = tuple[State, str]

MEMORY, PROCESSES, DISK, TIME, LOGS = 96, 12, 4, 0.4, 4  # limits that are reached soon: MiB, a number, MiB, s, MiB
SPARE = 10.0  # seconds for what must end by itself
ROOM = 2 << 30  # bytes free that an environment with a large library takes
SHARE = 1.5  # processors that one may look like, on a busy machine


@dataclass(frozen=True)
class Row:
    """One protection."""

    what: str
    state: State
    how: str
    """By what it is enforced, as ``run.json`` says it."""
    seen: str
    """What was tried, and what came of it."""
    remedy: str = ""
    """A sentence with the command that makes it hold in full; empty where nothing is to be done."""


@dataclass(frozen=True)
class Diagnosis:
    """What was found."""

    sandbox: Level
    note: str
    """Why there is no sandbox; empty where there is one."""
    rows: list[Row]
    seconds: float

    @property
    def lacking(self) -> list[str]:
        """What ``labcoat run`` needs and is not here."""
        needed = [row.what for row in self.rows if row.what in ("home", "python") and row.state == "missing"]
        return needed if self.sandbox == "bwrap" else ["sandbox", *needed]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "ready": not self.lacking}


def examine(report: Report = lambda text: None) -> Diagnosis:
    """Try everything, within a few seconds."""
    started = time.monotonic()
    with own_home() as (place, trouble):
        reason = sandbox.probe()
        chosen: Sandbox = sandbox.Unsandboxed() if reason else sandbox.Bubblewrap()
        probes = Probes(chosen, place, environment.base_prefix(report))
        rows = [row(what, how, probes, reason) for what, how in chosen.enforced().items()]
        rows += [home_row(trouble), python_row(probes)]
    return Diagnosis(chosen.level, reason or "", rows, time.monotonic() - started)


@contextmanager
def own_home() -> Iterator[tuple[Path, str]]:
    """A scratch folder in the home, and what speaks against the home; then the folder is in a passing one."""
    try:
        place = scratch.Scratch()
    except CannotRunHere as error:
        trouble = str(error)
    else:
        with closing(place):
            yield place.folder, ""
        return
    before = os.environ.get("LABCOAT_HOME")
    passing = Path(tempfile.mkdtemp(prefix="labcoat-doctor-"))
    passing.chmod(0o755)
    os.environ["LABCOAT_HOME"] = str(passing)
    try:
        yield home.folder("work"), trouble
    finally:
        os.environ.pop("LABCOAT_HOME")
        os.environ.update({} if before is None else {"LABCOAT_HOME": before})
        scratch.remove(passing)


def row(what: str, how: str, probes: Probes, reason: str | None) -> Row:
    """One protection, tried."""
    try:
        state, seen = probes.try_(what)
    except CannotRunHere as error:
        state, seen = "missing", str(error)
    return Row(what, state, how, seen, "" if state == "holds" else advice(what, reason))


def advice(what: str, reason: str | None) -> str:
    """What helps against a protection that does not hold in full; ``reason`` is what keeps the sandbox down."""
    if what == "memory" and command.available() is None:
        systemd = shutil.which("systemd-run") and Path(f"/run/user/{os.getuid()}/systemd").exists()
        version = 2 if (cgroup.ROOT / "cgroup.controllers").exists() else 1
        return remedies.no_groups(version, home.is_root(), bool(systemd))
    if reason:
        return reason
    if what in ("threads", "calls") and not seccomp.denied(os.uname().machine, counted=True):
        return remedies.NO_FILTER
    return remedies.NO_DRIVER if what == "gpu" else remedies.STRANGE


def home_row(trouble: str) -> Row:
    """Where labcoat keeps what it builds; ``trouble`` is what speaks against it."""
    if trouble:
        return Row("home", "missing", "LABCOAT_HOME", "a folder was to be made and locked in it", trouble)
    place = home.home()
    free = home.free(place)
    seen = f"a folder was made and locked in it; {free / (1 << 30):.1f} GiB are free"
    few = f"{place}: an environment may take {ROOM >> 30} GiB; {home.REMEDY}"
    return Row("home", "holds" if free >= ROOM else "weaker", str(place), seen, "" if free >= ROOM else few)


def python_row(probes: Probes) -> Row:
    """The interpreter of which environments are made."""
    how = f"Python {platform.python_version()} at {probes.base}"
    done = probes.run("user")
    if done.exit != 0:
        return Row("python", "missing", how, f"it did not start: {last(done)}", remedies.STRANGE)
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        return Row("python", "missing", how, "it started, and lacks ensurepip", environment.NO_ENSUREPIP)
    return Row("python", "holds", how, "it started as a worker does, and has venv and ensurepip")


class Probes:
    """Runs the attempts, and says what each shows."""

    def __init__(self, chosen: Sandbox, folder: Path, base: Path) -> None:
        """``folder`` is scratch, ``base`` the interpreter's prefix."""
        self.sandbox, self.folder, self.base = chosen, folder, base

    def try_(self, what: str) -> Seen:
        """Try what a protection must keep a program from.

        Raises:
            CannotRunHere: the attempt itself could not be made.
        """
        found: Callable[[], Seen] = getattr(self, what)
        return found()

    def run(self, name: str, *given: str, out: bool = False, **limits: Any) -> Finished:
        """One attempt, within limits that are wide but for those that are given."""
        at, folder = self.sandbox.path, self.folder / "out"
        binds = []
        if out:
            scratch.own(folder, command.user_of("worker"), 0o700)
            binds = [Bind(folder, "/out", writable=True)]
        library = environment.shared_objects(self.base)
        python = f"{at(Bind(self.base / 'bin', '/python/bin'))}/python{environment.VERSION}"
        argv = [python, "-I", "-S", "-c", Path(probe.__file__).read_text(), name, *map(at, binds), *given]
        env = command.variables(1) | ({"LD_LIBRARY_PATH": at(library)} if library else {})
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
