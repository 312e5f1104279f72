"""Leases of processors and GPUs, and what a GPU needs in a sandbox: decided on listings, as this machine has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labcoat.bench import gpus, process, processors, sandbox
from labcoat.bench.bubblewrap import arguments
from labcoat.bench.command import Command, Limits
from labcoat.bench.environment import Environment
from labcoat.bench.gpus import Gpu
from labcoat.bench.leases import Lease
from labcoat.errors import CannotRunHere
from tests.bench.conftest import OpenBench
from tests.bench.test_sandbox import run
from tests.bench.tiny import MANIFEST, PYTHON, make_task

MANY = len(processors.usable()) > 1


@pytest.fixture
def alone(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other test leases here."""
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder / "home"))


# --- leases -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("alone")
def test_what_is_leased_is_nobody_elses_until_it_is_given_back() -> None:
    with Lease("things", [0, 1, 2], 2) as first, Lease("things", [0, 1, 2], 2) as second:
        assert (first.held, second.held) == ([0, 1], [2])
        assert Lease("things", [0, 1, 2], 2).held == []
        first.close()
        with Lease("things", [2, 1, 0], 3) as third:
            assert third.held == [1, 0]


@pytest.mark.usefixtures("alone")
def test_a_killed_process_holds_nothing() -> None:
    code = "import sys; from labcoat.bench.leases import Lease; x = Lease('things', [0], 1); print(x.held, flush=True)"
    code += "; sys.stdin.read()"
    with subprocess.Popen(
        [PYTHON, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as other:  # fmt: skip
        assert other.stdout is not None and other.stdout.readline() == b"[0]\n"
        assert Lease("things", [0], 1).held == []
        other.kill()
    assert Lease("things", [0], 1).held == [0]


# --- processors -------------------------------------------------------------------------------------------------------


def test_processes_begin_at_different_processors() -> None:
    assert [processors.in_turn([4, 5, 7], first) for first in (0, 1, 5)] == [[4, 5, 7], [5, 7, 4], [7, 4, 5]]


@pytest.mark.usefixtures("alone")
def test_processors_are_leased_and_shared_where_too_few_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "usable", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(os, "getpid", lambda: 1)
    one, alone = processors.lease(3)
    other, partly = processors.lease(2)
    third, wholly = processors.lease(1)
    all_of_them, everything = processors.lease(9)
    assert (alone, one.held) == ([1, 2, 3], [1, 2, 3])
    assert (partly, other.held) == ([0, 1], [0])  # the second one is shared: nobody waits
    assert (wholly, third.held) == ([1], [])
    assert (sorted(everything), all_of_them.held) == ([0, 1, 2, 3], [])
    assert processors.shared() == [0]  # the one that we lease last
    for each in (one, other, third, all_of_them):
        each.close()


@pytest.mark.skipif(not MANY, reason="one processor")
def test_only_what_is_started_meanwhile_is_pinned() -> None:
    before, chosen = os.sched_getaffinity(0), processors.usable()[1]
    show = [PYTHON, "-S", "-c", "import os; print(os.sched_getaffinity(0))"]
    with processors.only([chosen]):
        pinned = process.run(show, env={}, timeout=20).stdout
    assert pinned == f"{{{chosen}}}\n" and os.sched_getaffinity(0) == before
    assert process.run(show, env={}, timeout=20).stdout == f"{before}\n"
    with pytest.raises(KeyboardInterrupt), processors.only([chosen]):
        raise KeyboardInterrupt
    assert os.sched_getaffinity(0) == before


WHERE = """
import os
print(sorted(os.sched_getaffinity(0)))
try:
    os.sched_setaffinity(0, range(os.cpu_count()))
    print("left")
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.usefixtures("alone")
@pytest.mark.skipif(not MANY, reason="one processor")
def test_a_command_runs_on_its_processors_only(either: sandbox.Sandbox, numpy_environment: Environment) -> None:
    mine = processors.in_turn(processors.usable(), os.getpid())
    with Lease("cpus", mine[:1], 1):  # another run has the one that we would take
        done = run(either, numpy_environment, WHERE)
    where, said = done.stdout.splitlines()
    assert where == f"[{mine[1]}]"
    assert said == ("Operation not permitted" if either.level == "bwrap" else "left")
    assert (said == "left") == ("can leave" in either.enforced()["threads"])
    with Lease("cpus", mine, len(mine)) as everything:
        assert len(everything.held) == len(mine)  # the command has given its own back


def test_a_scorer_has_one_processor(open_bench: OpenBench, either: sandbox.Sandbox) -> None:
    scorer = open_bench(either)._scorer()
    assert len(os.sched_getaffinity(scorer._child.process.pid)) == 1


def test_a_task_that_asks_for_more_processors_than_there_are_is_told(
    open_bench: OpenBench, either: sandbox.Sandbox
) -> None:
    here = len(processors.usable())
    bench = open_bench(either, manifest=MANIFEST.replace("memory_mb = 400", f"cpus = {here + 7}, memory_mb = 400", 1))
    note = f"fit asks for {here + 7} processors, here are {here}: it runs on those"
    assert bench.facts()["notes"] == [note]


# --- GPUs -------------------------------------------------------------------------------------------------------------

DEVICES = ["null", "nvidia10", "nvidia0", "nvidiactl", "nvidia-uvm", "nvidia1"]
INFORMATION = [
    "Model: \t\t NVIDIA H100\nIRQ:   \t 47\nGPU UUID: \t GPU-aaa\nDevice Minor: \t 1\n",
    "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-????????\nDevice Minor: \t 10\n",
    "Model: \t\t NVIDIA T4\nGPU UUID: \t GPU-bbb\nDevice Minor: \t 0\n",
]
SMI = "GPU-aaa, 81559\nGPU-bbb, 15360\n"
H100, T4 = Gpu(1, "GPU-aaa", "NVIDIA H100", 81559), Gpu(0, "GPU-bbb", "NVIDIA T4", 15360)


def test_gpus_are_listed_from_devices_driver_and_nvidia_smi() -> None:
    assert gpus.listed(DEVICES, INFORMATION, SMI) == [T4, H100, Gpu(10, "", "NVIDIA H100", None)]
    assert gpus.listed(["nvidia0"], [], "") == [Gpu(0)]
    assert gpus.models([T4, Gpu(1)]) == {"gpus": ["NVIDIA T4", "/dev/nvidia1"]} and gpus.models([]) == {}
    assert gpus.listed(["null", "nvidiactl"], [], "") == []


def test_what_is_shown_of_the_leased_gpus_only() -> None:
    command = Command(["x"], [], {"A": "b"}, Limits(1, 100, gpus=1))
    argv = arguments([], command, [H100])
    text = " ".join(argv)
    for name in ("nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps"):
        assert f" --dev-bind-try /dev/{name} /dev/{name} " in text
    assert "/dev/nvidia0" not in text and " --ro-bind /sys /sys " in text
    assert text.index("--dev /dev") < text.index("--dev-bind-try") < text.index("--remount-ro /dev")
    assert " --setenv CUDA_VISIBLE_DEVICES GPU-aaa " in text
    assert f"--size {100 << 20} --tmpfs /dev/shm" in text
    without = arguments([], command, [])
    assert "--dev-bind-try" not in without and "/sys" not in without
    assert without[without.index("CUDA_VISIBLE_DEVICES") + 1] == ""
    assert gpus.variables([H100, T4]) == {"CUDA_VISIBLE_DEVICES": "GPU-aaa,GPU-bbb"}


def test_too_few_gpus_are_refused_by_name_with_what_to_do() -> None:
    gpus.check([T4, H100], 2, None, "fit")
    gpus.check([T4, H100], 1, 40_000, "fit")
    with pytest.raises(CannotRunHere, match=r"fit needs 1 GPU\(s\), here: no /dev/nvidia0; .*nvidia-smi.*--gpus all"):
        gpus.check([], 1, None, "fit")
    with pytest.raises(CannotRunHere, match=r"2 GPU\(s\) of 40000 MiB, here: /dev/nvidia0 \(15360 MiB\), /dev/nvidia1"):
        gpus.check([T4, H100], 2, 40_000, "fit")
    with pytest.raises(CannotRunHere, match=r"no UUID for /dev/nvidia10: `sudo nvidia-persistenced`"):
        gpus.check([Gpu(10)], 1, 40_000, "fit")


@pytest.mark.usefixtures("alone")
def test_gpus_are_leased_all_or_none_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "here", lambda: [T4, H100])
    first, those = gpus.lease(1, 40_000)
    assert those == [H100]
    waits: list[list[int]] = []

    def pause(seconds: float) -> None:
        with Lease("gpus", [0, 1], 2) as free:
            waits.append(free.held)  # a process that waits for two keeps none from others
        first.close()

    monkeypatch.setattr("labcoat.bench.gpus.time.sleep", pause)
    second, both = gpus.lease(2, None)
    assert waits == [[0]] and both == [T4, H100]
    second.close()
    assert gpus.lease(0, None)[1] == []


@pytest.mark.skipif(bool(gpus.here()), reason="this machine has GPUs")
def test_a_task_for_gpus_is_refused_before_anything_is_built(open_bench: OpenBench, either: sandbox.Sandbox) -> None:
    manifest = MANIFEST.replace("memory_mb = 400", "gpus = 1, gpu_memory_mb = 16000, memory_mb = 400", 1)
    with pytest.raises(CannotRunHere, match=r"test/tiny: phase fit needs 1 GPU\(s\) of 16000 MiB, here: no /dev/nv"):
        open_bench(either, manifest=manifest)


def test_an_agent_is_told_of_gpus(tmp_path: Path) -> None:
    manifest = MANIFEST.replace("memory_mb = 400", "gpus = 2, gpu_memory_mb = 16000, memory_mb = 400", 1)
    told = make_task(tmp_path / "task", manifest=manifest).statement
    assert "fit: 20 s, 1 thread(s), 400 MiB memory, 2 GPU(s) of 16000 MiB" in told and told.count("GPU") == 1
