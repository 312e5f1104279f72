"""``run.json``: what a run is and where it ran, written once, compared before anything is appended."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from labcoat import __version__
from labcoat.errors import CannotRunHere, InputError

RECORD = "run.json"
RECORD_VERSION = 1


def read_record(folder: Path) -> dict[str, Any] | None:
    """``run.json``, None if there is none yet.

    Raises:
        InputError: it is no record of labcoat, or one of a later version.
    """
    path = folder / RECORD
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = int(record["v"])
        if version <= RECORD_VERSION and not all(isinstance(record[name], dict) for name in ("spec", "task", "bench")):
            raise ValueError
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not a record of labcoat; restore it, or move {folder} away") from None
    if version > RECORD_VERSION:
        raise InputError(
            f"{path}: v: written by labcoat {record.get('labcoat', '?')} (format {version}, this one reads up to "
            f"{RECORD_VERSION}); update labcoat, or move {folder} away"
        )
    return record


def compare_record(folder: Path, spec: dict[str, Any], sandbox: str | None = None) -> None:
    """Refuse to go on with a run of another spec, or of another sandbox level than is asked for.

    Raises:
        InputError: naming the field of run.json that differs.
    """
    record = read_record(folder)
    if record is None:
        return
    level = record["bench"]["sandbox"]["level"]
    if sandbox and level not in (sandbox, "none needed"):
        raise InputError(
            f"{folder / RECORD}: bench.sandbox.level: this run was begun with {level!r}, {sandbox!r} is asked for; "
            "measure it anew in another folder with --runs"
        )
    recorded = flat(record["spec"])
    for name, value in sorted(flat(spec).items()):
        if recorded.get(name) != value:
            raise InputError(
                f"{folder / RECORD}: spec.{name}: this run was begun with {recorded.get(name)!r}, "
                f"now it is {value!r}; move the folder away or choose another one with --runs"
            )


def write_record(folder: Path, new: dict[str, Any], *, durable: bool = True) -> None:
    """Write ``run.json`` once; where it stands already, compare what this machine enforces with it.

    ``durable``: it is on the disk before anything is appended that builds on it.

    Raises:
        InputError: the sandbox or the environment is another one than the run was begun with.
    """
    path = folder / RECORD
    record = read_record(folder)
    if record is not None:
        compare_bench(path, record, new["bench"])
        for name, sha in record["prompts"].items():
            if new["prompts"].get(name) != sha:
                raise InputError(
                    f"{path}: prompts.{name}: this prompt has changed since the run began; go on with labcoat "
                    f"{record['labcoat']}, or begin anew elsewhere with --runs"
                )
        return
    head = {"v": RECORD_VERSION, "labcoat": __version__}
    half = path.with_suffix(".part")
    try:
        with half.open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(head | new, indent=1, ensure_ascii=False) + "\n")
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        os.replace(half, path)
        if durable:
            sync_folder(folder)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise CannotRunHere(
            f"{path}: cannot write: {error.strerror}; free some space and give the same command again"
        ) from None


def compare_bench(path: Path, record: dict[str, Any], facts: dict[str, Any]) -> None:
    """Refuse to add to numbers of another sandbox level or environment than this machine's.

    Raises:
        InputError: naming the field of the record at ``path``.
    """
    for name, field in (("sandbox", "level"), ("environment", "lock_hash")):
        begun, here = record["bench"][name][field], facts[name][field]
        if begun != here:
            raise InputError(
                f"{path}: bench.{name}.{field}: this run was begun with {begun!r}, here it is {here!r}; "
                "its numbers would not be comparable. Go on where it was begun, or begin anew elsewhere with --runs"
            )


def sync_folder(folder: Path) -> None:
    """Force a folder's list of names to the disk: what was made or renamed in it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """A nested spec with dotted names: ``strategy.source``."""
    if isinstance(value, dict) and value:
        return {k: v for name, sub in value.items() for k, v in flat(sub, f"{path}.{name}" if path else name).items()}
    return {path: value}
