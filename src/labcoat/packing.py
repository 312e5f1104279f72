"""How outcomes and codes are written into the journal: texts as blobs, codes as changes to the baseline."""

from __future__ import annotations

from typing import Any

from labcoat.bench.outcome import Outcome
from labcoat.journal.blobs import Blobs
from labcoat.tree import Code, File

TEXTS = ("stdout", "stderr")


def pack_outcome(outcome: Outcome, blobs: Blobs) -> dict[str, Any]:
    """Plain data for an event; the error text and the streams become hashes of blobs."""
    data = outcome.to_json()
    data["error"] = blobs.put(outcome.error) if outcome.error else ""
    for execution in data["executions"]:
        for stream in TEXTS:
            execution[stream] = blobs.put(execution[stream]) if execution[stream] else ""
    return data


def unpack_outcome(data: dict[str, Any], blobs: Blobs) -> Outcome:
    """The inverse of :func:`pack_outcome`."""
    executions = [
        execution | {stream: blobs.text(execution[stream]) if execution[stream] else "" for stream in TEXTS}
        for execution in data["executions"]
    ]
    return Outcome.from_json(
        data | {"error": blobs.text(data["error"]) if data["error"] else "", "executions": executions}
    )


def pack_changes(baseline: Code, code: Code, blobs: Blobs) -> dict[str, str | None]:
    """Paths that differ from the baseline with the hash of their content, None where deleted."""
    changes: dict[str, str | None] = {path: None for path in baseline if path not in code}
    for path, file in code.items():
        original = baseline.get(path)
        if original is None or original.sha != file.sha:
            changes[path] = blobs.put(file.read())
    return changes


def unpack_changes(baseline: Code, changes: dict[str, str | None], blobs: Blobs) -> Code:
    """The code that :func:`pack_changes` described."""
    return baseline.put({path: None if sha is None else blobs.get(sha) for path, sha in changes.items()})


def pack_code(code: Code, blobs: Blobs) -> dict[str, str]:
    """Every path with the hash of its content; big files are named by hash and stay where they lie."""
    return {path: blobs.put(file.held) if file.held is not None else file.sha for path, file in code.items()}


def unpack_code(files: dict[str, str], blobs: Blobs) -> Code:
    """The code that :func:`pack_code` described, without the big files."""
    return Code.of({path: File.of(blobs.get(sha)) for path, sha in files.items() if sha in blobs})
