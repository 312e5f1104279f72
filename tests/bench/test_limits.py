"""Each limit from both sides, as we are and as an ordinary user: below it there is a result, beyond it a status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from labcoat.bench.environment import Environment
from tests.bench.tiny import MANIFEST, make_task
from tests.bench.users import run_as_nobody


@dataclass(frozen=True)
class Case:
    """A limit: lines of ``fit`` or ``predict`` that stay below it, others that exceed it, and what becomes of those."""

    below: str
    beyond: str
    status: str
    said: str
    phase: str = "fit"


FORK = """for _ in range(%d):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)"""
WRITE = "for k in range(%d): open(f'{artefact}/{k}', 'wb').write(bytes(%d))"
# Two processes that compute at once get as much as one: what both have used may not exceed what one could.
SPIN = """begin, child = time.monotonic(), os.fork()
while time.monotonic() - begin < 0.4: pass
if child == 0: os._exit(0)
os.wait()
used = os.times()
share = (sum(used[:4]) - 0.1) / (time.monotonic() - begin)
assert len(os.sched_getaffinity(0)) == 1 and share < 1.3, share"""
CASES = {
    "wall clock": Case("time.sleep(0.3)", "time.sleep(60)", "timeout", "fit ran longer than 3 s and was ended"),
    "memory": Case(
        "x = b'x' * (200 << 20)", "x = b'x' * (800 << 20); time.sleep(60)",
        "out_of_memory", "fit used more than 400 MiB of memory and was ended",
    ),
    "processes": Case(FORK % 12, FORK % 200, "crash", "Resource temporarily unavailable"),
    "one file": Case(WRITE % (1, 3 << 20), WRITE % (1, 5 << 20), "crash", "File too large"),
    "disk": Case(WRITE % (3, 1 << 20), WRITE % (3, 3 << 20), "crash", "fit wrote more than 4 MiB and was ended"),
    "output size": Case(
        "array(f'{out}/prediction.npy', rows)", "array(f'{out}/prediction.npy', 1 << 17)",
        "bad_output", "/out/prediction.npy has 1048704 bytes; at most 288 are possible", "predict",
    ),
    "log size": Case(
        "print('begin' + 'x' * 40_000 + 'end')", "print('begin' + 'x' * (32 << 20) + 'end')", "ok", "",
    ),
    "threads": Case(
        SPIN, "os.sched_setaffinity(0, range(os.cpu_count()))", "crash", "Operation not permitted",
    ),
}  # fmt: skip

# Without numpy: a trial takes a tenth of a second.
MAIN = """import os, struct, sys, time
def array(path, rows):
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows},), }}".encode()
    head += b" " * (117 - len(head)) + b"\\n"
    with open(path, "wb") as stream:
        stream.write(b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(head)) + head + bytes(8 * rows))
phase, *rest = sys.argv[1:]
if phase == "fit":
    train, artefact, seed = rest
    exec(%r)
else:
    inputs, artefact, out = rest
    rows = (os.path.getsize(f"{inputs}/x.npy") - 128) // 8
    array(f"{out}/prediction.npy", rows)
    exec(%r)
"""
DAEMON = """ours, theirs = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(theirs, b"x")
        time.sleep(300)
    os._exit(0)
