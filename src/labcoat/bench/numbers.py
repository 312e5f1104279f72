"""Numbers that a project's own command reports: printed as ``NAME = number``, or as keys of a JSON file.

What it leaves are hostile bytes, as everywhere: no link is followed, and only plain files of modest size are read.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from labcoat.bench import streams
from labcoat.bench.outputs import BadOutput, open_folder

MOST = 1 << 20  # bytes of a file with numbers
TAIL = 15  # lines that are shown of what was printed
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+"  # also in groups of three, as Python's ``:,`` writes
NUMBER = rf"(?>[-+]?(?:{DIGITS})(?:[eE][-+]?\d+)?|[-+]?(?i:nan|inf(?:inity)?))(?![\w/]|,\d)"


def printed(name: str, stdout: str, stderr: str) -> float:
    """The last ``name = number`` or ``name: number`` on standard output; else on standard error, where loggers write.

    Where much was printed only its end counts: the last number may be among what was left out of the middle.

    Raises:
        BadOutput: there is none, with the end of what was printed.
    """
    pattern = re.compile(rf"(?<![\w./-]){re.escape(name)}[\"']?\s*[=:]\s*({NUMBER})")
    said = [COLOUR.sub("", streams.end_of(text)) for text in (stdout, stderr)]
    for text in said:
        if found := pattern.findall(text):
            return float(found[-1].replace(",", ""))
    lines = [line for text in said for line in text.splitlines() if line.strip()]
    end = "\n".join(lines[-TAIL:])
    raise BadOutput(
        f"no number {name}: looked for `{name} = NUMBER` or `{name}: NUMBER` in what the command printed "
        f"(of much only the last {streams.TAIL >> 10} KiB), "
        + (f"which ends with\n{end}" if end else "which is nothing")
    )


def written(name: str, workspace: Path, file: str) -> float:
    """The value of the key ``name`` in the JSON file ``file`` of the workspace.

    Raises:
        BadOutput: there is no such file, or no such number in it.
    """
    try:
        found = json.loads(content(workspace, file))
    except (ValueError, RecursionError):
        raise BadOutput(f"no number {name}: {file} is not JSON") from None
    value = found.get(name) if isinstance(found, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        keys = ", ".join(list(found)[:10]) if isinstance(found, dict) else "no object"
        raise BadOutput(f"no number {name}: looked for that key in {file}, which has: {keys or 'nothing'}"[:500])
    try:
        return float(value)
    except OverflowError:
        return math.inf


def content(workspace: Path, file: str) -> bytes:
    """The bytes of a plain file in a folder that a candidate wrote.

    Raises:
        BadOutput: it is missing, larger than it may be, or no plain file.
    """
    try:
        with parent_of(workspace, file) as (folder, name):
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with open(handle, "rb") as stream:
                state = os.fstat(handle)
                if not stat.S_ISREG(state.st_mode) or state.st_size > MOST:
                    raise BadOutput(f"{file} is no plain file of at most {MOST} bytes")
                return stream.read(MOST)
    except FileNotFoundError:
        raise BadOutput(f"{file} is missing: the command did not write it") from None
    except OSError as error:  # a link, a folder, closed to us
        raise BadOutput(f"{file} cannot be read as a plain file: {error.strerror}") from None


def forget(workspace: Path, file: str) -> None:
    """Remove an old report, so that what is read afterwards was written by the command that runs next."""
    with suppress(OSError), parent_of(workspace, file) as (folder, name):
        os.unlink(name, dir_fd=folder)


@contextmanager
def parent_of(workspace: Path, file: str) -> Iterator[tuple[int, str]]:
    """An open descriptor of the folder of ``file``, reached without following a link, and the file's name in it."""
    *folders, name = PurePosixPath(file).parts
    handle = open_folder(workspace)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle, name
    finally:
        os.close(handle)
