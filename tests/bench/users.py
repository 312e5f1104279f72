"""Programs of the tests, run as another user."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pydantic
import pytest

import labcoat
from labcoat.bench import environment, home
from labcoat.bench.environment import Environment

NOBODY = 65534


def run_as_nobody(made: Environment, folder: Path, script: str, *args: str, **more: Any) -> str:
    """What ``script`` prints when an ordinary user runs it, with a home of its own at ``folder/home``."""
    if os.geteuid() != 0:
        pytest.skip("we are an ordinary user already, in every test")
    paths = [Path(labcoat.__file__).parents[1], Path(pydantic.__file__).parents[1], Path(__file__).parents[2]]
    if any(home.closed_to_others(path) for path in paths):
        pytest.skip("another user cannot read this checkout or its packages")
    theirs = folder / "home"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    python = (made.folder / "python").resolve() / "bin" / f"python{environment.VERSION}"
    env = {"PATH": os.environ["PATH"], "HOME": str(theirs), "LABCOAT_HOME": str(theirs / "labcoat")}
    env |= made.variables(environment.outside) | {"PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"PYTHONPATH": os.pathsep.join(map(str, paths))} | more.pop("env", {})
    done = subprocess.run(
        [str(python), "-c", script, *args], env=env, user=NOBODY, group=NOBODY, extra_groups=[], cwd=theirs,
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == more.pop("exit", 0), done.stderr
    return done.stdout
