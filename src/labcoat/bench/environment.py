"""Python environments of tasks: a venv per list of requirements, built once, shared by all tasks with that list.

Layout: ``envs/<key>/env`` is the venv, ``envs/<key>/python`` a link to the base interpreter's prefix. A sandbox sees
them as ``/env`` and ``/python``; the venv's link to the interpreter is relative and holds in both places.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from labcoat.bench import home, process, scratch
from labcoat.bench.command import Bind
from labcoat.bench.home import Report
from labcoat.errors import CannotRunHere
from labcoat.tree import sha256

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
NOT_COPIED = ["test", "tests", "idlelib", "turtledemo", "lib2to3", "share", "*.a"]
INSTALL_TIMEOUT = 3600.0
OURS = ("PYTHON", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "__PYVENV")


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
        """What a command must see to use it. Packages of the base interpreter are hidden: they may bundle data."""
        base, empty = (self.folder / "python").resolve(), home.make(home.folder("etc") / "empty")
        parts = [Bind(base / name, f"/python/{name}") for name in ("bin", "lib", "lib64") if (base / name).is_dir()]
        hidden = [*base.glob("lib*/python*/site-packages"), *base.glob("lib*/python*/dist-packages")]
        masks = [Bind(empty, f"/python/{path.relative_to(base)}") for path in hidden]
        venv = [Bind(self.folder / "env", "/env"), Bind(self.folder / "inside.cfg", "/env/pyvenv.cfg")]
        return [*parts, *masks, *venv]

    def interpreter(self, path: Callable[[Bind], str]) -> str:
        """The interpreter where ``path`` (of a sandbox) places the environment."""
        return f"{path(Bind(self.folder / 'env', '/env'))}/bin/python"

    def variables(self, path: Callable[[Bind], str]) -> dict[str, str]:
        """Variables without which the interpreter does not start."""
        return {"LD_LIBRARY_PATH": path(self.library)} if self.library else {}

    @cached_property
    def library(self) -> Bind | None:
        """Where the interpreter's own shared library lies, if it has one outside the system's places."""
        base = (self.folder / "python").resolve()
        shared = base != Path("/usr") and any((base / "lib").glob("libpython*.so*"))
        return Bind(base / "lib", "/python/lib") if shared else None


def outside(bind: Bind) -> str:
    """Where a bind lies outside of every sandbox."""
    return str(bind.host)


def prepare(requires: Sequence[str], report: Report) -> Environment:
    """The environment with ``requires`` installed; built if it is not there yet.

    Raises:
        CannotRunHere: pip or venv failed, with the last lines and what to do.
    """
    wanted = sorted(requires)
    key = sha256("\n".join([platform.python_version(), sysconfig.get_platform(), sys.base_prefix, *wanted]).encode())[
        :16
    ]
    envs = home.folder("envs")
    folder, stamp = envs / key, envs / key / "complete"
    if not stamp.exists():
        with home.locked(envs / f"{key}.lock", report, "it builds the same environment"):
            if not stamp.exists():  # the other one may have finished it
                scratch.remove(folder)
                with home.named(folder):
                    _build(folder, wanted, report)
    return Environment(folder, stamp.read_text())


def ours() -> dict[str, str]:
    """Our own environment for pip: the user's index and proxies pass, what points at another Python does not."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_ROOT_USER_ACTION": "ignore"}


def _build(folder: Path, requires: list[str], report: Report) -> None:
    home.make(folder)
    base = base_prefix(report)
    (folder / "python").symlink_to(base)
    report(f"making an environment with {len(requires)} requirement(s)")
    interpreter = folder / "python/bin" / f"python{VERSION}"
    library = {"LD_LIBRARY_PATH": str(base / "lib")} if base != Path("/usr") else {}
    made = process.run(
        [str(interpreter), "-m", "venv", str(folder / "env")], env=ours() | library, timeout=INSTALL_TIMEOUT
    )
    if made.exit != 0:
        text = made.stdout + made.stderr
        if "ensurepip" in text:
            raise CannotRunHere(
                f"{base}: `python -m venv` needs ensurepip, which this Python lacks: "
                f"`sudo apt-get install python{VERSION}-venv`"
            )
        raise CannotRunHere(f"`python -m venv {folder / 'env'}` failed:\n{last(text)}")
    _relink(folder)
    environment = Environment(folder, "")
    if requires:
        pip(environment, ["install", "--progress-bar=off", *requires], report)
    lock = pip(environment, ["freeze"], lambda line: None)
    scratch.open_tree(folder / "env")
    (folder / "complete").write_text("\n".join(sorted(lock.split("\n"))).strip() + "\n")


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


def pip(environment: Environment, argv: Sequence[str], report: Report) -> str:
    """Run the environment's pip and return what it printed.

    Raises:
        CannotRunHere: it failed, with its last lines.
    """
    done = process.run(
        [environment.interpreter(outside), "-m", "pip", *argv],
        env=ours() | environment.variables(outside),
        timeout=INSTALL_TIMEOUT,
        echo=lambda line: report(line) if line.startswith(("Collecting", "Downloading", "Installing")) else None,
    )
    if done.exit != 0:
        raise CannotRunHere(
            f"pip {argv[0]} failed (check package index and proxy: PIP_INDEX_URL, PIP_FIND_LINKS, pip.conf):\n"
            + last(done.stdout + done.stderr)
        )
    return done.stdout


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
