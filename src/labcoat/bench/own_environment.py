"""An environment of the user's own (a venv, conda, the system's Python), used where it lies and never changed.

A sandbox sees its prefix, the prefix of its base interpreter and what else is on its path, read-only and at their
real places: so scripts, links and editable installs hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from labcoat.bench import home, process
from labcoat.bench.command import Bind
from labcoat.errors import CannotRunHere, InputError
from labcoat.tree import sha256

ASK_TIMEOUT = 60.0
QUESTION = """import importlib.metadata, json, os, platform, site, sys
own = site.getuserbase() if site.ENABLE_USER_SITE and site.getusersitepackages() in sys.path else ""
print(json.dumps({
    "python": sys.executable,
    "prefix": sys.prefix,
    "prefixes": [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix],
    "path": [os.path.abspath(path) for path in sys.path if path],
    "user_base": own,
    "version": platform.python_version(),
    "installed": sorted({f"{d.metadata['Name']}=={d.version}" for d in importlib.metadata.distributions()}),
}))
"""
SYSTEM_PREFIXES = ("/", "/usr", "/usr/local")
"""They hold much besides Python: of these a sandbox sees programs and libraries only."""


@dataclass(frozen=True)
class OwnEnvironment:
    """What an interpreter says of itself."""

    python: str
    """Path of the interpreter, as it calls itself."""
    prefix: str
    prefixes: tuple[str, ...]
    """Its own prefix and those of the interpreter that it was made from."""
    path: tuple[str, ...]
    """Where it looks for modules."""
    user_base: str
    """Where packages of the user's own lie, if it looks there."""
    version: str
    lock: str
    """What is installed, as ``pip freeze`` says, sorted."""

    @cached_property
    def lock_hash(self) -> str:
        """Hash of what is installed and of the interpreter's version."""
        return sha256(f"{self.version}\n{self.lock}".encode())

    def binds(self, places: Sequence[Path]) -> list[Bind]:
        """What a command must see to use it, outer folders first.

        That the interpreter looks for modules there shows nothing in or around ``places`` (of the project, of which a
        trial has its own copy), and nothing around the user's home.
        """
        shown = [Path(part) for prefix in self.prefixes for path in spelled(prefix) for part in parts(path)]
        private = [Path(os.path.expanduser("~")), *places]
        for path in [*map(Path, self.path), *links(Path(self.python))]:
            around = any(other.is_relative_to(path) for other in private)
            inside = any(path.is_relative_to(place) for place in places)
            if path.exists() and not around and not inside and not any(path.is_relative_to(known) for known in shown):
                shown.append(path)
        distinct = sorted(dict.fromkeys(shown), key=lambda path: len(path.parts))
        return [Bind(path.resolve(), str(path)) for path in distinct]

    @property
    def variables(self) -> dict[str, str]:
        """Variables by which its programs are found, and packages of the user's own."""
        own = {"PYTHONUSERBASE": self.user_base} if self.user_base else {}
        return {"PATH": f"{os.path.dirname(self.python)}:/usr/bin:/bin"} | own


def find(path: Path) -> OwnEnvironment:
    """The environment at ``path``: its prefix, or its interpreter.

    Raises:
        InputError: there is no Python, or none that answers.
    """
    python = interpreter(path)
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | {"PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = process.run([str(python), "-c", QUESTION], env=env, timeout=ASK_TIMEOUT)
        said: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (CannotRunHere, ValueError, IndexError):
        raise InputError(
            f"{python}: does not answer as a Python of version 3.8 or later; name the environment with --python, or in "
            "task.toml as environment.path"
        ) from None
    return OwnEnvironment(
        said["python"], said["prefix"], tuple(said["prefixes"]), tuple(said["path"]), said["user_base"],
        said["version"], "".join(f"{line}\n" for line in said["installed"]),
    )  # fmt: skip


def interpreter(path: Path) -> Path:
    """The interpreter that ``path`` names or holds.

    Raises:
        InputError: there is none.
    """
    for candidate in (path, path / "bin/python3", path / "bin/python"):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.absolute()
    raise InputError(
        f"{path}: no Python there (no bin/python3); name a virtual environment, a conda environment or an interpreter "
        "with --python, or in task.toml as environment.path"
    )


def spelled(path: str) -> list[Path]:
    """A path as it is written and as it is without links: programs ask for both."""
    return list(dict.fromkeys([Path(path), Path(path).resolve()]))


def parts(prefix: Path) -> Iterator[Path]:
    """What a sandbox needs of a prefix: all of it, or of the system's own its programs and libraries."""
    if str(prefix) not in SYSTEM_PREFIXES:
        yield prefix
    elif str(prefix) == "/usr/local":  # of the others the sandbox has them anyway
        yield from (prefix / name for name in ("bin", "lib", "lib64") if (prefix / name).is_dir())


def links(path: Path) -> Iterator[Path]:
    """Every link on the way from ``path`` to the file that it stands for, that file included."""
    seen: set[Path] = set()
    while path not in seen:
        seen.add(path)
        yield path
        if path.is_symlink():
            path = Path(os.path.normpath(path.parent / os.readlink(path)))


def check_reachable(path: Path) -> None:
    """Raise CannotRunHere where, as root, the unprivileged user who runs commands cannot enter ``path``."""
    if not home.is_root():
        return
    folder = path if path.is_dir() else path.parent
    if closed := home.closed_to_others(folder):
        raise CannotRunHere(
            f"{closed}: closed to other users, but as root labcoat runs commands as an unprivileged user, who must "
            f"read {path}. `chmod o+x {closed}` lets others pass and not list; or run labcoat as the user whose files "
            "these are"
        )
