"""What labcoat itself costs per trial, beyond the candidate's own processes, with everything on.

    python benchmarks/trial_overhead.py [--trials N]

In one run, in turn: a trial of a tiny task through the bench (environment, sandbox, limits, scorer, constraints), and
the same two commands bare, as subprocesses. The figure is the difference; it is taken for a workspace of 5 files and
for one of 200 files and 20 MB. Needs bubblewrap.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MANIFEST = """
id = "bench/overhead"
title = "Overhead"
domain = "Benchmark"
version = 1
[prompt]
text = "Nothing to do."
[files]
editable = ["main.py"]
[environment]
requires = ["numpy=={numpy}"]
[[phase]]
name = "fit"
argv = ["python", "-S", "main.py", "fit", "{{artefact}}"]
timeout = 30
[[phase]]
name = "predict"
argv = ["python", "-S", "main.py", "predict", "{{out}}"]
timeout = 30
[[output]]
name = "prediction"
dtype = ["float64"]
shape = [1]
[metric]
name = "value"
direction = "higher"
"""
# A valid array of one number, written without importing numpy: the candidate costs as little as a Python can.
MAIN = """
import struct, sys
phase, folder = sys.argv[1:]
head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"
head += b" " * (117 - len(head)) + b"\\n"
data = b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(head)) + head + struct.pack("<d", 1.0)
open(f"{folder}/prediction.npy" if phase == "predict" else f"{folder}/model", "wb").write(data)
"""
DATA = """
import json, sys
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
(out / "train").mkdir()
for split in ("val", "test"):
    for part in ("inputs", "answers"):
        (out / split / "0" / part).mkdir(parents=True)
    (out / split / "0" / "problem.json").write_text(json.dumps({}))
"""
SCORER = """
def score(outputs, answers):
    return {"value": {"value": float(outputs["prediction"][0]), "se": None}}
"""


def make_task(folder: Path, files: int, size: int) -> Path:
    """A task folder whose workspace has so many files of so many bytes beside ``main.py``."""
    import numpy as np

    (folder / "workspace").mkdir(parents=True)
    (folder / "task.toml").write_text(MANIFEST.format(numpy=np.__version__))
    (folder / "data.py").write_text(DATA)
    (folder / "scorer.py").write_text(SCORER)
    (folder / "workspace/main.py").write_text(MAIN)
    for number in range(files - 1):
        (folder / f"workspace/file{number}.bin").write_bytes(os.urandom(size))
    return folder


def main() -> None:
    """Measure both workspaces and print one table."""
    from labcoat.bench.sandbox import choose
    from labcoat.bench.worker import SandboxedBench
    from labcoat.task import Task

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    count = parser.parse_args().trials
    print(f"{'workspace':>20} {'trial ms':>9} {'bare ms':>8} {'difference: median':>19} {'min':>6} {'max':>6}  bound")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, files, size, bound in (("5 files", 5, 200, 0.030), ("200 files / 20 MB", 200, 100_000, 0.060)):
            task = Task.load(make_task(Path(folder, name), files, size))
            bench = SandboxedBench(task, choose("bwrap", False), lambda text: None)
            bench.prepare()
            interpreter = str(bench.environment.folder / "env/bin/python")
            bare_folder = Path(folder, name, "bare")
            bare_folder.mkdir()
            whole, bare = [], []
            for number in range(count + 3):
                begin = time.perf_counter()
                with bench.trial(task.baseline, 0) as (outcome, _):
                    assert outcome.ok, outcome
                middle = time.perf_counter()
                for phase in ("fit", "predict"):
                    argv = [interpreter, "-S", str(task.folder / "workspace/main.py"), phase, str(bare_folder)]
                    subprocess.run(argv, check=True, capture_output=True)
                end = time.perf_counter()
                if number >= 3:  # the first ones warm caches
                    whole.append(middle - begin)
                    bare.append(end - middle)
            bench.close()
            extra = sorted(a - b for a, b in zip(whole, bare, strict=True))
            median = statistics.median(extra)
            failed |= median > bound
            print(
                f"{name:>20} {statistics.median(whole) * 1000:9.1f} {statistics.median(bare) * 1000:8.1f} "
                f"{median * 1000:19.1f} {extra[0] * 1000:6.1f} {extra[-1] * 1000:6.1f}  <= {bound * 1000:.0f} ms"
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of the controller: {peak:.0f} MB (bound: 200)")
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
