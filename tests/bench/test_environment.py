"""Environments: built once, by one of many, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labcoat.bench import environment, home, process
from labcoat.bench.environment import Environment
from labcoat.errors import CannotRunHere

BUILD = """
from labcoat.bench import environment
print("built", environment.prepare([], lambda text: print(text, flush=True)).folder)
"""


def test_two_builders_at_once(open_folder: Path) -> None:
    env = os.environ | {"LABCOAT_HOME": str(open_folder / "home"), "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", BUILD]
    builders = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [builder.communicate(timeout=60)[0] for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0]
    assert said[0].splitlines()[-1] == said[1].splitlines()[-1]
    assert sum("making an environment" in text for text in said) == 1
    assert sum("waiting for another process" in text for text in said) == 1


def test_it_works_where_it_was_built(numpy_environment: Environment) -> None:
    argv = [numpy_environment.interpreter(environment.outside), "-c", "import sys, numpy; print(sys.prefix)"]
    env = {"PATH": os.environ["PATH"]} | numpy_environment.variables(environment.outside)
    done = process.run(argv, env=env, timeout=20)
    assert done.stdout.strip() == str(numpy_environment.folder / "env"), done.stderr
    assert all(bind.inside.startswith(("/env", "/python")) for bind in numpy_environment.binds)
    assert not os.path.isabs(os.readlink(numpy_environment.folder / "env/bin/python"))


def test_a_failed_build_is_told_and_leaves_nothing_that_looks_complete() -> None:
    wanted = ["nothing @ file:///no/such/nothing-1.0-py3-none-any.whl"]
    with pytest.raises(CannotRunHere, match=r"pip install failed \(check .*PIP_INDEX_URL(.*\n)+.*No such file"):
        environment.prepare(wanted, lambda text: None)
    stamps = [path / "complete" for path in home.folder("envs").iterdir() if path.is_dir()]
    assert not all(stamp.exists() for stamp in stamps)


def test_a_python_without_ensurepip(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = process.Finished(1, "The virtual environment was not created: ensurepip is not available.", "", 0.1)
    monkeypatch.setattr(process, "run", lambda *args, **kwargs: failed)
    with pytest.raises(CannotRunHere, match=r"sudo apt-get install python3\.\d+-venv"):
        environment.prepare(["x==1"], lambda text: None)


def test_equal_lists_share_an_environment(numpy_environment: Environment) -> None:
    assert environment.prepare([], lambda text: pytest.fail(text)).folder == numpy_environment.folder


def test_pip_gets_the_users_index_and_nothing_that_redirects(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_INDEX_URL", "PIP_TARGET", "PIP_USER", "PYTHONPATH", "VIRTUAL_ENV", "https_proxy"):
        monkeypatch.setenv(name, "x")
    found = environment.ours()
    assert found["PIP_INDEX_URL"] == found["https_proxy"] == "x"
    assert not {"PIP_TARGET", "PIP_USER", "PYTHONPATH", "VIRTUAL_ENV"} & set(found)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs a copy")
def test_root_copies_a_python_that_workers_cannot_reach(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = open_folder / "closed/python"
    for name in (
        "bin/python3",
        "lib/python3.11/os.py",
        "lib/python3.11/site-packages/secret.py",
        "lib/python3.11/test/t.py",
    ):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(name)
    (base / "bin/python3").chmod(0o700)
    (open_folder / "closed").chmod(0o700)
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder / "home"))
    monkeypatch.setattr(sys, "base_prefix", str(base))
    copy = environment.base_prefix(lambda text: None)
    assert copy != base and home.closed_to_others(copy) is None and environment.base_prefix(lambda text: None) == copy
    assert (copy / "bin/python3").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in sorted(copy.rglob("*.py"))] == ["os.py"]
    (open_folder / "closed").chmod(0o755)
    assert environment.base_prefix(lambda text: None) == base
