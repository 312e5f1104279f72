"""What of a user's project goes into a task: the files that git has or would add, and nothing that may hold keys."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dulwich.errors import NotGitRepository
from dulwich.ignore import IgnoreFilterManager
from dulwich.repo import Repo

from labcoat.errors import InputError
from labcoat.tree import matches

MOST_FILES = 10_000
MOST_BYTES = 200 << 20
LARGEST = 10 << 20
KEYS = [
    ".env*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa*", "id_ed25519*", "id_ecdsa*", ".netrc", ".pypirc",
    "credentials*.json", "secret*.json", "secret*.toml", "secret*.y*ml",
]  # fmt: skip
REMEDY = "mount it with --data, or name it in a .gitignore"


@dataclass(frozen=True)
class Snapshot:
    """Files to take, and what was left out."""

    files: dict[str, Path]
    """By path in the project."""
    left_out: dict[str, str]
    """Reason by path; a folder stands for all that is in it."""

    @property
    def by_reason(self) -> dict[str, list[str]]:
        """What was left out, by the reason for it."""
        found: dict[str, list[str]] = {}
        for path, reason in self.left_out.items():
            found.setdefault(reason, []).append(path)
        return found

    def write(self, folder: Path) -> None:
        """Copy the files below ``folder``."""
        for name, source in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def look(project: Path, mounted: Collection[str]) -> Snapshot:
    """What would be taken of ``project``; what is ``mounted`` (paths in it) is not copied.

    Raises:
        InputError: it is more than a trial should copy.
    """
    git = Git(project)
    files: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    for folder, folders, names in os.walk(project):
        at = Path(folder).relative_to(project)
        for name in sorted([*folders, *names]):
            path = (at / name).as_posix()
            if reason := why_not(project / path, path, mounted, git):
                left_out[path + ("/" if name in folders else "")] = reason
                if name in folders:
                    folders.remove(name)
            elif name in names:
                files[path] = project / path
    taken = Snapshot(dict(sorted(files.items())), left_out)
    check_size(project, taken)
    return taken


def why_not(path: Path, name: str, mounted: Collection[str], git: Git) -> str:
    """Why a file or folder is left out; empty where it is taken."""
    last = PurePosixPath(name).name
    if name in mounted:
        return "mounted, not copied"
    if path.is_symlink():
        return "a link; --data mounts what it leads to"
    if matches(last, KEYS):
        return "may hold keys: never copied"
    if not name.isprintable() or "\\" in name:
        return "its name is not plain text"
    if path.is_dir() and (reason := why_not_folder(path)):
        return reason
    if last.startswith("."):
        return "hidden; --data mounts what a command needs of it"
    if not path.is_dir() and not path.is_file():
        return "no plain file"
    return "ignored by git" if git.ignores(f"{name}/" if path.is_dir() else name) else ""


def why_not_folder(path: Path) -> str:
    """Why all of a folder is left out, whatever git says."""
    if path.name in ("__pycache__", "node_modules"):
        return "can be made again"
    if path.name == ".git":
        return "history"
    if (path / "pyvenv.cfg").exists() or (path / "conda-meta").exists():
        return "an environment; it is used where it lies"
    if (path / ".git").exists():
        return "a repository of its own"
    if (path / "task.toml").exists() and (path / "workspace").is_dir():
        return "a task of labcoat"
    if (path / "run.json").exists() and (path / "events.jsonl").exists():
        return "a run of labcoat"
    return ""


class Git:
    """What git knows of a project: which files it has, and which it would not add. Without a repository: .gitignore."""

    def __init__(self, project: Path) -> None:
        """Find the repository that ``project`` lies in, if there is one."""
        try:
            repo = Repo.discover(str(project))
        except NotGitRepository:
            self._top, self._tracked = project, set[str]()
            self._filters = IgnoreFilterManager(str(project), [], False)
        else:
            self._top = Path(repo.path).resolve()
            self._tracked = {os.fsdecode(path) for path in repo.open_index()}
            self._filters = IgnoreFilterManager.from_repo(repo)
            repo.close()
        self._inside = project.resolve().relative_to(self._top.resolve())
        self._folders = {f"{parent}/" for path in self._tracked for parent in PurePosixPath(path).parents}

    def ignores(self, name: str) -> bool:
        """Whether git ignores this path of the project, a folder with a slash at its end, and has nothing there."""
        path = (self._inside / name).as_posix() + ("/" if name.endswith("/") else "")
        return path not in self._tracked and path not in self._folders and bool(self._filters.is_ignored(path))


def check_size(project: Path, taken: Snapshot) -> None:
    """Raise InputError where a trial would copy more than it should."""
    sizes = {name: path.stat().st_size for name, path in taken.files.items()}
    if large := [name for name, size in sizes.items() if size > LARGEST]:
        raise InputError(
            f"{project / large[0]}: {sizes[large[0]] >> 20} MiB, and each trial copies every file (at most "
            f"{LARGEST >> 20} MiB each): {REMEDY}"
        )
    if len(sizes) > MOST_FILES or sum(sizes.values()) > MOST_BYTES:
        raise InputError(
            f"{project}: {len(sizes)} files, {sum(sizes.values()) >> 20} MiB, and each trial copies them (at most "
            f"{MOST_FILES} files, {MOST_BYTES >> 20} MiB). Most are in {', '.join(heaviest(sizes))}: {REMEDY}"
        )


def heaviest(sizes: dict[str, int]) -> Iterator[str]:
    """The three folders, or files, at the top that hold most files, with what they hold."""
    tops: dict[str, list[int]] = {}
    for name, size in sizes.items():
        first, slash, _ = name.partition("/")
        tops.setdefault(first + slash, []).append(size)
    for top in sorted(tops, key=lambda top: -len(tops[top]) - sum(tops[top]) * MOST_FILES // MOST_BYTES)[:3]:
        yield f"{top} ({len(tops[top])} files, {sum(tops[top]) >> 20} MiB)"


def inside(project: Path, paths: Sequence[Path]) -> dict[str, Path]:
    """Those of ``paths`` that are in the project, by their path there."""
    return {path.relative_to(project).as_posix(): path for path in paths if path.is_relative_to(project)}
