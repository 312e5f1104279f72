"""No sandbox: the real folders, a clean environment, and a look afterwards at what should not have changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from labcoat.bench import gpus, home, scratch
from labcoat.bench.command import FREE, Bind, Command, Level, Sandbox, child_of, completed, counted, limited, user_of
from labcoat.bench.process import Child, Finished
from labcoat.bench.streams import HeadTail, Sink
from labcoat.errors import CannotRunHere

STAMPS = {"envs": "complete", "data": "fingerprint"}  # without its stamp, a shared folder is built anew


class Unsandboxed(Sandbox):
    """No sandbox: a clean environment, a session of its own. For constants that we changed ourselves; always marked."""

    level: Level = "none"

    def __init__(self) -> None:
        """Nothing has been started yet."""
        self._shared: dict[Path, Path] = {}

    def path(self, bind: Bind) -> str:
        """The real path."""
        return str(bind.host)

    def enforced(self) -> dict[str, str]:
        """What holds a command back: little."""
        return {
            "files": "none: read-only folders are checked afterwards",
            "network": "open",
            **counted(nproc=False),
            "threads": FREE,
            "calls": "none",
            "tree": "own session, ended with all descendants, but not when labcoat is killed",
            "user": "unprivileged, dropped from root" if home.is_root() else "the user's own",
            "gpu": "CUDA_VISIBLE_DEVICES names those that a task has leased; a program can use others",
        }

    def start(self, command: Command, *, stdout: Sink, stderr: Sink, stdin: bool = False) -> Child:
        """Start ``command`` on the real folders.

        Raises:
            CannotRunHere: an earlier command changed what this one shares with it.
        """
        self._shared |= shared(command, home.home())
        for folder, stamp in self._shared.items():
            if not stamp.exists():
                raise CannotRunHere(f"{folder}: changed by an earlier command; start again, and it is built anew")
        argv = [*limited(command.limits, nproc=False), *command.argv]
        cwd = next((bind.host for bind in command.binds if bind.inside == command.cwd), Path(command.cwd))
        lease, leased = gpus.lease(command.limits.gpus, command.limits.gpu_memory_mb)
        env = {**command.env, **gpus.variables(leased)}
        return child_of(command, argv, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, lease=lease)

    def run(self, command: Command) -> Finished:
        """Run ``command``, check that what it may only read is unchanged, and show the fixed paths in its streams.

        Raises:
            CannotRunHere: an earlier command changed what this one shares with it.
        """
        kept = self._shared | shared(command, home.home())
        protected = [*kept, *read_only(command)]
        before = [signature(path) for path in protected]
        out, err = HeadTail(), HeadTail()
        try:
            done = completed(self.start(command, stdout=out, stderr=err), out, err, command.limits.timeout)
        finally:  # also when we are interrupted: nobody would look again
            changed = {path for path, was in zip(protected, before, strict=True) if signature(path) != was}
            for folder in changed & kept.keys():
                drop(kept[folder])
        if changed:
            done = replace(done, ended="tampered", exit=None)
        shown = [*command.program, *command.binds]
        said = (inside_paths(text, shown) for text in (done.stdout, done.stderr))
        return replace(done, stdout=next(said), stderr=next(said))


def read_only(command: Command) -> list[Path]:
    """What ``command`` may only read. Inputs lie beside their answers, so their whole split is looked at."""
    return [
        bind.host.parents[1] if bind.inside == "/inputs" else bind.host for bind in command.binds if not bind.writable
    ]


def shared(command: Command, top: Path) -> dict[Path, Path]:
    """Environments and data sets below ``top`` of which ``command`` sees a part, each with its stamp.

    Whole, as without a sandbox it can reach all of them, answers too. Nothing as root, where they are another user's.
    The interpreter's own library is not looked at: others may use it, and then it changes by itself.
    """
    if user_of(command.role) is not None:
        return {}
    found = {}
    for bind in [*command.program, *command.binds]:
        parts = bind.host.relative_to(top).parts if bind.host.is_relative_to(top) else ()
        if len(parts) > 1 and (stamp := STAMPS.get(parts[0])):
            found[top / parts[0] / parts[1]] = top / parts[0] / parts[1] / stamp
    return found


def drop(stamp: Path) -> None:
    """Remove a stamp, whatever was made of it and of its folder."""
    with contextlib.suppress(OSError):
        stamp.parent.chmod(0o755)
    scratch.remove(stamp)


def inside_paths(text: str, binds: Sequence[Bind]) -> str:
    """``text`` with real paths replaced by the fixed ones, longest first."""
    for bind in sorted(binds, key=lambda bind: -len(str(bind.host))):
        text = text.replace(str(bind.host), bind.inside)
    return text


def signature(path: Path) -> list[tuple[str, int, int, int]]:
    """Path, inode, size and time of change of everything below: the last one no program can set back."""
    found = []
    for folder, _, files in os.walk(path):
        for name in ["", *files]:
            state = os.lstat(os.path.join(folder, name))
            found.append((os.path.join(folder, name), state.st_ino, state.st_size, state.st_ctime_ns))
    return found