os.wait()
os.read(ours, 1)
print("left behind")"""
PLACES = "('/tmp', '/dev/shm', os.environ['HOME'])"
LEAVE = f"for place in {PLACES}: open(place + '/left', 'w').write('x')"
LOOK = f"assert not [place for place in {PLACES} if os.listdir(place)]"
ALONE = "assert len([pid for pid in os.listdir('/proc') if pid.isdigit()]) <= 3, os.listdir('/proc')"

SCRIPT = """
import json, os, sys
from pathlib import Path
from labcoat.bench import environment, sandbox
from labcoat.bench.worker import SandboxedBench
from labcoat.task import Task
from labcoat.tree import Code
from tests.bench.conftest import with_numpy
from tests.bench.tiny import alive
with_numpy(environment.prepare([], lambda text: None))
found, seed = {}, 10**8 + os.getpid()  # an argument of every process of a trial
with SandboxedBench(Task.load(Path(sys.argv[1])), sandbox.Bubblewrap(), lambda text: None) as bench:
    bench.prepare()
    for name, main in json.loads(sys.argv[2]).items():
        with bench.trial(Code.of({"main.py": main}), seed) as (outcome, kept):
            first = outcome.executions[0]
            left = alive(str(seed))
            found[name] = [outcome.status, outcome.error, first.stdout, first.exit, len(left), len(outcome.metrics)]
    again = sorted(path.name for path in (bench._scratch.folder).iterdir())
    found["scratch"] = [name for name in again if name.startswith("trial-")]
print(json.dumps(found))
"""

Found = dict[str, list[object]]


@pytest.fixture(scope="module", params=["ourselves", "an ordinary user"])
def found(request: pytest.FixtureRequest, numpy_environment: Environment, shared: Path, bwrap: object) -> Found:
    """What became of all candidates, run by one bench as that user."""
    folder = shared / f"limits-{request.param}-{os.getpid()}".replace(" ", "-")
    folder.mkdir()
    manifest = MANIFEST.replace("timeout = 20", "timeout = 3", 1).replace('"main.py", "', '"-S", "main.py", "')
    make_task(folder / "task", manifest=manifest, main=MAIN % ("", ""))
    candidates = {}
    for name, case in CASES.items():
        for side, lines in (("below", case.below), ("beyond", case.beyond)):
            candidates[f"{name} {side}"] = MAIN % ((lines, "") if case.phase == "fit" else ("", lines))
    candidates["daemon"] = MAIN % (DAEMON, ALONE)
    candidates["leaves"], candidates["looks"] = MAIN % (LEAVE, LOOK), MAIN % (LOOK, LOOK)
    args = [str(folder / "task"), json.dumps(candidates)]
    if request.param == "ourselves":
        done = subprocess.run([sys.executable, "-c", SCRIPT, *args], capture_output=True, text=True, timeout=300,
                              env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
        assert done.returncode == 0, done.stderr
        said = done.stdout
    else:
        said = run_as_nobody(numpy_environment, folder, SCRIPT, *args)
    result: Found = json.loads(said)
    return result


@pytest.mark.parametrize("name", CASES)
def test_what_stays_below_a_limit_gets_its_result(found: Found, name: str) -> None:
    status, error, _, code, *_, metrics = found[f"{name} below"]
    assert (status, error, code) == ("ok", "", 0) and metrics


@pytest.mark.parametrize("name", CASES)
def test_what_exceeds_a_limit_gets_its_status(found: Found, name: str) -> None:
    status, error, *_, metrics = found[f"{name} beyond"]
    assert status == CASES[name].status and CASES[name].said in str(error)
    assert bool(metrics) == (status == "ok")


def test_a_short_log_is_kept_whole_and_a_long_one_at_both_ends(found: Found) -> None:
    assert found["log size below"][2] == "begin" + "x" * 40_000 + "end\n"
    said = str(found["log size beyond"][2])
    assert said.startswith("begin") and said.endswith("end\n") and "bytes left out" in said and len(said) < 1 << 17


def test_nothing_of_a_phase_is_alive_in_the_next_or_after(found: Found) -> None:
    status, error, said, *_ = found["daemon"]
    assert (status, error) == ("ok", "") and said == "left behind\n"
    assert [what[4] for name, what in found.items() if name != "scratch"] == [0] * (len(found) - 1)


def test_nothing_that_a_phase_writes_is_seen_in_the_next_phase_or_trial(found: Found) -> None:
    assert found["leaves"][:2] == found["looks"][:2] == ["ok", ""]
    assert found["scratch"] == []
