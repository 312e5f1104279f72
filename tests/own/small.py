"""A small project as people have them: a package, data, a cache, checkpoints, an absolute path, keys, a virtual env."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from labcoat.bench import home

TRAIN = """import argparse, json, os, pathlib, sys
from small.model import fit


def loss(level, rows):
    return sum((level - row) ** 2 for row in rows) / len(rows)


PROJECT = pathlib.Path({project!r})
options = argparse.ArgumentParser()
options.add_argument("--seed", type=int, default=0)
options.add_argument("--evaluate", action="store_true")
chosen = options.parse_args()
rows = [float(line) for line in pathlib.Path("data/points.txt").read_text().split()]
checkpoint = PROJECT / "checkpoints/last.json"
if chosen.evaluate:
    level = json.loads(checkpoint.read_text())["level"]
    print(f"loss: {{loss(level, rows[2:]):.6f}}")
    sys.exit()
cache = pathlib.Path("cache/mean.json")
if cache.exists():
    print("from the cache")
    mean = json.loads(cache.read_text())
else:
    mean = sum(rows[:2]) / 2
    cache.parent.mkdir(exist_ok=True)
    cache.write_text(json.dumps(mean))
for epoch in range(3):
    level = fit(mean, epoch)
    print(f"epoch {{epoch}} loss: {{loss(level, rows[:2]):.6f}}")
checkpoint.parent.mkdir(exist_ok=True)
checkpoint.write_text(json.dumps({{"level": level}}))
pathlib.Path("metrics.json").write_text(json.dumps({{"loss": loss(level, rows[:2]), "seed": chosen.seed}}))
"""

MODEL = '''"""A level, fitted by a factor."""

FACTOR = 0.5


def fit(mean, epoch):
    return mean * FACTOR
'''


def base_python() -> Path:
    """An interpreter that the workers' user can reach: our own one, or the system's."""
    ours = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    reachable = not home.is_root() or home.closed_to_others(ours.resolve().parent) is None
    return ours if reachable else Path("/usr/bin/python3")


@cache
def bare_environment() -> Path:
    """A virtual environment without pip, made once: it is copied, which holds, as its links are absolute."""
    made = Path(tempfile.mkdtemp()) / "venv"
    atexit.register(shutil.rmtree, made.parent)
    argv = [str(base_python()), "-m", "venv", "--without-pip", str(made)]
    subprocess.run(argv, check=True, capture_output=True, env={"PATH": os.environ["PATH"]})
    return made


def make_project(folder: Path, model: str = MODEL, train: str = TRAIN) -> Path:
    """Write the project, with an environment in which it is installed so that its own files are used."""
    files = {
        "src/small/__init__.py": "",
        "src/small/model.py": model,
        "train.py": train.format(project=str(folder)),
        "data/points.txt": "1.0\n3.0\n2.5\n",
        ".env": "OPENAI_API_KEY=sk-secret\n",
        ".gitignore": "cache/\ncheckpoints/\nmetrics.json\n",
        "cache/mean.json": "100.0",
        "checkpoints/last.json": '{"level": 100.0}',
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    shutil.copytree(bare_environment(), folder / ".venv", symlinks=True)
    packages = next((folder / ".venv/lib").glob("python*/site-packages"))
    (packages / "small.pth").write_text(f"{folder / 'src'}\n")
    return folder


def state(folder: Path) -> str:
    """Hash of all names, contents, modes and times below ``folder``."""
    lines = []
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        lines.append(f"{path} {found.st_mode} {found.st_mtime_ns} {hashlib.sha256(content).hexdigest()}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
