"""What ``predict`` left, taken as hostile bytes: only what was declared, and only if it is what was declared."""

from __future__ import annotations

import io
import math
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from labcoat.errors import InputError
from labcoat.manifest import Output

LONGEST_HEADER = 256  # bytes; numpy writes 128

# Exactly what every writer of simple arrays writes. numpy's own reader takes much more and parses it as Python source,
# so a hostile header could surprise it.
AXIS = rb"(?:0|[1-9][0-9]{0,17})"
HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"\{'descr': '(?P<dtype>[<>|=][a-zA-Z][0-9]{1,5})', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>|" + AXIS + rb",|" + AXIS + rb"(?:, " + AXIS + rb"){1,7})\), \} *\n",
    re.DOTALL,
)


class BadOutput(Exception):
    """What was left is not what the task asks for."""


class Tampered(Exception):
    """What was left is no plain file: a link, a pipe, a device."""


def collect(folder: Path, outputs: Sequence[Output], dims: Mapping[str, int]) -> dict[str, bytes]:
    """The declared arrays in ``folder``, as the bytes of their ``.npy`` files, checked.

    Args:
        folder: what the process could write. No process may be alive that can still write there.
        outputs: the arrays that the task declares.
        dims: lengths of the named axes in this problem.

    Raises:
        BadOutput: something is missing, not declared, of another dtype or shape, or not finite.
        Tampered: an entry is a link or a special file.
    """
    wanted = {f"{output.name}.npy": output for output in outputs}
    handle = open_folder(folder)
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                if entry.name not in wanted:
                    raise BadOutput(
                        f"/out holds {entry.name[:100]!r}; the task asks for {', '.join(wanted)} and nothing else"
                    )
        return {name: checked(read(handle, name, most(out, dims)), out, dims) for name, out in wanted.items()}
    finally:
        os.close(handle)


def open_folder(folder: Path) -> int:
    """A descriptor of a folder that a worker could write, even if it closed the folder to us."""
    if folder.is_symlink():
        raise Tampered(f"{folder.name} was replaced by a symbolic link")
    if not os.access(folder, os.R_OK | os.X_OK):
        os.chmod(folder, 0o700)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def shape_of(output: Output, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The exact shape in this problem."""
    missing = [axis for axis in output.shape if isinstance(axis, str) and axis not in dims]
    if missing:
        raise InputError(
            f"output {output.name}: problem.json names no {', '.join(map(str, missing))}; data.py must write it"
        )
    return tuple(axis if isinstance(axis, int) else dims[axis] for axis in output.shape)


def most(output: Output, dims: Mapping[str, int]) -> int:
    """Bytes that a valid file has at most."""
    return LONGEST_HEADER + math.prod(shape_of(output, dims)) * max(np.dtype(name).itemsize for name in output.dtype)


def read(folder: int, name: str, cap: int) -> bytes:
    """The regular file ``name`` in the open ``folder``, which no link may lead to, of at most ``cap`` bytes."""
    try:
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        raise BadOutput(f"/out/{name} is missing") from None
    if not stat.S_ISREG(before.st_mode):
        raise Tampered(f"/out/{name} is a {kind(before.st_mode)}, not a file")
    if before.st_nlink != 1:
        raise Tampered(f"/out/{name} has {before.st_nlink} hard links")
    if before.st_size > cap:
        raise BadOutput(f"/out/{name} has {before.st_size} bytes; at most {cap} are possible")
    if not before.st_mode & stat.S_IRUSR:  # an ordinary user's worker may have closed it to us
        os.chmod(name, 0o600, dir_fd=folder)
    # Nobody can swap it now; the flags hold even if somebody could.
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with open(handle, "rb") as stream:
        return stream.read(cap)


def kind(mode: int) -> str:
    """What a special file is called."""
    names = {
        stat.S_IFLNK: "symbolic link",
        stat.S_IFIFO: "named pipe",
        stat.S_IFSOCK: "socket",
        stat.S_IFDIR: "folder",
        stat.S_IFCHR: "device",
        stat.S_IFBLK: "device",
    }
    return names.get(stat.S_IFMT(mode), "special file")


def checked(content: bytes, output: Output, dims: Mapping[str, int]) -> bytes:
    """The array in ``content``, a ``.npy`` file of the declared dtype and shape with finite numbers, written anew."""
    name = f"/out/{output.name}.npy"
    header = HEADER.match(content, 0, LONGEST_HEADER)
    if header is None or int.from_bytes(header["length"], "little") != header.end() - 10:
        raise BadOutput(f"{name} is not an array as numpy.save writes it")
    try:
        dtype = np.dtype(header["dtype"].decode())
    except TypeError:
        raise BadOutput(f"{name} has dtype {header['dtype'].decode()}") from None
    shape = tuple(map(int, re.findall(rb"[0-9]+", header["shape"])))
    if dtype.hasobject or dtype.name not in output.dtype:
        raise BadOutput(f"{name} has dtype {dtype.name}; the task asks for {' or '.join(output.dtype)}")
    if shape != shape_of(output, dims):
        raise BadOutput(f"{name} has shape {shape}; the task asks for {shape_of(output, dims)}")
    size = len(content) - header.end()
    if size != math.prod(shape) * dtype.itemsize:
        raise BadOutput(f"{name} holds {size} bytes of data, which is not what its header says")
    array = np.frombuffer(content, dtype, offset=header.end())
    if dtype.kind in "fc" and not np.isfinite(array).all():
        raise BadOutput(f"{name} holds NaN or infinity ({int((~np.isfinite(array)).sum())} of {array.size} values)")
    if dtype.kind == "b":  # any byte but 0 means true, and shall be 1
        array = array.view(np.uint8) != 0
    # Written anew: what the scorer reads are our bytes.
    clean = io.BytesIO()
    np.save(clean, array.reshape(shape, order="F" if header["fortran"] == b"True" else "C"), allow_pickle=False)
    return clean.getvalue()
