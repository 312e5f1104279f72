"""The pool: jobs share processes, and what ends one job ends no other."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from labcoat.errors import CannotRunHere
from labcoat.sim.pool import Failure, run_all

Job = int | str


def run(*jobs: Job, processes: int = 1) -> dict[Job, Job | Failure]:
    return dict(run_all(work, jobs, processes))


def work(job: Job) -> Job:
    match job:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise CannotRunHere("no room")
        case "defect":
            raise RuntimeError("a defect")
        case "pid":
            return os.getpid()
        case str():
            time.sleep(0.3)
            Path(job).touch()
    return job


def test_every_job_gets_its_own_result() -> None:
    assert run(*range(20), processes=2) == {n: n for n in range(20)}


def test_jobs_share_processes() -> None:
    pids = {result for _, result in run_all(work, ["pid"] * 12, 2)}
    assert len(pids) <= 2 and os.getpid() not in pids


def test_what_a_job_raises_is_its_result_and_the_others_go_on() -> None:
    found = run("raise", 1, "defect", 2)
    assert found == {
        "raise": Failure("no room", 3), 1: 1, "defect": Failure("RuntimeError: a defect", 1), 2: 2,
    }  # fmt: skip


def test_a_process_that_is_killed_fails_its_job_and_is_replaced() -> None:
    found = run(1, "die", 2, 3)
    killed = Failure("its process was killed; the same command tries again", 1)
    assert found == {1: 1, "die": killed, 2: 2, 3: 3}


def test_when_nobody_listens_any_more_what_runs_comes_to_its_end_and_nothing_begins(tmp_path: Path) -> None:
    jobs: list[Job] = [1, *(str(tmp_path / name) for name in "abcd")]
    results = run_all(work, jobs, 1)
    assert next(results) == (1, 1)
    results.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]
