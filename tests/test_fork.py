"""A fork shares the first steps of another run and goes live from there: whole or not at all, and paid once."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import labcoat
from labcoat.api import origin_of
from labcoat.bench.outcome import Outcome
from labcoat.bench.simulated import SimulatedBench
from labcoat.budget import LimitReached, Limits
from labcoat.cli.look import show
from labcoat.errors import CannotRunHere, Diverged, InputError
from labcoat.history import History
from labcoat.lab import Lab, Params, Part, Prompt
from labcoat.models import Call, Models, Reply, Usage
from labcoat.models.scripted import ScriptedModel
from labcoat.plan import Confirm, Plan
from labcoat.replaying import replay
from labcoat.running import execute
from labcoat.task import Task
from labcoat.tree import Code

Simulate = Callable[..., History]


def story(history: History, steps: int | None = None) -> list[Any]:
    """The steps as they came about, up to a number."""
    shown = history.to_json()
    return [shown["baseline"], *shown["trials"]][: None if steps is None else steps + 1]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def other(name: str = "openai:other") -> Models:
    """A model that turns one knob further with each call, at a price."""

    def answer(prompt: Prompt, call: Call) -> Reply:
        lines = ["LEARNING_RATE = 0.05", f"EPOCHS = {10 + call.index}", "WEIGHT_DECAY = 0.02", "DROPOUT = 0.5"]
        text = "\n".join(["### FILE: train.py", "```", *lines, "HIDDEN_UNITS = 32", "```"])
        return Reply(text, usage=Usage(input_uncached=1000, output=10))

    return Models({"*": ScriptedModel(answer, name)})


# --- shared, then live ------------------------------------------------------------------------------------------------


def test_a_fork_has_the_shared_steps_and_its_own_from_there(simulate: Simulate) -> None:
    first = simulate("autoresearch", steps=8)
    fork = simulate("autoresearch", steps=8, model=other(), fork=f"{first.folder}:3")
    assert fork.folder.parent.parent == first.folder.parent.parent and fork.folder != first.folder
    assert story(fork, 3) == story(first, 3)
    assert [fork.code(step) for step in fork.steps[:4]] == [first.code(step) for step in first.steps[:4]]
    assert story(fork)[4:] != story(first)[4:] and len(fork.trials) == 8
    assert fork.status == "finished"
    asked = [e["request"]["model"] for e in fork.journal.events if e["kind"] == "edit"]
    assert asked == ["offline:mutate"] * 3 + ["openai:other"] * 5


def test_with_the_same_model_and_more_steps_it_goes_the_same_way_and_further(simulate: Simulate) -> None:
    first = simulate("autoresearch", steps=6)
    fork = simulate("autoresearch", steps=9, fork=f"{first.folder}:2")
    assert story(fork, 6) == story(first)
    assert len(fork.trials) == 9


@pytest.mark.parametrize("step", ["baseline", "0", "best", "5"])
def test_any_step_can_be_the_last_that_is_shared(simulate: Simulate, step: str) -> None:
    first = simulate("autoresearch", steps=5)
    fork = simulate("autoresearch", steps=6, fork=f"{first.folder}:{step}")
    number = first.step(step).number
    assert story(fork, number) == story(first, number)
    assert fork.origin == {"folder": str(first.folder), "step": number}


def test_an_unfinished_run_can_be_forked_and_goes_on_itself(simulate: Simulate, tmp_path: Path) -> None:
    with pytest.raises(LimitReached):
        simulate("autoresearch", steps=8, limits=Limits(calls=9))
    (folder,) = (path.parent for path in tmp_path.rglob("run.json"))
    fork = simulate("autoresearch", steps=8, model=other(), fork=f"{folder}:2")
    whole = simulate("autoresearch", steps=8)
    assert (whole.folder, story(whole, 2)) == (folder, story(fork, 2))


def test_a_batch_can_be_forked_in_its_middle(simulate: Simulate) -> None:
    async def job(lab: Lab) -> None:
        await lab.trial(await lab.edit(lab.brief.baseline, str(lab.rng.random())))

    async def search(lab: Lab, params: Params) -> None:
        while True:
            await lab.parallel([job, job, job])

    first = simulate(search, steps=6)
    fork = simulate(search, steps=6, model=other(), fork=f"{first.folder}:4")
    assert story(fork, 4) == story(first, 4)
    assert fork.ledger.total.calls == 2


def test_a_fork_of_a_fork_shares_both(simulate: Simulate) -> None:
    first = simulate("autoresearch", steps=8)
    second = simulate("autoresearch", steps=8, model=other("openai:b"), fork=f"{first.folder}:2")
    third = simulate("autoresearch", steps=8, model=other("openai:c"), fork=f"{second.folder}:5")
    earlier = simulate("autoresearch", steps=8, model=other("openai:c"), fork=f"{second.folder}:1")
    assert story(third, 5) == story(second, 5)
    assert story(earlier, 1) == story(first, 1)
    asked = [e["request"]["model"] for e in third.journal.events if e["kind"] == "edit"]
    assert asked == ["offline:mutate"] * 2 + ["openai:b"] * 3 + ["openai:c"] * 3
    for run in (second, third, earlier):
        assert replay(labcoat.open_run(run.folder)).finished
    assert third.ledger.total.calls + third.ledger.shared.calls == first.ledger.total.calls


class Narrow(ScriptedModel):
    """A model with little room for a prompt."""

    def room(self, purpose: str) -> int:
        return 20


def test_shared_prompts_keep_the_room_that_they_had(simulate: Simulate) -> None:
    sizes: list[int] = []

    async def search(lab: Lab, params: Params) -> None:
        said: list[str] = []
        while lab.left:
            prompt = Prompt.of([Part("history", "So far:", items=tuple(said))])
            said.append((await lab.ask("edit", prompt)).text)
            await lab.trial(await lab.edit(lab.brief.baseline, said[-1]))

    def answer(prompt: Prompt, call: Call) -> Reply:
        sizes.append(prompt.tokens)
        return Reply("x" * 60)

    wide, narrow = Models({"*": ScriptedModel(answer)}), Models({"*": Narrow(answer, "narrow")})
    first = simulate(search, steps=6, model=wide)
    assert max(sizes[::2]) > 100
    sizes.clear()
    fork = simulate(search, steps=6, model=narrow, fork=f"{first.folder}:4")
    assert max(sizes[::2]) <= 30
    back = simulate(search, steps=6, model=wide, fork=f"{fork.folder}:5")
    assert sizes[-2] > 100
    for run in (fork, back):
        assert run.status == "finished"


# --- identity ---------------------------------------------------------------------------------------------------------


def test_the_same_command_finds_the_same_fork_wherever_its_origin_lies(simulate: Simulate, tmp_path: Path) -> None:
    first = simulate("autoresearch", steps=4)
    options: dict[str, Any] = {"steps": 6, "model": other()}
    with pytest.raises(LimitReached):
        simulate("autoresearch", fork=f"{first.folder}:2", limits=Limits(calls=3), **options)
    fork = simulate("autoresearch", fork=f"{first.folder}:2", **options)
    before = {path: path.read_bytes() for path in files(fork.folder)}
    moved = shutil.copytree(first.folder, tmp_path / "moved")
    assert simulate("autoresearch", fork=f"{moved}:2", **options).folder == fork.folder
    assert {path: path.read_bytes() for path in files(fork.folder)} == before
    assert simulate("autoresearch", fork=f"{moved}:1", **options).folder != fork.folder
    assert simulate("autoresearch", **options).folder != fork.folder


def test_the_record_names_the_origin(simulate: Simulate) -> None:
    first = simulate("autoresearch", steps=4)
    fork = simulate("autoresearch", steps=4, model=other(), fork=f"{first.folder}:2")
    record = json.loads((fork.folder / "run.json").read_text())
    assert record["fork"] == {"folder": str(first.folder), "step": 2}
    assert set(record["spec"]["fork"]) == {"run", "step", "events"}
    assert "fork" not in first.record and "fork" not in first.spec
    assert simulate("random", steps=4).record.get("fork") is None


# --- paid once --------------------------------------------------------------------------------------------------------


def test_what_is_shared_is_not_paid_again_and_shown_apart(
    simulate: Simulate, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = ["openai:a=100,0", "openai:b=1000,0"]
    first = simulate("autoresearch", steps=6, model=other("openai:a"), prices=prices[:1])
    run = partial(
        simulate, "autoresearch", steps=6, model=other("openai:b"), fork=f"{first.folder}:4", prices=prices[1:]
    )
    with pytest.raises(LimitReached, match=r"calls = 2 \(spent 2\)"):
        run(limits=Limits(calls=2, tokens=9000))
    fork = run(limits=Limits(calls=4, usd=40))
    spent, shared = fork.to_json()["spent"], fork.to_json()["fork"]["spent"]
    assert (spent["calls"], spent["usd"]) == (4, pytest.approx(4.0))
    assert (shared["calls"], shared["usd"]) == (8, pytest.approx(0.8))
    assert [of["step"] for of in spent["by_step"]] == [5, 6, None]
    show(fork.folder)
    text = capsys.readouterr().out
    assert re.search(r"^spent +4 model calls, 4,040 tokens, \$4, ", text, re.MULTILINE)
    assert re.search(
        r"^shared +steps 0 to 4 with \S+, which spent 8 model calls, 8,080 tokens, \$0.8, ", text, re.MULTILINE
    )


# --- refused, and nothing is left behind ------------------------------------------------------------------------------


@pytest.fixture
def failing(simulate: Simulate) -> History:
    """A run whose first ideas fail, so that it matters how often one is tried again."""
    answers = ["idea", "no edit", "no edit", "no edit"]
    return simulate("autoresearch", steps=6, model=Models({"*": ScriptedModel(answers * 2, "first")}))


def test_a_change_that_asks_something_else_in_the_shared_part_is_refused(failing: History, simulate: Simulate) -> None:
    before = files(failing.folder.parents[1])
    run = partial(simulate, "autoresearch", steps=6, model=other(), params={"attempts": 1})
    with pytest.raises(InputError) as refused:
        run(fork=f"{failing.folder}:4")
    text = str(refused.value)
    assert f"--fork {failing.folder}:4: what it shares is not what this strategy asks for" in text
    assert "from /3 on; fork at a step before that" in text
    assert "-kind: edit" in text and "+kind: ask" in text
    assert files(failing.folder.parents[1]) == before
    assert run(fork=f"{failing.folder}:1").status == "finished"


def test_fewer_steps_than_are_shared_are_refused(failing: History, simulate: Simulate) -> None:
    with pytest.raises(InputError, match=r"never asks for /\d+, which it shares; fork at a step before that, or give"):
        simulate("autoresearch", steps=2, model=other(), fork=f"{failing.folder}:4")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 1}, r"seed: that run has 0, this one 1; a fork shares it"),
        ({"task": "sim/ridge"}, r"task\.hash: that run has"),
        ({"fork": "{}"}, "write it as RUN:STEP"),
        ({"fork": ":3"}, "write it as RUN:STEP"),
        ({"fork": "{}:7"}, r"no step '7'; it has steps 0 \(the baseline\) to 6"),
        ({"fork": "/nowhere:3"}, "/nowhere: no run there"),
    ],
)
def test_bad_input_is_named(failing: History, simulate: Simulate, options: dict[str, Any], message: str) -> None:
    before = files(failing.folder.parents[1])
    options = {"fork": "{}:3"} | options
    options["fork"] = options["fork"].format(failing.folder)
    with pytest.raises(InputError, match=message):
        simulate("autoresearch", **({"steps": 6, "model": other()} | options))
    assert files(failing.folder.parents[1]) == before


def test_another_sandbox_or_environment_is_refused(failing: History, simulate: Simulate) -> None:
    record = json.loads((failing.folder / "run.json").read_text())
    record["bench"]["environment"]["lock_hash"] = "another"
    (failing.folder / "run.json").write_text(json.dumps(record))
    before = files(failing.folder.parents[1])
    with pytest.raises(InputError, match=r"bench\.environment\.lock_hash: this run was begun with 'another'"):
        simulate("autoresearch", steps=6, model=other(), fork=f"{failing.folder}:3")
    assert files(failing.folder.parents[1]) == before


def test_an_origin_without_its_contents_is_refused(simulate: Simulate) -> None:
    origin = simulate("autoresearch", steps=5).folder
    (origin / "blobs").write_bytes((origin / "blobs").read_bytes()[:500])
    before = files(origin.parents[1])
    with pytest.raises(Diverged, match="ends before what its events name"):
        simulate("autoresearch", steps=6, model=other(), fork=f"{origin}:3")
    assert files(origin.parents[1]) == before


# --- killed -----------------------------------------------------------------------------------------------------------

DYING = """
import os, signal, sys
import labcoat
origin, runs, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = 0
def killer(event, args):
    global seen
    if event in ("open", "os.rename", "os.mkdir") and str(args[0]).startswith(runs):
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)
    if event == "os.rename" and str(args[1]).endswith("run.json"):
        os._exit(0)  # from here on it is a run like any other
