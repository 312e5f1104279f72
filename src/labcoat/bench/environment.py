"""Python environments of tasks: a venv per list of requirements, built once, shared by all tasks with that list.

Layout: ``envs/<key>/env`` is the venv, ``envs/<key>/python`` a link to the base interpreter's prefix. A sandbox sees
them as ``/env`` and ``/python``; the venv's link to the interpreter is relative and holds in both places.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from labcoat.bench import home, process, scratch
from labcoat.bench.command import Bind
from labcoat.bench.home import Report
from labcoat.bench.process import Finished
from labcoat.errors import CannotRunHere, InputError
from labcoat.tree import sha256

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
NOT_COPIED = ["test", "tests", "idlelib", "turtledemo", "lib2to3", "share", "*.a"]
INSTALL_TIMEOUT = 3600.0
OURS = ("PYTHON", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "__PYVENV")
PINNED = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w.,\s-]+\])?\s*==\s*[A-Za-z0-9][\w.!+-]*(\s*;.+)?", re.ASCII)
NO_NETWORK = ("Retrying (", "Max retries exceeded", "Could not fetch URL", "HTTP error", "timed out", "ConnectionError")
NO_ENSUREPIP = f"`python -m venv` needs ensurepip, which this Python lacks: `sudo apt-get install python{VERSION}-venv`"
NO_SPACE = ("No space left on device", "Disk quota exceeded")


@dataclass(frozen=True)
class Environment:
    """A complete environment."""

    folder: Path
    lock: str
    """What is installed, as ``pip freeze`` says, sorted."""

    @cached_property
    def lock_hash(self) -> str:
        """Hash of what is installed and of the interpreter's version."""
        return sha256(f"{platform.python_version()}\n{self.lock}".encode())

    @cached_property
    def binds(self) -> list[Bind]:
        """What a command must see to use it."""
        venv = [Bind(self.folder / "env", "/env"), Bind(self.folder / "inside.cfg", "/env/pyvenv.cfg")]
        return [*base_binds((self.folder / "python").resolve()), *venv]

    def interpreter(self, path: Callable[[Bind], str]) -> str:
        """The interpreter where ``path`` (of a sandbox) places the environment."""
        return f"{path(Bind(self.folder / 'env', '/env'))}/bin/python"

    def variables(self, path: Callable[[Bind], str]) -> dict[str, str]:
        """Variables without which the interpreter does not start."""
        return {"LD_LIBRARY_PATH": path(self._shared_objects)} if self._shared_objects else {}

    @cached_property
    def _shared_objects(self) -> Bind | None:
        return shared_objects((self.folder / "python").resolve())


def base_binds(base: Path) -> list[Bind]:
    """What a command must see of the interpreter at ``base``. Its packages are hidden: they may bundle data."""
    empty = home.make(home.folder("etc") / "empty")
    parts = [Bind(base / name, f"/python/{name}") for name in ("bin", "lib", "lib64") if (base / name).is_dir()]
    hidden = [*base.glob("lib*/python*/site-packages"), *base.glob("lib*/python*/dist-packages")]
    return [*parts, *(Bind(empty, f"/python/{path.relative_to(base)}") for path in hidden)]


def shared_objects(base: Path) -> Bind | None:
    """Where the shared library of the interpreter at ``base`` lies, if it has one outside the system's places."""
    shared = base != Path("/usr") and any((base / "lib").glob("libpython*.so*"))
    return Bind(base / "lib", "/python/lib") if shared else None


def outside(bind: Bind) -> str:
    """Where a bind lies outside of every sandbox."""
    return str(bind.host)


def prepare(requires: Sequence[str], report: Report, field: str = "environment.requires") -> Environment:
    """The environment with ``requires``, from ``field`` of the manifest, installed; built if it is not there yet.

    Raises:
        InputError: a requirement is not pinned.
        CannotRunHere: pip or venv failed, with the last lines and what to do.
    """
    check_pinned(requires, field)
    wanted = sorted(requires)
    key = sha256("\n".join([platform.python_version(), sysconfig.get_platform(), sys.base_prefix, *wanted]).encode())[
        :16
    ]
    envs = home.folder("envs")
    folder, stamp = envs / key, envs / key / "complete"
    if not stamp.exists():
        with home.locked(envs / f"{key}.lock", report, "it builds the same environment") as lock:
            if not stamp.exists():  # the other one may have finished it
                scratch.remove(folder)
                with home.named(folder), building(folder):
                    _build(folder, wanted, field, report, lock)
    return Environment(folder, stamp.read_text())


