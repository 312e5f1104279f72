"""No sandbox: the real folders, a clean environment, and a look afterwards at what should not have changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from labcoat.bench import home
from labcoat.bench.command import Bind, Command, Level, Sandbox, completed, counted, group_for, limited, user_of
from labcoat.bench.process import Child, Finished
from labcoat.bench.streams import HeadTail, Sink


class Unsandboxed(Sandbox):
    """No sandbox: a clean environment, a session of its own. For constants that we changed ourselves; always marked."""

    level: Level = "none"

    def path(self, bind: Bind) -> str:
        """The real path."""
        return str(bind.host)

    def enforced(self) -> dict[str, str]:
        """What holds a command back: little."""
        return {
            "files": "none: read-only folders are checked afterwards",
            "network": "open",
            **counted(),
            "tree": "own session, ended with all descendants, but not when labcoat is killed",
            "user": "unprivileged, dropped from root" if home.is_root() else "the user's own",
        }

    def start(self, command: Command, *, stdout: Sink, stderr: Sink, stdin: bool = False) -> Child:
        """Start ``command`` on the real folders."""
        return Child(
            [*limited(command.limits, nproc=False), *command.argv],
            env=command.env,
            cwd=next((bind.host for bind in command.binds if bind.inside == command.cwd), Path(command.cwd)),
            memory_mb=command.limits.memory_mb,
            group=group_for(command.limits),
            watched=[bind.host for bind in command.binds if bind.writable],
            disk_mb=command.limits.disk_mb,
            user=user_of(command.role),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    def run(self, command: Command) -> Finished:
        """Run ``command``, check that what it may only read is unchanged, and show the fixed paths in its streams."""
        protected = [bind.host for bind in command.binds if not bind.writable]
        before = [signature(path) for path in protected]
        out, err = HeadTail(), HeadTail()
        done = completed(self.start(command, stdout=out, stderr=err), out, err, command.limits.timeout)
        if before != [signature(path) for path in protected]:
            done = replace(done, ended="tampered", exit=None)
        shown = [*command.program, *command.binds]
        said = (inside_paths(text, shown) for text in (done.stdout, done.stderr))
        return replace(done, stdout=next(said), stderr=next(said))


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
