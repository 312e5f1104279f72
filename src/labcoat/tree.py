"""Code: the candidate's files as one immutable, hashed value."""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath


def sha256(content: bytes) -> str:
    """Hex SHA-256 of ``content``: the address of every blob."""
    return hashlib.sha256(content).hexdigest()


def check_path(path: str) -> str:
    """Return ``path`` if it is a plain relative POSIX path inside the tree, else raise ValueError."""
    pure = PurePosixPath(path)
    plain = path and path.isprintable() and not pure.is_absolute() and str(pure) == path and "\\" not in path
    if not plain or ".." in pure.parts or path == ".":
        raise ValueError(f"not a plain relative path: {path!r}")
    return path


def matches(path: str, globs: Iterable[str]) -> bool:
    """Whether one of the globs names ``path``; ``*`` reaches into folders."""
    return any(fnmatch.fnmatchcase(path, glob) for glob in globs)


@dataclass(frozen=True)
class File:
    """One file: its content held in memory, or, for a big file, left where it lies and known by its hash."""

    sha: str
    size: int
    held: bytes | None = None
    source: Path | None = None

    @classmethod
    def of(cls, content: bytes) -> File:
        """A file held in memory."""
        return cls(sha256(content), len(content), held=content)

    @classmethod
    def reference(cls, source: Path) -> File:
        """A big file by reference: hashed now, read again only when it is needed."""
        with source.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return cls(digest, source.stat().st_size, source=source)

    def read(self) -> bytes:
        """The content."""
        if self.held is not None:
            return self.held
        assert self.source is not None, "a file is held or referenced"
        return self.source.read_bytes()


@dataclass(frozen=True)
class Code(Mapping[str, File]):
    """Files by relative POSIX path, in sorted order. Changing anything gives another ``Code``."""

    files: tuple[tuple[str, File], ...] = ()

    HELD_LIMIT = 1 << 20  # larger files are kept by reference

    @classmethod
    def of(cls, files: Mapping[str, bytes | str | File]) -> Code:
        """Build from contents; text is encoded as UTF-8."""
        made = {
            check_path(path): content
            if isinstance(content, File)
            else File.of(content.encode() if isinstance(content, str) else content)
            for path, content in files.items()
        }
        return cls(tuple(sorted(made.items())))

    @classmethod
    def read(cls, folder: Path) -> Code:
        """Read every regular file below ``folder``; hidden files and caches of Python are passed over.

        Raises:
            ValueError: a file has a name that is not printable.
        """
        files: dict[str, bytes | str | File] = {}
        for path in sorted(folder.rglob("*")):
            parts = path.relative_to(folder).parts
            if any(part.startswith(".") or part == "__pycache__" for part in parts):
                continue
            if path.is_file() and not path.is_symlink():
                big = path.stat().st_size > cls.HELD_LIMIT
                files["/".join(parts)] = File.reference(path) if big else path.read_bytes()
        return cls.of(files)

    @cached_property
    def _by_path(self) -> dict[str, File]:
        return dict(self.files)

    def __getitem__(self, path: str) -> File:
        return self._by_path[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self.files)

    def __hash__(self) -> int:
        return hash(self.sha)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Code) and self.sha == other.sha

    @cached_property
    def sha(self) -> str:
        """Hash of all paths and contents."""
        return sha256("\n".join(f"{file.sha} {path}" for path, file in self.files).encode())

    def text(self, path: str) -> str:
        """The file as text; bytes that are not UTF-8 are shown as replacement characters."""
        return self[path].read().decode("utf-8", errors="replace")

    def put(self, changes: Mapping[str, bytes | str | None]) -> Code:
        """A new ``Code`` with files added or replaced; ``None`` deletes."""
        kept: dict[str, bytes | str | File] = {p: f for p, f in self.files if p not in changes}
        return Code.of(kept | {p: content for p, content in changes.items() if content is not None})

    def write(self, folder: Path) -> None:
        """Write all files below ``folder``, which is created."""
        folder.mkdir(parents=True, exist_ok=True)
        for path, file in self.files:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read())


def text_lines(file: File | None) -> list[str]:
    """Lines by line feeds alone; a last line without one is marked as `diff` marks it, a carriage return is shown."""
    if file is None or not file.size:
        return []
    lines = file.read().decode().replace("\r", "\\r").split("\n")
    return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"] if lines[-1] else lines[:-1]


def diff(old: Code, new: Code, context: int = 3) -> str:
    """Unified diff of two codes; files that are not text are named only."""
    parts: list[str] = []
    for path in sorted({*old, *new}):
        before, after = old.get(path), new.get(path)
        if before and after and before.sha == after.sha:
            continue
        try:
            a, b = (text_lines(file) for file in (before, after))
        except UnicodeDecodeError:
            parts.append(f"Binary files a/{path} and b/{path} differ")
            continue
        names = f"a/{path}" if before else "/dev/null", f"b/{path}" if after else "/dev/null"
        lines = list(difflib.unified_diff(a, b, *names, n=context, lineterm=""))
        parts.extend(lines or [f"--- {names[0]}", f"+++ {names[1]}"])  # an empty file that comes or goes
    return "\n".join(parts)