def check_pinned(requires: Sequence[str], field: str) -> None:
    """Raise InputError unless each requirement is a name and one version: all else differs from day to day."""
    if wrong := [requirement for requirement in requires if not PINNED.fullmatch(requirement)]:
        raise InputError(f"task.toml: {field}: {', '.join(map(repr, wrong))}: not pinned; write name==version")


@contextmanager
def building(folder: Path) -> Iterator[None]:
    """Build ``folder`` whole or not at all: what a failure left would keep the disk full.

    A full disk is told as such, whatever the program that met it said.
    """
    try:
        yield
    except BaseException as error:
        full = isinstance(error, Exception) and no_space(str(error), home.free(folder.parent))
        scratch.remove(folder)
        if full:
            enough = f"{home.free(folder.parent) >> 20} MiB are not enough"
            raise CannotRunHere(f"{folder}: no space left ({enough}); {home.REMEDY}") from error
        raise


def no_space(said: str, free: int) -> bool:
    """Whether a full disk is behind a failure: it is full now, or was until the program removed its own files."""
    return free < 1 << 20 or any(words in said for words in NO_SPACE)


def ours() -> dict[str, str]:
    """Our own environment for pip: the user's index and proxies pass, what points at another Python does not.

    Keys of models do not pass either: a package that is installed may run a program of its own.
    """
    kept = {name: value for name, value in os.environ.items() if not (name.startswith(OURS) or name.endswith("_KEY"))}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_ROOT_USER_ACTION": "ignore"}


def _build(folder: Path, requires: list[str], field: str, report: Report, lock: int) -> None:
    home.make(folder)
    base = base_prefix(report)
    (folder / "python").symlink_to(base)
    report(f"making an environment with {len(requires)} requirement(s)")
    environment, temporary = Environment(folder, ""), home.make(folder / "tmp")
    env = ours() | environment.variables(outside) | {"TMPDIR": str(temporary)}
    # In two steps: venv hides what ensurepip says, and so why it failed.
    venv = [str(folder / "python/bin" / f"python{VERSION}"), "-m", "venv", "--without-pip", str(folder / "env")]
    made = process.run(venv, env=env, timeout=INSTALL_TIMEOUT, pass_fds=[lock])
    if made.exit != 0:
        raise failed("python -m venv", made)
    _relink(folder)
    ensurepip = [environment.interpreter(outside), "-m", "ensurepip", "--upgrade", "--default-pip"]
    made = process.run(ensurepip, env=env, timeout=INSTALL_TIMEOUT, pass_fds=[lock])
    if "No module named ensurepip" in made.stderr:
        raise CannotRunHere(f"{base}: {NO_ENSUREPIP}")
    if made.exit != 0:
        raise failed("python -m ensurepip", made)
    if requires:
        pip(environment, ["install", "--progress-bar=off", *requires], field, temporary, lock, report)
    installed = pip(environment, ["freeze"], field, temporary, lock)
    scratch.remove(temporary)
    scratch.open_tree(folder / "env")
    stamp = folder / "complete"
    stamp.with_suffix(".new").write_text("\n".join(sorted(installed.split("\n"))).strip() + "\n")
    stamp.with_suffix(".new").rename(stamp)  # an empty one would be taken for an empty environment


def _relink(folder: Path) -> None:
    """Make the venv hold at both of its places: relative links, and a second ``pyvenv.cfg`` for the sandbox."""
    for name in ("python", "python3", f"python{VERSION}"):
        link = folder / "env/bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(f"../../python/bin/python{VERSION}")
    lines = (folder / "env/pyvenv.cfg").read_text().splitlines()
    kept = [line for line in lines if line.split("=")[0].strip() not in ("home", "executable", "command")]
    (folder / "inside.cfg").write_text("\n".join(["home = /python/bin", *kept]) + "\n")
    (folder / "inside.cfg").chmod(0o644)


