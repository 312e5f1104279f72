"""The search tree as a git repository: one commit a trial, its parent the parent trial, dates from the journal."""

from __future__ import annotations

import shutil
import tempfile
from datetime import datetime
from pathlib import Path

from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from dulwich.refs import Ref
from dulwich.repo import Repo

from labcoat.errors import CannotRunHere, InputError
from labcoat.history import History, Step
from labcoat.tree import Code

AUTHOR = b"labcoat <labcoat@localhost>"


def export(history: History, target: Path | None = None) -> Path:
    """Write a bare repository with one pack: branches ``best`` and ``baseline``, a tag ``step-N`` for every step.

    Args:
        history: the run.
        target: folder of the repository; by default ``git`` in the run folder, which is written anew.

    Raises:
        InputError: ``target`` exists.
    """
    if target is not None and target.exists():
        raise InputError(f"{target}: exists; name a folder that does not, with --to")
    final = target or history.folder / "git"
    try:
        half = Path(tempfile.mkdtemp(prefix=".git-", dir=final.parent))
    except OSError as error:
        raise CannotRunHere(f"{final.parent}: {error.strerror}; name a folder that can be made, with --to") from None
    repo = Repo.init_bare(str(half))
    objects: dict[ObjectID, ShaFile] = {}
    commits: list[ObjectID] = []
    for step in history.steps:
        parents = [commits[step.parent]] if step.parent is not None else []
        commit = _commit(history, step, _tree(history.code(step), objects), parents)
        objects[commit.id] = commit
        commits.append(commit.id)
        repo.refs[Ref(f"refs/tags/step-{step.number}".encode())] = commit.id
    repo.object_store.add_objects([(made, None) for made in objects.values()])
    if commits:
        repo.refs[Ref(b"refs/heads/baseline")] = commits[0]
        repo.refs[Ref(b"refs/heads/best")] = commits[history.best.number if history.best else 0]
        repo.refs.set_symbolic_ref(Ref(b"HEAD"), Ref(b"refs/heads/best"))
    repo.close()
    if target is None:
        shutil.rmtree(final, ignore_errors=True)
    half.rename(final)
    return final


def _commit(history: History, step: Step, tree: ObjectID, parents: list[ObjectID]) -> Commit:
    value = step.value(history.metric.name)
    said = " (self-reported)" if history.manifest.integrity == "self-reported" else ""
    result = f"{history.metric.name} = {value:.6g}{said}" if value is not None else step.outcome.error.strip()
    title = "baseline" if step.number == 0 else f"step {step.number}"
    facts = "\n".join(f"{name}: {value}" for name, value in step.facts.items())
    commit = Commit()
    commit.tree = tree
    commit.parents = parents
    commit.author = commit.committer = AUTHOR
    commit.commit_time = commit.author_time = int(datetime.fromisoformat(step.at).timestamp())
    commit.commit_timezone = commit.author_timezone = 0
    commit.encoding = b"UTF-8"
    commit.message = f"{title}: {step.outcome.status}\n\n{result}\n\n{facts}\n".replace("\0", " ").encode()
    return commit


def _tree(code: Code, objects: dict[ObjectID, ShaFile]) -> ObjectID:
    """Hash of the git tree of ``code``; its objects are added to ``objects``."""
    root: dict[str, object] = {}
    for path, file in code.items():
        *folders, name = path.split("/")
        place = root
        for folder in folders:
            place = place.setdefault(folder, {})  # type: ignore[assignment]
        blob = Blob.from_string(file.read())
        objects[blob.id] = blob
        place[name] = blob

    def build(entries: dict[str, object]) -> ObjectID:
        tree = Tree()
        for name, entry in entries.items():
            if isinstance(entry, Blob):
                tree.add(name.encode(), 0o100644, entry.id)
            else:
                tree.add(name.encode(), 0o040000, build(entry))  # type: ignore[arg-type]
        objects[tree.id] = tree
        return tree.id

    return build(root)
