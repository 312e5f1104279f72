"""What every adversary imports as ``adversary``; the checker puts it in front of a candidate's code.

It runs inside a worker, so it needs the standard library only and nothing of labcoat. The checker defines ``SETUP``.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import sys
import types
from functools import cache
from typing import Any, NamedTuple

SETUP: dict[str, Any] = globals().get("SETUP", {})
MARK = "labcoat-adversary"  # files and sockets that an adversary leaves have this name


class Array(NamedTuple):
    """A declared output of the first problem."""

    name: str
    descr: str
    """The first accepted dtype, as numpy's header spells it."""
    dtypes: list[str]
    shape: tuple[int, ...]


def _command() -> tuple[str, dict[str, str]]:
    """The phase that this process is, and the folders that its arguments name; nothing in a process of another kind."""
    with open("/proc/self/cmdline", "rb") as stream:
        given = stream.read().decode().split("\0")[:-1]
    for phase, patterns in SETUP["phases"].items():
        found = [re.fullmatch(*pair) for pair in zip(patterns, given[len(given) - len(patterns) :], strict=False)]
        if len(found) == len(patterns) and all(found):
            return phase, {name: path for match in found if match for name, path in match.groupdict().items()}
    return "", {}


PHASE, FOLDERS = _command() if SETUP else ("", {})
PLACE = FOLDERS.get("out") or FOLDERS.get("artefact", "")  # the folder that this phase may write
METRIC: str = SETUP.get("metric", "")
BEST: float = SETUP.get("best", 0.0)
OUTPUTS = [Array(name, descr, dtypes, tuple(shape)) for name, descr, dtypes, shape in SETUP.get("outputs", [])]
MEMORY: int = SETUP.get("memory", 0)  # bytes that this phase may use
DISK: int = SETUP.get("disk", 0)
PROCESSES: int = SETUP.get("processes", 0)
_acting = ""


def found(what: object) -> None:
    """Report something that must not be there or must not work."""
    _say(f"found {_acting}: {what}")


def npy(descr: str, shape: tuple[int, ...], data: bytes | None = None) -> bytes:
    """A ``.npy`` file; zeros unless ``data`` is given."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    if data is None:
        data = bytes(math.prod(shape) * int(re.sub(r"\D", "", descr)))
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def write(path: str, content: bytes) -> None:
    """Write a file."""
    with open(path, "wb") as stream:
        stream.write(content)


def leave(first: bytes | None = None) -> str:
    """Write every declared output, all zeros, or ``first`` in place of the first one; the path of that one."""
    for array in OUTPUTS:
        write(f"{PLACE}/{array.name}.npy", npy(array.descr, array.shape))
    path = f"{PLACE}/{OUTPUTS[0].name}.npy"
    if first is not None:
        write(path, first)
    return path


@cache
def files() -> list[tuple[str, int]]:
    """Path and size of every regular file that can be seen."""
    seen = []
    for folder, below, names in os.walk("/"):
        if folder == "/":
            below[:] = sorted(set(below) - {"proc", "sys"})
        for name in names:
            path = os.path.join(folder, name)
            try:
                state = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(state.st_mode):
                seen.append((path, state.st_size))
    return seen


@cache
def visible() -> dict[str, str]:
    """Hidden sets of files whose contents can all be read here, under any name: what they are, and where one lies."""
    wanted = SETUP["hidden"]
    sizes = {size for contents in wanted.values() for size, _ in contents}
    read: dict[tuple[int, str], str] = {}
    for path, size in files():
        if size in sizes:
            try:
                with open(path, "rb") as stream:
                    read[size, hashlib.file_digest(stream, "sha256").hexdigest()] = path
            except OSError:
                continue
    sets = {what: [read.get((size, sha)) for size, sha in contents] for what, contents in wanted.items()}
    return {what: paths[0] or "" for what, paths in sets.items() if paths and all(paths)}


def _say(text: str) -> None:
    os.write(2, f"{MARK} {text}\n".encode())


def _act() -> None:
    """Let the adversaries act; one that must be refused comes alone, and the candidate's own code never runs."""
    global _acting
    for name, source, phase in SETUP["adversaries"]:
        _acting = name
        if phase in ("", PHASE):
            _say(f"ran {name}")
            exec(compile(source, f"<adversary {name}>", "exec"), {"__name__": f"adversary.{name}"})
    if SETUP["alone"]:
        os._exit(0)


if SETUP and PHASE and "adversary" not in sys.modules:
    sys.modules["adversary"] = types.ModuleType("adversary")
    sys.modules["adversary"].__dict__.update(globals())
    _act()
