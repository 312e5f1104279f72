"""What holds a candidate back on this machine, found by trying: a small program attempts each thing in the sandbox.

The words of what is enforced are those that ``run.json`` gets; what was seen decides whether they are true here.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labcoat.bench import cgroup, command, environment, home, remedies, sandbox, scratch, seccomp
from labcoat.bench.attempts import Attempts, State, last
from labcoat.bench.command import Level, Sandbox
from labcoat.bench.home import Report
from labcoat.errors import CannotRunHere

ROOM = 2 << 30  # bytes free that an environment with a large library takes


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
    with own_home(report) as (place, trouble):
        reason = sandbox.probe()
        chosen: Sandbox = sandbox.Unsandboxed() if reason else sandbox.Bubblewrap()
        attempts = Attempts(chosen, place, environment.base_prefix(report))
        rows = [row(what, how, attempts, reason) for what, how in chosen.enforced().items()]
        rows += [home_row(trouble), python_row(attempts)]
    return Diagnosis(chosen.level, reason or "", rows, time.monotonic() - started)


@contextmanager
def own_home(report: Report) -> Iterator[tuple[Path, str]]:
    """A scratch folder in the home, and what speaks against the home; then the folder is in a passing one."""
    with ExitStack() as held:
        try:
            place = held.enter_context(closing(scratch.Scratch()))
            home.check_space(place.folder)
            environment.base_prefix(report)
        except CannotRunHere as error:
            trouble = str(error)
        else:
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


def row(what: str, how: str, attempts: Attempts, reason: str | None) -> Row:
    """One protection, tried."""
    try:
        state, seen = attempts.at(what)
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


def python_row(attempts: Attempts) -> Row:
    """The interpreter of which environments are made."""
    how = f"Python {platform.python_version()} at {attempts.base}"
    done = attempts.run("user")
    if done.exit != 0:
        return Row("python", "missing", how, f"it did not start: {last(done)}", remedies.STRANGE)
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        return Row("python", "missing", how, "it started, and lacks ensurepip", environment.NO_ENSUREPIP)
    return Row("python", "holds", how, "it started as a worker does, and has venv and ensurepip")
