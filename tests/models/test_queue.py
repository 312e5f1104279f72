"""The line before an endpoint, with real processes: first come first served, and no traces of the dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labcoat.cli.progress import Progress
from labcoat.errors import Stopped
from labcoat.history import History
from labcoat.models import Call, Models, Prompt, Reply
from labcoat.models.queue import Queue, Queued, queued
from labcoat.models.scripted import ScriptedModel
from labcoat.plan import Plan

Simulate = Callable[..., History]

USER = """
import sys, time
from pathlib import Path
from labcoat.models.queue import Queue
folder, slots, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
told = []
def waiting(before):
    if not told:
        told.append(before)
        print("waits", flush=True)
with Queue(folder, slots).slot(waiting):
    print("in", time.monotonic(), flush=True)
    time.sleep(seconds)
    print("out", time.monotonic(), flush=True)
"""


class User:
    """A process that takes a slot, holds it for a while and leaves."""

    def __init__(self, folder: Path, slots: int, seconds: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(folder), str(slots), str(seconds)], stdout=subprocess.PIPE, text=True
        )

    def says(self, word: str) -> float:
        """Read up to that word; return the time that stands behind it."""
        assert self.process.stdout
        for line in self.process.stdout:
            said, *when = line.split()
            if said == word:
                return float(when[0]) if when else 0.0
        raise AssertionError(f"ended before it said {word}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Callable[[int, float], User]]:
    users: list[User] = []

    def user(slots: int, seconds: float) -> User:
        users.append(User(tmp_path, slots, seconds))
        return users[-1]

    yield user
    for one in users:
        one.kill()
        assert one.process.stdout
        one.process.stdout.close()


def left(folder: Path) -> set[str]:
    return {name for name in os.listdir(folder) if name.startswith("ticket")}


Line = Callable[[int, float], User]


def test_there_are_never_more_at_once_and_all_are_served(line: Line, tmp_path: Path) -> None:
    users = [line(2, 0.1) for _ in range(8)]
    spans = [(user.says("in"), user.says("out")) for user in users]
    for begin, _ in spans:
        assert sum(other <= begin < end for other, end in spans) <= 2
    assert left(tmp_path) == set()


def test_who_came_first_is_served_first(line: Line, tmp_path: Path) -> None:
    holder = line(1, 60)
    holder.says("in")
    waiters = []
    for _ in range(6):
        waiters.append(line(1, 0.01))
        waiters[-1].says("waits")
    holder.kill()
    served = [user.says("in") for user in waiters]
    assert served == sorted(served)
    assert left(tmp_path) == set()


def test_a_holder_that_is_killed_gives_its_slot_free(line: Line, tmp_path: Path) -> None:
    holders = [line(2, 60), line(2, 60)]
    for holder in holders:
        holder.says("in")
    waiter = line(2, 0)
    waiter.says("waits")
    begin = time.monotonic()
    holders[1].kill()
    waiter.says("out")
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("dying", [0, 1, 2])
def test_a_waiter_that_is_killed_is_passed_over_and_the_order_stays(line: Line, tmp_path: Path, dying: int) -> None:
    holder = line(1, 60)
    holder.says("in")
    waiters = []
    for _ in range(3):
        waiters.append(line(1, 0.01))
        waiters[-1].says("waits")
    waiters.pop(dying).kill()
    late = line(1, 0.01)
    late.says("waits")
    os.kill(holder.process.pid, signal.SIGKILL)
    served = [user.says("in") for user in [*waiters, late]]
    assert served == sorted(served)
    assert left(tmp_path) == set()


def test_the_ticket_of_a_last_one_that_was_killed_is_no_obstacle(line: Line, tmp_path: Path) -> None:
    holder = line(1, 60)
    holder.says("in")
    waiter = line(1, 0)
    waiter.says("waits")
    waiter.kill()
    holder.kill()
    assert left(tmp_path) == {"ticket-1"}
    told: list[int] = []
    with Queue(tmp_path, 1).slot(told.append):
        assert told == []
    assert left(tmp_path) == set()


def test_waiters_sleep_and_only_the_first_looks(line: Line, tmp_path: Path) -> None:
    holder = line(1, 60)
    holder.says("in")
    waiters = []
    for _ in range(4):
        waiters.append(line(1, 0))
        waiters[-1].says("waits")

    def switches(user: User) -> int:
        """How often the process went to sleep of its own."""
        status = Path(f"/proc/{user.process.pid}/status").read_text()
        return int(status.split("voluntary_ctxt_switches:")[1].split()[0])

    before = [switches(user) for user in waiters]
    time.sleep(0.5)
    woken = [switches(user) - count for user, count in zip(waiters, before, strict=True)]
    assert max(woken[1:]) <= 1, "one may still have been on its way to sleep"
    assert 2 < woken[0] < 30


def test_an_interrupted_waiter_leaves_the_line(line: Line, tmp_path: Path) -> None:
    holder = line(1, 60)
    holder.says("in")
    waiters = [line(1, 0), line(1, 0)]
    for waiter in waiters:
        waiter.says("waits")
    for waiter in waiters:
        waiter.process.send_signal(signal.SIGINT)
        waiter.process.wait(10)
    assert left(tmp_path) == set()


def test_threads_of_one_process_stand_in_the_same_line(tmp_path: Path) -> None:
    inside, most = 0, 0

    def use() -> None:
        nonlocal inside, most
        with Queue(tmp_path, 2).slot(lambda before: None):
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
            inside -= 1

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2


def test_a_free_slot_costs_next_to_nothing(tmp_path: Path) -> None:
    queue = Queue(tmp_path, 4)
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        with queue.slot(lambda before: None):
            times.append(time.perf_counter() - begin)
    assert sorted(times)[25] < 0.002


# --- a model behind it ------------------------------------------------------------------------------------------------


class Remote(ScriptedModel):
    """A scripted model that says that it asks an endpoint."""

    model, place, url, at_once = "some/model", "Open Router", "https://openrouter.example/api/v1", 1


@contextmanager
def held(folder: Path, seconds: float) -> Iterator[None]:
    """Another process at the endpoint for that long."""
    user = User(folder, 1, seconds)
    user.says("in")
    try:
        yield
    finally:
        user.kill()
        assert user.process.stdout
        user.process.stdout.close()


def test_a_limited_endpoint_has_a_line_of_its_own_and_others_have_none(tmp_path: Path) -> None:
    class Elsewhere(Remote):
        url = "https://elsewhere.example/v1"

    class Unlimited(Remote):
        at_once = None  # type: ignore[assignment]

    plain, unlimited = ScriptedModel([]), Unlimited([])
    models = queued(
        Models({"a": Remote([]), "b": Remote([], "other"), "c": Elsewhere([]), "d": plain, "e": unlimited}),
        lambda: tmp_path,
    )
    assert [type(models.of(purpose)) for purpose in "abc"] == [Queued] * 3
    assert (models.of("d"), models.of("e")) == (plain, unlimited)
    assert sorted(path.name.rpartition("-")[0] for path in tmp_path.iterdir()) == ["open-router", "open-router"]
    assert models.spec == {"a": "scripted", "b": "other", "c": "scripted", "d": "scripted", "e": "scripted"}


def test_a_run_says_that_it_waits_and_waiting_is_no_time_of_its_own(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Remote(lambda prompt, call: Reply("no edit", cost=0.0, latency=0.01))
    plan = Plan.of(task="sim/valley", strategy="random", params=None, model=Models({"*": model}), steps=2, seed=0)
    progress = Progress(plan, Path("nowhere"))
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        home.chmod(0o755)  # as root, workers are other users and must reach it
        monkeypatch.setenv("LABCOAT_HOME", made)
        (home / "queues").mkdir()
        queued(Models({"*": model}), lambda: home / "queues")
        (folder,) = (home / "queues").iterdir()
        with held(folder, 1):
            history = simulate("random", steps=2, model=Models({"*": model}), observers=[progress])
    assert "  waiting for Open Router, which takes 1 call at once; 0 before" in capsys.readouterr().err
    told = [event for event in history.journal.events if event["kind"] == "endpoint"]
    assert [event["result"]["says"] for event in told] == [
        "waiting for Open Router, which takes 1 call at once; 0 before this one"
    ]
    calls = [e for e in history.journal.events if e["kind"] in ("ask", "edit")]
    replies = [call["result"]["reply"] for call in calls]
    assert 0.3 < replies[0]["waited"] < 1.1
    assert calls[0]["seconds"] < replies[0]["waited"] / 2
    assert [reply["waited"] for reply in replies[1:]] == [0.0] * 3
    assert {reply["latency"] for reply in replies} == {0.01}


def test_an_endpoint_that_fails_gives_its_slot_free(tmp_path: Path) -> None:
    def away(prompt: Prompt, call: Call) -> Reply:
        raise Stopped("away")

    model = queued(Models({"*": Remote(away)}), lambda: tmp_path).of("*")
    for _ in range(2):
        with pytest.raises(Stopped):
            model.chat(Prompt.of([]), Call("idea", "/0", 0, 0))
