"""Where tasks are found: those in the package, and folders of yours."""

from __future__ import annotations

import difflib
from pathlib import Path

from labcoat.errors import InputError
from labcoat.task import Task

SHIPPED = Path(__file__).parent / "tasks"


def folders() -> list[Path]:
    """Folders of all shipped tasks, in the order of their ids."""
    return sorted(path.parent for path in SHIPPED.glob("*/*/task.toml"))


def shipped() -> list[Task]:
    """All shipped tasks."""
    return [Task.load(folder) for folder in folders()]


def find(name: str) -> Task:
    """The task of that id (``fml/fairlearn-adult``), of that folder, or of that unambiguous last part.

    Raises:
        InputError: no such task, with the nearest names.
    """
    if (Path(name) / "task.toml").is_file():
        return Task.load(Path(name))
    ids = {f"{folder.parent.name}/{folder.name}": folder for folder in folders()}
    exact = [i for i in ids if i == name] or [i for i in ids if i.split("/")[1] == name]
    if len(exact) == 1:
        return Task.load(ids[exact[0]])
    if name.startswith((".", "/", "~")) or Path(name).is_dir():
        raise InputError(f"{name}: no task.toml there; `labcoat task new` makes the task of a project")
    near = difflib.get_close_matches(name, list(ids), n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(ids) or 'none'}"
    raise InputError(f"unknown task {name!r}: {hint} (`labcoat tasks` lists them; a folder with a task.toml works too)")
