"""Where labcoat keeps what it builds: environments, data, baselines and scratch.

As root, workers run as another user, so every folder on the way must let that user pass.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from labcoat.errors import CannotRunHere

Report = Callable[[str], None]

SALT_BYTES = 32
REMEDY = "free some space or set LABCOAT_HOME to another folder"
ELSEWHERE = "set LABCOAT_HOME to a folder that can be made and written to"
FULL = (errno.ENOSPC, errno.EDQUOT)


def is_root() -> bool:
    """Whether we run as root and therefore must drop privileges ourselves."""
    return os.geteuid() == 0


def home() -> Path:
    """The folder of everything that labcoat builds, created when missing.

    ``$LABCOAT_HOME``, else ``/var/cache/labcoat`` for root (root's home is closed to the workers' user),
    else ``$XDG_CACHE_HOME/labcoat`` or ``~/.cache/labcoat``.

    Raises:
        CannotRunHere: it cannot be made, or, as root, the workers' user cannot reach it.
    """
    own = Path(os.path.expanduser("~"))
    if chosen := os.environ.get("LABCOAT_HOME"):
        path = Path(chosen).absolute()
    elif is_root():
        path = Path("/var/cache/labcoat")
    elif cache := os.environ.get("XDG_CACHE_HOME"):
        path = Path(cache) / "labcoat"
    elif own.is_absolute():
        path = own / ".cache/labcoat"
    else:
        raise CannotRunHere("this user has no home folder: set LABCOAT_HOME to a folder for what labcoat builds")
    path = made(Path(os.path.realpath(path)))  # Path.resolve() raises where links go in a circle
    if is_root() and (closed := closed_to_others(path)):
        raise CannotRunHere(
            f"{closed}: closed to other users, but as root labcoat runs workers as an unprivileged user, who must "
            f"reach {path}; set LABCOAT_HOME to a folder that everyone may enter, or `chmod o+x {closed}`"
        )
    return path


def folder(name: str) -> Path:
    """A folder of that name in :func:`home`, created when missing."""
    return made(home() / name)


def made(path: Path) -> Path:
    """``path``, created when missing; whatever speaks against it, the user chose this place and can choose another."""
    try:
        return make(path)
    except OSError as error:
        raise trouble(path, error) from error


def salt() -> bytes:
    """This installation's secret, 32 random bytes made once: hidden instances are drawn from it and never published.

    Raises:
        CannotRunHere: its file cannot be written or read, or holds something else.
    """
    path = home() / "salt"
    if not path.exists():
        with locked(path.with_suffix(".lock"), lambda text: None, "it makes the salt"), named(path):
            if not path.exists():
                _make_secret(path)
    with named(path):
        found = path.read_bytes()
    if len(found) != SALT_BYTES:
        raise CannotRunHere(f"{path}: holds {len(found)} bytes, a salt has {SALT_BYTES}; restore or remove the file")
    return found


def _make_secret(path: Path) -> None:
    """Write random bytes to ``path``, for our eyes only, whole or not at all; we hold the lock."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)  # of one who was killed
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as stream:
        stream.write(secrets.token_bytes(SALT_BYTES))
        stream.flush()
        os.fsync(handle)  # or a power cut could leave the name without the bytes
    new.rename(path)


def make(path: Path) -> Path:
    """Create ``path`` and its parents, open to other users whatever the umask, and return it."""
    for part in [*reversed(path.parents), path]:
        if not part.exists():
            part.mkdir(exist_ok=True)
            part.chmod(0o755)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    return path


def closed_to_others(path: Path) -> Path | None:
    """The first folder on the way to ``path`` that other users may not enter."""
    return next((part for part in [*reversed(path.parents), path] if not part.stat().st_mode & 0o001), None)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Turn errors of the file system (full, read-only, not ours) into one that names the folder and the remedy."""
    try:
        yield
    except shutil.Error as error:
        raise CannotRunHere(f"{path}: {reason(error)}; {REMEDY}") from error
    except OSError as error:
        if error.errno in (*FULL, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ESTALE):
            raise trouble(path, error) from error
        raise


def trouble(path: Path, error: OSError) -> CannotRunHere:
    """What to say of an error of the file system at ``path``: what is wrong, where, and what helps against that."""
    if error.errno in FULL:
        return CannotRunHere(f"{path}: no space left; {REMEDY}")
    at = f" ({error.filename})" if error.filename not in (None, str(path)) else ""
    return CannotRunHere(f"{path}: {reason(error)}{at}; {ELSEWHERE}")


def reason(error: OSError) -> str:
    """What the system says; the error of a copied tree has no words of its own but those of each file."""
    return error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or str(error)


def check_space(path: Path, least: int = 1 << 20) -> None:
    """Raise CannotRunHere when the file system of ``path`` is full: then a failure is not the candidate's."""
    if not os.path.exists(path):
        return
    if free(path) < least:
        raise CannotRunHere(f"{path}: no space left; {REMEDY}")


def free(path: Path) -> int:
    """Bytes that we may still write to the file system of ``path``."""
    state = os.statvfs(path)
    return state.f_bavail * state.f_frsize


@contextmanager
def locked(path: Path, report: Report, waiting_for: str) -> Iterator[int]:
    """Hold the lock file ``path``; tells ``report`` when another process holds it.

    Yields:
        The lock's descriptor. A process that inherits it holds the lock until it ends as well: so what we started to
        build goes on alone if we are killed, and nobody else builds in the same place meanwhile.
    """
    with named(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another process: {waiting_for}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)