sys.addaudithook(killer)
labcoat.run(task="sim/valley", strategy="autoresearch", steps=6, runs=runs, fork=f"{origin}:4")
"""


@pytest.mark.parametrize("pace", [pytest.param(1, marks=pytest.mark.slow), 10])
def test_killed_while_forking_the_same_command_forks(simulate: Simulate, tmp_path: Path, pace: int) -> None:
    """By SIGKILL before every file that it opens, makes or renames, or before some of them."""
    first = simulate("autoresearch", steps=5)
    whole = simulate("autoresearch", steps=6, fork=f"{first.folder}:4")
    deaths = 0
    for last in range(1, 1000, pace):
        runs = tmp_path / f"killed-{last}"
        done = subprocess.run([sys.executable, "-c", DYING, str(first.folder), str(runs), str(last)], check=False)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        deaths += 1
        assert list(runs.rglob("run.json")) == []
        again = labcoat.run(task="sim/valley", steps=6, runs=runs, fork=f"{first.folder}:4")
        assert (story(again), again.status) == (story(whole), "finished")
        assert replay(labcoat.open_run(again.folder)).finished
    assert deaths > 15 / pace


# --- artefacts --------------------------------------------------------------------------------------------------------


class WithArtefacts(SimulatedBench):
    """The simulated bench, leaving what it measured as an artefact, as a real task does."""

    def __init__(self, task: Task, folder: Path, drift: str = "") -> None:
        super().__init__(task)
        self.folder, self.drift, self.tried = folder, drift, 0

    @contextmanager
    def trial(self, code: Code, seed: int) -> Iterator[tuple[Outcome, Path | None]]:
        self.tried += 1
        left = self.folder / "left"
        code.write(left)
        with super().trial(code, seed) as (outcome, _):
            yield replace(outcome, artefact=code.sha + self.drift), left
        shutil.rmtree(left)

    def test(self, artefact: Path | None, code: Code, seed: int) -> Outcome:
        assert artefact is not None
        return replace(super().test(None, code, seed), artefact=Code.read(artefact).sha + self.drift)


async def descend(lab: Lab, params: Params) -> None:
    while lab.left:
        await lab.trial(await lab.edit(lab.brief.baseline, "go"))


def knobs(*epochs: float) -> Models:
    """A model that sets one knob, to another value with each call."""

    def answer(prompt: Prompt, call: Call) -> str:
        text = other().of("*").chat(prompt, call).text
        return text.replace(f"EPOCHS = {10 + call.index}", f"EPOCHS = {epochs[call.index]}")

    return Models({"*": ScriptedModel(answer, f"scripted:{epochs}")})


@pytest.fixture
def improving(tmp_path: Path) -> tuple[Path, Callable[..., Plan]]:
    """A run that improves twice, in its steps 2 and 4, and how others are planned."""
    strategy = labcoat.lab.Strategy("descend", descend)

    def plan(models: Models, fork: str | None = None, confirm: str = "1,0") -> Plan:
        return Plan.of(
            task="sim/valley", strategy=strategy, params=None, model=models, steps=5, seed=0, origin=origin_of(fork),
            confirm=Confirm.parse(confirm),
        )  # fmt: skip

    first = plan(knobs(5, 8, 6, 12, 4))
    return execute(first, tmp_path / "runs", lambda: WithArtefacts(first.task, tmp_path), []), plan


@pytest.mark.parametrize(("step", "again"), [(4, 0), (3, 1)])
def test_the_artefact_of_a_shared_best_is_there_for_the_test(
    improving: tuple[Path, Callable[..., Plan]], tmp_path: Path, step: int, again: int
) -> None:
    """Copied where the origin still keeps it, made again where it keeps a better one."""
    origin, plan = improving
    assert [s.number for s in History(origin).trials if s is History(origin).best] == []
    forked = plan(knobs(5, 5, 5, 4, 4), fork=f"{origin}:{step}")
    bench = WithArtefacts(forked.task, tmp_path)
    folder = execute(forked, tmp_path / "runs", lambda: bench, [])
    history = History(folder)
    assert history.best and history.best.number == {4: 4, 3: 2}[step]
    assert [path.name for path in (folder / "best").iterdir()] == [history.best.outcome.artefact]
    assert history.test_outcome() is not None and bench.tried == again + 5 - step


def test_an_artefact_that_cannot_be_made_again_is_a_reason_to_refuse(
    improving: tuple[Path, Callable[..., Plan]], tmp_path: Path
) -> None:
    origin, plan = improving
    before = files(tmp_path / "runs")
    forked = plan(knobs(5, 5, 5, 4, 4), fork=f"{origin}:3")
    with pytest.raises(CannotRunHere, match="training its code again gives another one; fork at a step where another"):
        execute(forked, tmp_path / "runs", lambda: WithArtefacts(forked.task, tmp_path, "drift"), [])
    assert files(tmp_path / "runs") == before


def test_more_candidates_for_confirm_are_taken_over_too(
    improving: tuple[Path, Callable[..., Plan]], tmp_path: Path
) -> None:
    origin, plan = improving
    forked = plan(knobs(5, 5, 5, 4, 4), fork=f"{origin}:4", confirm="2,1")
    history = History(execute(forked, tmp_path / "runs", lambda: WithArtefacts(forked.task, tmp_path), []))
    assert {step.number for step, _ in history.confirmed()} == {0, 2, 4}
    assert history.status == "finished"


# --- and then as any other run ----------------------------------------------------------------------------------------


def test_a_fork_is_replayed_exported_and_asked_again(simulate: Simulate, tmp_path: Path) -> None:
    first = simulate("autoresearch", steps=6)
    fork = simulate("autoresearch", steps=6, model=other(), fork=f"{first.folder}:3")
    shutil.rmtree(first.folder)
    verified = replay(labcoat.open_run(fork.folder))
    assert (verified.finished, verified.trials) == (True, 6)
    assert labcoat.export_git(fork, tmp_path / "tree.git").is_dir()
    again = simulate("autoresearch", steps=6, model=f"replay:{fork.folder}", runs=tmp_path / "again")
    assert story(again) == story(fork)


def test_replay_finds_a_forged_shared_step(simulate: Simulate) -> None:
    first = simulate("autoresearch", steps=6)
    fork = simulate("autoresearch", steps=6, model=other(), fork=f"{first.folder}:3")
    path = fork.folder / "events.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    next(e for e in events if e["kind"] == "trial")["result"]["metrics"]["score"]["values"] = [0.999]
    path.write_text("".join(json.dumps(e) + "\n" for e in events))
    with pytest.raises(Diverged):
        replay(labcoat.open_run(fork.folder))


def test_the_command_line_says_where_it_goes_on(simulate: Simulate, tmp_path: Path) -> None:
    first = simulate("autoresearch", steps=6)
    done = subprocess.run(
        [sys.executable, "-c", "from labcoat.cli import main; main()", "run", "sim/valley", "--steps", "7", "--runs",
         str(tmp_path / "runs"), "--fork", f"{first.folder}:4"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"going on after step 4 of {first.folder}" in done.stderr
    assert re.findall(r"step (\d)/7", done.stderr) == ["5", "6", "7"]
    assert "shared      steps 0 to 4 with" in done.stdout
