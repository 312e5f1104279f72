"""A task out of a user's own project: a snapshot of its files, and a manifest that a person can go on writing."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from labcoat.bench import own_environment, sandbox
from labcoat.bench.home import Report
from labcoat.bench.outcome import error_text
from labcoat.bench.self_reported import SelfReportedBench
from labcoat.errors import InputError
from labcoat.snapshot import Snapshot, inside, look
from labcoat.task import Task
from labcoat.tree import matches

SHELL = {"&&", "||", "|", ";", "&", "<", ">", ">>", "2>", "2>&1"}


@dataclass(frozen=True)
class Wishes:
    """What a user says of the project."""

    project: Path
    edit: Sequence[str]
    """Globs of the files that may be changed."""
    command: str
    metric: str
    direction: Literal["higher", "lower"]
    test_command: str = ""
    metric_file: str = ""
    data: Sequence[Path] = ()
    python: Path | None = None
    timeout: float = 600.0
    memory_mb: int = 4096
    cpus: int = 1
    prompt: str = ""
    """The text, or ``@FILE``."""
    id: str = ""
    title: str = ""
    to: Path | None = None


@dataclass(frozen=True)
class Made:
    """A task that was made."""

    task: Task
    snapshot: Snapshot
    environment: str
    """Which environment was taken, and why that one."""


def make(wishes: Wishes) -> Made:
    """Make the task folder, whole or not at all. Nothing in the project is changed.

    Raises:
        InputError: what is wished cannot be, by option; or the folder exists.
    """
    project = Path(os.path.abspath(wishes.project))
    if not project.is_dir():
        raise InputError(f"{wishes.project}: no such folder; name the folder of your project")
    folder = wishes.to or Path(f"{project.name}-task")
    if os.path.lexists(folder):
        raise InputError(f"{folder}: exists; name another folder with --to, or remove it")
    mounts = [mount(project, path) for path in wishes.data]
    snapshot = look(project, [at for _, at in mounts if at])
    for glob in wishes.edit:
        if not matches_any(glob, snapshot):
            raise InputError(f"--edit {glob!r}: names no file of {project} that was taken{hint(glob, snapshot)}")
    prefix, why = environment_of(project, wishes.python)
    text = manifest(wishes, project, prefix, mounts)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as aside:
            new = Path(aside) / "task"
            snapshot.write(new / "workspace")
            (new / "task.toml").write_text(text, encoding="utf-8")
            try:
                Task.load(new)
            except InputError as error:
                raise InputError(str(error).replace(f"{new}/", "")) from None
            new.rename(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error}; correct that, or name another folder with --to") from None
    return Made(Task.load(folder), snapshot, f"{prefix} ({why})")


def attempt(task: Task, report: Report) -> str:
    """Run the unchanged project once, as every trial will; the number that it gave, and how long it took.

    Raises:
        InputError: it gave none.
        CannotRunHere: there is no sandbox here, or its user cannot reach what the project needs.
    """
    with SelfReportedBench(task, sandbox.required(None), report) as bench:
        bench.prepare()
        outcome = bench.baseline(0)
    if not outcome.ok:
        raise InputError(
            f"{task.folder}: the task is made, but gives no number yet\n{error_text(outcome)}\n"
            f"Correct {task.folder / 'task.toml'}, or the project (then make the task anew), and try it with "
            f"`labcoat task check {task.folder}`"
        )
    return f"{task.metric.line(outcome.metrics[task.metric.name].mean)}, {outcome.seconds:.1f} s"


def mount(project: Path, path: Path) -> tuple[str, str]:
    """Where data lie, and their path in the project if they are there; a link in the project may lead elsewhere."""
    absolute = Path(os.path.abspath(path))
    if not absolute.exists():
        raise InputError(f"--data {path}: no such folder or file")
    at = next(iter(inside(project, [absolute])), "")
    if at == ".":
        raise InputError(f"--data {path}: this is the project itself; name the folder in it that holds data")
    return str(absolute.resolve() if at else absolute), at


def environment_of(project: Path, named: Path | None) -> tuple[str, str]:
    """The prefix of the environment to run in, and why that one."""
    places = [(named, "--python")] if named else []
    places += [(project / name, "found in the project") for name in (".venv", "venv") if (project / name).is_dir()]
    places += [(Path(os.environ[name]), f"${name}") for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(name)]
    places += [(Path(found), "python3 on PATH") for found in [shutil.which("python3")] if found]
    if not places:
        raise InputError("no Python: name the environment of the project with --python")
    path, why = places[0]
    return own_environment.find(Path(os.path.abspath(path))).prefix, why


def matches_any(glob: str, snapshot: Snapshot) -> bool:
    """Whether ``glob`` names a file that was taken."""
    return any(matches(path, [glob]) for path in snapshot.files)


def hint(glob: str, snapshot: Snapshot) -> str:
    """Why a glob names nothing, if that is known."""
    left = [f"{path} ({why})" for path, why in snapshot.left_out.items() if matches(path.rstrip("/"), [glob])]
    return f"; left out: {', '.join(left[:3])}" if left else "; it is relative to the project, such as 'src/*.py'"


def argv(command: str, option: str) -> list[str]:
    """A command as the manifest has it: {seed} stands for the seed, other braces for themselves.

    Raises:
        InputError: it is empty, badly quoted, or needs a shell.
    """
    try:
        parts = shlex.split(command)
    except ValueError as error:
        raise InputError(f"{option} {command!r}: {error}") from None
    if not parts:
        raise InputError(f"{option}: empty; write it as you type it, such as 'python train.py --seed {{seed}}'")
    if used := [part for part in parts if part in SHELL]:
        raise InputError(
            f"{option}: there is no shell, so no `{used[0]}`; put the commands into a script of the project"
        )
    if re.match(r"\w+=", parts[0]):
        raise InputError(f"{option}: there is no shell; begin with `env {parts[0]}`")
    doubled = [part.replace("{", "{{").replace("}", "}}") for part in parts]
    return [part.replace("{{seed}}", "{seed}") for part in doubled]


def manifest(wishes: Wishes, project: Path, prefix: str, mounts: Sequence[tuple[str, str]]) -> str:
    """The text of ``task.toml``."""
    name = wishes.id or f"own/{slug(project.name)}"
    prompt = read_prompt(wishes.prompt) or (
        f"Improve {wishes.metric} ({wishes.direction} is better) of the project {project.name}."
    )
    data = [f"  {{ from = {quoted(source)}{f', at = {quoted(at)}' if at else ''} }}," for source, at in mounts]
    phases = [phase("run", wishes.command, "--command", wishes)]
    if wishes.test_command:
        phases.append(phase("test", wishes.test_command, "--test-command", wishes))
    found = f"the key {wishes.metric} of this JSON file, which the command writes" if wishes.metric_file else ""
    report = f"\n[report]\nfile = {quoted(wishes.metric_file)}  # {found}\n" if wishes.metric_file else NO_REPORT
    return f"""# Made from {comment(str(project))} by `labcoat task new`. Edit it freely; `labcoat task check` tries it.