def pip(
    environment: Environment,
    argv: Sequence[str],
    field: str,
    temporary: Path,
    lock: int,
    report: Report = lambda line: None,
) -> str:
    """Run the environment's pip and return what it printed.

    Args:
        environment: whose pip.
        argv: its arguments.
        field: where the manifest asks for these packages.
        temporary: a folder for its temporary files, beside what it makes: so one disk must have space, and what a
            killed pip leaves is removed with the rest.
        lock: the lock under which it works; it holds it as well.
        report: told of each package.

    Raises:
        CannotRunHere: it failed, with what it said about that and what to do.
    """
    done = process.run(
        [environment.interpreter(outside), "-m", "pip", *argv],
        env=ours() | environment.variables(outside) | {"TMPDIR": str(temporary)},
        timeout=INSTALL_TIMEOUT,
        pass_fds=[lock],
        echo=lambda line: report(line) if line.startswith(("Collecting", "Downloading", "Installing")) else None,
    )
    if done.exit != 0:
        raise failed(f"pip {argv[0]}", done, hints(done.stdout + done.stderr, field))
    return done.stdout


def failed(what: str, done: Finished, todo: Sequence[str] = ()) -> CannotRunHere:
    """What to say of a program that failed, and what to do."""
    ending = "ran too long" if done.ended == "timeout" else "failed"
    return CannotRunHere("\n".join([f"{what} {ending}: {reason(done.stderr.strip() or done.stdout)}", *todo]))


def reason(said: str, more: int = 5) -> str:
    """Why pip failed, out of all that it said: its last error first, then the lines before it."""
    lines = [shorter(line) for line in said.splitlines() if line.strip() and not line.startswith("WARNING: Retrying")]
    full = [at for at, line in enumerate(lines) if any(words in line for words in NO_SPACE)]  # explains all the others
    errors = [at for at, line in enumerate(lines) if line.startswith("ERROR:") and not line.endswith(":")]
    if not lines:
        return "it said nothing"
    first = [len(lines) - 1, *errors, *full][-1]
    others = [line for at, line in enumerate(lines) if at != first]
    return "\n".join([lines[first].removeprefix("ERROR:").strip(), *others[-more:]])


def shorter(line: str, most: int = 300) -> str:
    """A line of pip's, of the versions that it lists only the last ones."""
    line = re.sub(r"from versions: (?:[^,)]+, )+((?:[^,)]+, ){2}[^,)]+\))", r"from versions: ..., \1", line)
    return line if len(line) <= most else f"{line[:most]} ..."


def hints(said: str, field: str) -> list[str]:
    """What to do, from what pip said; nothing where it can only be read."""
    index = "check package index and proxy: PIP_INDEX_URL, PIP_FIND_LINKS, pip.conf, HTTPS_PROXY"
    found = [f"the network failed: {index}"] if any(words in said for words in NO_NETWORK) else []
    if re.search(r"from versions: (?!none)", said):
        return [*found, f"the index has other versions only for Python {VERSION}: correct {field} in task.toml"]
    if "from versions: none" in said and not found:
        return [f"the index has no such package for Python {VERSION}: correct {field} in task.toml, or {index}"]
    if "ResolutionImpossible" in said:
        return [*found, f"these versions cannot be installed together: correct {field} in task.toml"]
    return found


def last(text: str, lines: int = 15) -> str:
    """The last lines of ``text``."""
    return "\n".join(text.strip().splitlines()[-lines:])


def base_prefix(report: Report) -> Path:
    """The prefix of our interpreter, copied once where the workers' user could not reach it."""
    base = Path(sys.base_prefix).resolve()
    if not home.is_root() or home.closed_to_others(base) is None:
        return base
    pythons = home.folder("pythons")
    target = pythons / f"{platform.python_version()}-{sha256(str(base).encode())[:8]}"
    with home.locked(pythons / f"{target.name}.lock", report, "it copies the same Python"), home.named(target):
        if not (target / "complete").exists():
            report(f"copying Python {platform.python_version()} to where workers can reach it")
            scratch.remove(target)
            with building(target):
                _copy(base, target)
                (target / "complete").touch()
    return target


def _copy(base: Path, target: Path) -> None:
    """Copy an interpreter with its standard library, and without the packages installed into it."""

    def passed_over(folder: str, names: list[str]) -> set[str]:
        packages = names if os.path.basename(folder) == "site-packages" else []
        return {*packages, *shutil.ignore_patterns(*NOT_COPIED)(folder, names)}

    shutil.copytree(base, target, symlinks=True, ignore=passed_over)
    scratch.open_tree(target)
