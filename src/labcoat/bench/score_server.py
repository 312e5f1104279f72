"""The scorer's process: reads requests, writes scores. Runs in the task's environment: it imports nothing of labcoat.

``python score_server.py SCORER OUTPUTS SPLIT``; JSON lines on standard input and output:
``{"id", "problem", "folder"}`` -> ``{"id", "metrics": {name: {"value", "se"}}}`` or ``{"id", "bad": reason}``,
or ``{"id", "failed": traceback}`` where the scorer itself failed.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np


def load(folder: str) -> dict[str, Any]:
    """All arrays of a folder, never unpickling anything."""
    return {path.stem: np.load(path, allow_pickle=False) for path in sorted(Path(folder).glob("*.npy"))}


def plain(metrics: dict[str, dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Metrics as Python floats; an error that is not finite is unknown. A value that is not finite is a ValueError."""
    found: dict[str, dict[str, float | None]] = {}
    for name, measure in metrics.items():
        value = float(measure["value"])
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value} for this output")
        se = measure.get("se")
        found[name] = {"value": value, "se": float(se) if se is not None and math.isfinite(se) else None}
    return found


def main(scorer: str, outputs: str, split: str) -> None:
    """Answer requests until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a scorer prints must not stand between the replies
    spec = importlib.util.spec_from_file_location("scorer", scorer)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    known = {problem.name: load(f"{problem}/answers") for problem in Path(split).iterdir()}
    print(json.dumps({"ready": sorted(known)}), file=replies)
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            arrays = load(os.path.join(outputs, request["folder"]))
            reply["metrics"] = plain(module.score(arrays, known[request["problem"]]))
        except ValueError as error:
            reply["bad"] = str(error)
        except Exception:
            reply["failed"] = traceback.format_exc()
        print(json.dumps(reply), file=replies)


if __name__ == "__main__":
    main(*sys.argv[1:])
