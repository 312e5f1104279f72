"""A tiny task, and candidates made of a few lines."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

from labcoat.task import Task
from labcoat.tree import Code

PYTHON = sys.executable

# Two daemons, by double fork and setsid, that ignore every polite signal and hold the streams open.
DAEMONS = """import os, signal, sys, time
for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            print("daemon", flush=True)
            time.sleep(300)
        os._exit(0)
"""
HEAD = "import os, sys, time\nimport numpy as np\nphase, *rest = sys.argv[1:]\n"
FIT = "np.save(f'{artefact}/level.npy', np.load(f'{train}/y.npy').mean())"
PREDICT = """x = np.load(f'{inputs}/x.npy')
np.save(f'{out}/prediction.npy', np.full(len(x), np.load(f'{artefact}/level.npy')))"""

DATA = """import argparse, json
from pathlib import Path
import numpy as np
options = argparse.ArgumentParser()
for name in ("--sources", "--out", "--scale"):
    options.add_argument(name)
out = Path(options.parse_args().out)
(out / "train").mkdir()
np.save(out / "train/y.npy", np.array([1.0, 2.0, 3.0]))
for split, sizes in (("val", [4, 5]), ("test", [6])):
    for k, rows in enumerate(sizes):
        for part in ("inputs", "answers"):
            (out / split / str(k) / part).mkdir(parents=True)
        np.save(out / split / str(k) / "inputs/x.npy", np.arange(float(rows)))
        np.save(out / split / str(k) / "answers/y.npy", np.full(rows, 2.5 + k))
        (out / split / str(k) / "problem.json").write_text(json.dumps({"rows": rows}))
"""

SCORER = """import numpy as np
print("a scorer may print")
def score(outputs, answers):
    p = outputs["prediction"]
    if (p == 77).any():
        raise ValueError("77 is not allowed")
    return {
        "error": {"value": float(np.abs(p - answers["y"]).mean()), "se": 0.1},
        "level": {"value": float(np.inf if (p == 99).any() else p.mean()), "se": None},
    }
"""

MANIFEST = """id = "test/tiny"
title = "Tiny"
domain = "tests"
version = 1
prompt = { text = "Predict." }
files = { editable = ["main.py"] }
metric = { name = "error", direction = "lower" }
[[phase]]
name = "fit"
argv = ["python", "main.py", "fit", "{train}", "{artefact}", "{seed}"]
timeout = 20
resources = { memory_mb = 400, processes = 32, disk_mb = 4 }
[[phase]]
name = "predict"
argv = ["python", "main.py", "predict", "{inputs}", "{artefact}", "{out}"]
timeout = 20
resources = { memory_mb = 400, processes = 32, disk_mb = 4 }
[[output]]
name = "prediction"
dtype = ["float64", "int64"]
shape = ["rows"]
[score]
timeout = 10
memory_mb = 400
"""

# The same task without a fit, and a program for it that predicts the right value.
WITHOUT_FIT = (
    MANIFEST.partition("[[phase]]\n")[0]
    + "[[phase]]\n"
    + MANIFEST.rpartition("[[phase]]\n")[2].replace('"{artefact}", ', "")
)
CONSTANT = """import sys
import numpy as np
_, inputs, out = sys.argv[1:]
np.save(f"{out}/prediction.npy", np.load(f"{inputs}/x.npy") * 0 + 2.5)
"""

CONSTRAINT = """[[constraint]]
metric = "level"
side = "at_least"
reference = "baseline"
tolerance = 0.5
"""


def program(fit: str = FIT, predict: str = PREDICT) -> str:
    """A candidate whose phases do what the lines say."""
    fit, predict = f"train, artefact, seed = rest\n{fit}", f"inputs, artefact, out = rest\n{predict}"
    parts = [HEAD, "if phase == 'fit':", textwrap.indent(fit, "    "), "else:", textwrap.indent(predict, "    ")]
    return "\n".join(parts) + "\n"


def candidate(fit: str = FIT, predict: str = PREDICT) -> Code:
    """The same as code."""
    return Code.of({"main.py": program(fit, predict)})


def make_task(
    folder: Path, manifest: str = MANIFEST + CONSTRAINT, data: str = DATA, scorer: str = SCORER, main: str | None = None
) -> Task:
    """Write and load a task."""
    (folder / "workspace").mkdir(parents=True)
    for name, text in (("task.toml", manifest), ("data.py", data), ("scorer.py", scorer)):
        (folder / name).write_text(text)
    (folder / "workspace/main.py").write_text(main or program())
    return Task.load(folder)


def alive(marker: str) -> list[int]:
    """Processes that have ``marker`` among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
