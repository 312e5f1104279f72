"""Processes: streams, limits, and that nothing stays alive."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator

import pytest

from labcoat.bench import process
from labcoat.bench.streams import Echo, HeadTail
from labcoat.errors import CannotRunHere
from tests.bench.tiny import DAEMONS, PYTHON, alive

ENV = {"PATH": os.environ["PATH"]}


def python(code: str, *args: str, timeout: float = 20, memory_mb: int | None = None) -> process.Finished:
    return process.run([PYTHON, "-S", "-c", code, *args], env=ENV, timeout=timeout, memory_mb=memory_mb)


@pytest.fixture
def marker() -> Iterator[str]:
    """An argument by which the processes of one test are found; none may be left 2 s after it."""
    text = f"marker-{uuid.uuid4().hex}"
    yield text
    give_up = time.monotonic() + 2
    while left := alive(text):
        if time.monotonic() > give_up:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            pytest.fail(f"still alive: {left}")
        time.sleep(0.02)


def test_exit_streams_and_time() -> None:
    done = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.exit, done.stdout, done.stderr, done.ended) == (3, "out\n", "err\n", None)
    assert 0 < done.seconds < 10
    assert python("import os; os.kill(os.getpid(), 9)").exit == -9


def test_standard_input_is_empty_and_nothing_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "x")
    done = python("import os, sys; print(repr(sys.stdin.read()), sorted(os.environ), os.listdir('/proc/self/fd'))")
    names = done.stdout.split("[")[1]
    assert done.stdout.startswith("''") and "SECRET_KEY" not in names
    assert done.stdout.count("'") - 2 - names.count("'") == 2 * 4  # 0, 1, 2 and the listing itself


def test_a_gigabyte_of_output_is_capped() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = process.run(["sh", "-c", "echo start; head -c 1000000000 /dev/zero; echo end"], env=ENV, timeout=60)
    assert done.stdout.startswith("start\n") and done.stdout.endswith("end\n")
    assert len(done.stdout) < 80_000 and "bytes left out" in done.stdout
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB


def test_timeout_keeps_what_was_said(marker: str) -> None:
    done = python("import time; print('said', flush=True); time.sleep(100)", marker, timeout=0.5)
    assert (done.exit, done.ended, done.stdout) == (None, "timeout", "said\n")
    assert done.seconds < 5


def test_timeout_holds_when_the_streams_are_closed(marker: str) -> None:
    done = python("import os, time; os.close(1); os.close(2); time.sleep(100)", marker, timeout=0.5)
    assert done.ended == "timeout"
    assert python("import os; os.close(1); os.close(2); os._exit(4)", marker).exit == 4


def test_memory_is_watched_over_the_whole_tree(marker: str) -> None:
    hog = "import os, time\nfor _ in range(3): os.fork()\nx = b'x' * (40 << 20)\ntime.sleep(100)"
    done = python(hog, marker, memory_mb=150)
    assert (done.exit, done.ended) == (None, "memory")
    assert done.peak_memory > 150 << 20


def test_memory_of_a_process_whose_first_thread_has_ended(marker: str) -> None:
    hog = """import ctypes, threading, time
def grow():
    x = b'x' * (200 << 20); time.sleep(100)
threading.Thread(target=grow).start()
ctypes.CDLL(None).pthread_exit(None)"""
    assert python(hog, marker, memory_mb=150, timeout=10).ended == "memory"


def test_shared_memory_counts_once(marker: str) -> None:
    shared = "import os, time\nx = b'x' * (80 << 20)\nfor _ in range(2): os.fork()\ntime.sleep(0.5)"
    done = python(shared, marker, memory_mb=200)
    assert (done.exit, done.ended) == (0, None)
    assert 80 << 20 < done.peak_memory < 200 << 20


def test_daemons_are_ended_when_the_command_ends(marker: str) -> None:
    done = python(DAEMONS, marker)
    assert done.exit == 0 and done.stdout.count("daemon") <= 2
    assert done.seconds < 5  # they hold the streams open, which must not keep us
    assert not alive(marker)


def test_daemons_are_ended_at_a_limit(marker: str) -> None:
    done = python(DAEMONS + "time.sleep(100)", marker, timeout=0.7)
    assert done.ended == "timeout" and done.stdout.count("daemon") == 2
    assert not alive(marker)


def test_an_interrupt_ends_the_tree_before_it_goes_on(marker: str) -> None:
    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            python(DAEMONS + "time.sleep(100)", marker)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert not alive(marker)


def test_an_unrelated_child_of_ours_lives_on(marker: str) -> None:
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        python(DAEMONS, marker)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_lines_are_echoed_as_they_come() -> None:
    lines: list[str] = []
    process.run(["sh", "-c", "echo one; echo two; printf rest"], env=ENV, timeout=10, echo=lines.append)
    assert lines == ["one", "two"]


def test_only_the_main_thread_may_start() -> None:
    caught: list[BaseException] = []

    def start() -> None:
        try:
            process.run(["true"], env=ENV, timeout=5)
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


def test_a_command_that_does_not_exist() -> None:
    with pytest.raises(CannotRunHere, match="cannot start no-such-program"):
        process.run(["no-such-program"], env=ENV, timeout=5)


def test_head_and_tail() -> None:
    sink = HeadTail(head=4, tail=3)
    for part in (b"ab", b"cdef", b"", b"g"):
        sink.feed(part)
    assert sink.text() == "abcdefg"
    sink.feed(b"hijk")
    assert sink.text() == "abcd\n... [4 bytes left out] ...\nijk"


def test_echo_never_holds_a_long_line() -> None:
    echo = Echo(lambda line: None)
    for _ in range(10):
        echo.feed(b"x" * 100_000)
    assert len(echo._rest) <= 16 << 10