id = {quoted(name)}
title = {quoted(wishes.title or project.name)}
domain = "own project"
version = 1                    # raise it when results are no longer comparable
integrity = "self-reported"    # the project's own code says the number, and is believed

[prompt]  # what a model is told, besides files, command, limits and metric: say what the project is about
text = {long(prompt)}

[files]
editable = {listed(wishes.edit)}  # what a strategy may change, relative to workspace/; `*` reaches into folders
place = {quoted(str(project))}  # where a trial sees its copy too, for absolute paths and editable installs

[environment]
path = {quoted(prefix)}  # used where it lies, read-only

[data]
mounts = [  # read-only; `at` is a path in the project, without it data are seen at their real place
{"".join(f"{line}{chr(10)}" for line in data)}]

{chr(10).join(phases)}{report}
[metric]
name = {quoted(wishes.metric)}
direction = {quoted(wishes.direction)}

# A bound on a second number that the command reports in the same way:
# [[constraint]]
# metric = "memory_gb"
# side = "at_most"             # or "at_least"
# reference = 8.0              # or "baseline"
"""


NO_REPORT = """
# The number is the last `NAME = number` or `NAME: number` that the command prints. To read it from a JSON file:
# [report]
# file = "metrics.json"
"""


def phase(name: str, command: str, option: str, wishes: Wishes) -> str:
    """A phase of the manifest."""
    what = "the command of a trial" if name == "run" else "what measures the final result, in the workspace after run"
    return f"""[[phase]]  # {what}
name = {quoted(name)}
argv = {listed(argv(command, option))}
timeout = {wishes.timeout:g}  # seconds
resources = {{ cpus = {wishes.cpus}, memory_mb = {wishes.memory_mb}, processes = 256, disk_mb = 2048 }}
"""


def read_prompt(prompt: str) -> str:
    """The text, or what ``@FILE`` holds."""
    if not prompt.startswith("@"):
        return prompt
    try:
        return Path(prompt[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--prompt {prompt}: cannot be read: {error}") from None


def slug(name: str) -> str:
    """A name as ids have it."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "project"


def quoted(text: str) -> str:
    """A TOML string. JSON escapes what TOML does, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def long(text: str) -> str:
    """A TOML string of several lines."""
    return '"""\n' + "\n".join(quoted(line)[1:-1] for line in text.strip().splitlines()) + '"""'


def listed(items: Sequence[str]) -> str:
    """A TOML array of strings."""
    return f"[{', '.join(map(quoted, items))}]"


def comment(text: str) -> str:
    """Text that cannot end a comment."""
    return text if text.isprintable() else ascii(text)
