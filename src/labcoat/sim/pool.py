"""A pool of long-lived processes that share a list of jobs. What fails, or a process that dies, ends its job only."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from labcoat.errors import LabcoatError

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failure:
    """Why a job gave no result."""

    error: str
    exit_code: int


def run_all(
    work: Callable[[Job], Result], jobs: Iterable[Job], processes: int
) -> Generator[tuple[Job, Result | Failure]]:
    """Each job with its result, in the order in which they end.

    Closing the iterator lets the jobs that run come to their end, and begins no further one. The processes end with
    this one, however it ends.

    Args:
        work: a function of a module; it is called in the processes.
        jobs: plain values.
        processes: how many.
    """
    waiting = iter(jobs)
    busy: dict[Connection, tuple[_Worker[Job, Result], Job]] = {}

    def give(worker: _Worker[Job, Result] | None) -> None:
        """The next job to a process, a new one if need be; where there is none, the process may go."""
        for job in waiting:
            worker = worker or _Worker(work)
            with contextlib.suppress(BrokenPipeError):  # it was killed, which shows when its result is read
                worker.connection.send(job)
            busy[worker.connection] = worker, job
            return
        if worker:
            worker.end()

    try:
        for _ in range(processes):
            give(None)
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                worker, job = busy.pop(connection)
                try:
                    result: Result | Failure = connection.recv()
                except (EOFError, OSError):
                    worker.end()
                    result = Failure("its process was killed; the same command tries again", 1)
                    give(None)
                else:
                    give(worker)
                yield job, result
    finally:
        for worker, _ in busy.values():
            worker.connection.close()
        for worker, _ in busy.values():
            worker.end()


class _Worker(Generic[Job, Result]):
    """One process, and our end of the line to it."""

    def __init__(self, work: Callable[[Job], Result]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self.process.start()
        theirs.close()  # now a process that dies is the end of the line

    def end(self) -> None:
        """Hang up and wait until it has done what it does."""
        self.connection.close()
        self.process.join()


def _serve(connection: Connection, work: Callable[[Job], Result]) -> None:
    """Do jobs until the line ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who gives the jobs
    while True:
        try:
            job = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        result: Result | Failure
        try:
            result = work(job)
        except LabcoatError as error:
            result = Failure(str(error), error.exit_code)
        except Exception as error:  # a defect; the other jobs need not know
            result = Failure(f"{type(error).__name__}: {error}", 1)
        try:
            connection.send(result)
        except (BrokenPipeError, ConnectionResetError):
            return
