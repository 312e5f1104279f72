"""One run from beginning to end: killed, resumed, refused, replayed."""

from __future__ import annotations

import json
import os
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
from signal import raise_signal
from typing import Any

import pytest

import labcoat
from labcoat import catalog
from labcoat.bench.outcome import Outcome
from labcoat.bench.simulated import SimulatedBench
from labcoat.driver import Driver
from labcoat.errors import CannotRunHere, Diverged, InputError, RunBusy, StrategyError
from labcoat.history import History
from labcoat.journal import read_events
from labcoat.lab import Lab, Params, Strategy
from labcoat.models import Call, Models, Prompt
from labcoat.models.scripted import ScriptedModel
from labcoat.plan import Plan
from labcoat.replaying import replay
from labcoat.running import changed_since, execute
from labcoat.task import Task
from labcoat.tree import Code
from tests.testing.strategies import BATCHES

Simulate = Callable[..., History]

CONTROLLER = """
import os, signal, sys
import labcoat
from pathlib import Path
from labcoat.journal import read_events
stop_after, runs = int(sys.argv[1]), sys.argv[2]
begun = {e["key"] for path in Path(runs).rglob("events.jsonl") for e in read_events(path) if e["state"] == "started"}
seen = 0
def killer(event):
    global seen
    # Each boundary once: a trial that is begun again after a death here is no new one.
    seen += not (event["state"] == "started" and event["key"] in begun)
    if seen == stop_after:
        os.kill(os.getpid(), signal.SIGKILL)
labcoat.run(task="sim/ridge", strategy="autoresearch", steps=12, seed=3, runs=runs, observers=[killer])
"""


def run_and_kill(runs: Path, after: int) -> int:
    """A controller in a process of its own that dies by SIGKILL after its n-th event; 0 means it finished before."""
    return subprocess.run([sys.executable, "-c", CONTROLLER, str(after), str(runs)], check=False).returncode


def story(history: History) -> Any:
    """All that must not depend on interruptions."""
    data = history.to_json()
    for name in ("folder", "spent"):
        del data[name]
    return json.loads(json.dumps(data))


def test_killed_at_every_event_boundary_the_run_comes_out_the_same(tmp_path: Path, simulate: Simulate) -> None:
    whole = simulate("autoresearch", task="sim/ridge", steps=12, seed=3, runs=tmp_path / "whole")
    runs = tmp_path / "killed"
    deaths = 0
    while run_and_kill(runs, after=1) == -signal.SIGKILL:
        deaths += 1
        assert deaths < 200
    killed = History.find(runs)
    assert deaths == len([e for e in whole.journal.events if e["kind"] != "opened"])
    assert story(killed) == story(whole)
    assert [e["key"] for e in killed.journal.events if e["state"] == "finished"] == [
        e["key"] for e in whole.journal.events if e["state"] == "finished"
    ]


@pytest.mark.parametrize("after", [2, 5, 17])
def test_killed_now_and_then_the_run_comes_out_the_same(tmp_path: Path, simulate: Simulate, after: int) -> None:
    whole = simulate("autoresearch", task="sim/ridge", steps=12, seed=3, runs=tmp_path / "whole")
    while run_and_kill(tmp_path / "killed", after):
        pass
    assert story(History.find(tmp_path / "killed")) == story(whole)


def test_every_prefix_of_the_events_resumes_to_the_same_end(tmp_path: Path, simulate: Simulate) -> None:
    whole = simulate("autoresearch", task="sim/ridge", steps=12, seed=3)
    lines = (whole.folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    expected = story(whole)
    for length in range(len(lines)):
        (whole.folder / "events.jsonl").write_bytes(b"".join(lines[:length]) + lines[length][:10])
        assert story(simulate("autoresearch", task="sim/ridge", steps=12, seed=3)) == expected


def test_a_finished_run_returns_at_once_and_writes_nothing(simulate: Simulate) -> None:
    first = simulate("random", steps=3)
    before = {p.name: p.read_bytes() for p in first.folder.iterdir() if p.is_file()}
    again = simulate("random", steps=3)
    assert {p.name: p.read_bytes() for p in again.folder.iterdir() if p.is_file()} == before


def test_of_two_controllers_one_works_and_the_other_is_told(tmp_path: Path, simulate: Simulate) -> None:
    holding = CONTROLLER.replace("os.kill(os.getpid(), signal.SIGKILL)", "print('in', flush=True); input()")
    with subprocess.Popen(
        [sys.executable, "-c", holding, "5", str(tmp_path / "runs")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as first:  # fmt: skip
        assert first.stdout and first.stdin
        assert first.stdout.readline() == "in\n"
        with pytest.raises(RunBusy, match=f"process {first.pid} on"):
            simulate("autoresearch", task="sim/ridge", steps=12, seed=3)
        first.stdin.write("\n")
        first.stdin.flush()
        assert first.wait(30) == 0
    assert simulate("autoresearch", task="sim/ridge", steps=12, seed=3).status == "finished"


def test_another_spec_is_another_folder_and_another_seed_lies_beside(simulate: Simulate) -> None:
    folders = [
        simulate("random", steps=2).folder,
        simulate("random", steps=2, seed=1).folder,
        simulate("random", steps=3).folder,
        simulate("autoresearch", steps=2).folder,
        simulate("autoresearch", steps=2, params={"attempts": "1"}).folder,
    ]
    assert len(set(folders)) == 5
    assert folders[0].parent == folders[1].parent != folders[2].parent


def test_the_record_says_what_ran(simulate: Simulate) -> None:
    history = simulate("autoresearch", steps=1)
    record = json.loads((history.folder / "run.json").read_text())
    assert record["labcoat"] == labcoat.__version__
    assert record["spec"]["strategy"]["params"] == {"attempts": 3, "debug_from": "crashed"}
    assert "async def search" in record["strategy_source"]["autoresearch.py"]
    assert set(record["prompts"]) == {"autoresearch.idea.md", "autoresearch.debug.md", "edit.md"}


class WithArtefacts(SimulatedBench):
    """The simulated bench, leaving what it measured as an artefact, as a real task does."""

    def __init__(self, task: Task, folder: Path) -> None:
        super().__init__(task)
        self.folder = folder

    @contextmanager
    def trial(self, code: Code, seed: int) -> Iterator[tuple[Outcome, Path | None]]:
        left = self.folder / "left"
        code.write(left)
        with super().trial(code, seed) as (outcome, _):
            yield replace(outcome, artefact=code.sha), left
        shutil.rmtree(left)

    def test(self, artefact: Path | None, code: Code, seed: int) -> Outcome:
        assert artefact is not None
        return replace(super().test(None, code, seed), artefact=Code.read(artefact).sha)


def test_from_every_prefix_the_artefact_of_the_best_is_there_for_the_test_and_alone(tmp_path: Path) -> None:
    plan = Plan.of(
        task="sim/valley", strategy="autoresearch", params=None, model="offline:mutate", steps=12, seed=0
    )  # fmt: skip
    run = partial(execute, plan, make_bench=lambda: WithArtefacts(plan.task, tmp_path), observers=[])
    first = run(runs=tmp_path / "runs")
    assert sum(step.number in {s.parent for s in History(first).steps} for step in History(first).trials) > 2
    lines = (first / "events.jsonl").read_bytes().splitlines(keepends=True)
    expected = story(History(first))

    def stop_at(length: int, event: dict[str, Any]) -> None:
        if sum(e["kind"] != "opened" for e in read_events(folder / "events.jsonl")) == length:
            raise_signal(signal.SIGINT)

    for length in range(1, len(lines) - 1):
        folder = plan.folder(tmp_path / str(length))
        with pytest.raises(KeyboardInterrupt):
            run(runs=tmp_path / str(length), observers=[partial(stop_at, length)])
        run(runs=tmp_path / str(length))
        history = History(folder)
        assert story(history) == expected
        best = history.best
        assert best is not None
        assert [path.name for path in (folder / "best").iterdir()] == [best.outcome.artefact]


def test_a_batch_that_was_carried_out_in_part_keeps_the_artefact_of_a_job_that_is_yet_to_be_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(prompt: Prompt, call: Call) -> str:
        epochs = 20 if call.key.startswith("/0.1/") else 7  # the second job is the better one
        text = re.sub(r"EPOCHS = \d+", f"EPOCHS = {epochs}", prompt.files["train.py"])
        return f"### FILE: train.py\n```python\n{text}\n```"

    models = Models({"*": ScriptedModel(answer)})
    plan = Plan.of(task="sim/valley", strategy=BATCHES, params={"width": 2}, model=models, steps=2, seed=0)
    run = partial(execute, plan, tmp_path, lambda: WithArtefacts(plan.task, tmp_path))

    def stop(event: dict[str, Any]) -> None:
        if (event["kind"], event["state"]) == ("trial", "finished"):
            raise_signal(signal.SIGINT)

    with monkeypatch.context() as backwards, pytest.raises(KeyboardInterrupt):
        backwards.setattr(Driver, "_order", lambda driver, jobs: range(jobs - 1, -1, -1))
        run([stop])
    history = History(run([]))
    assert [step.key for step in history.trials] == ["/0.0/2", "/0.1/2"]
    assert history.status == "finished"
    assert history.chosen is not None and history.chosen.number == 2


@pytest.mark.parametrize(
    ("change", "message"), [(shutil.rmtree, "missing"), (lambda path: (path / "new").write_text(""), "was changed")]
)
def test_only_what_was_validated_is_tested(tmp_path: Path, change: Callable[[Path], object], message: str) -> None:
    plan = Plan.of(task="sim/valley", strategy="random", params=None, model="offline:mutate", steps=3, seed=0)
    folder = plan.folder(tmp_path)

    def meddle(event: dict[str, Any]) -> None:
        if event["kind"] == "confirm":
            change(next((folder / "best").iterdir()))

    with pytest.raises(CannotRunHere, match=message):
        execute(plan, tmp_path, lambda: WithArtefacts(plan.task, tmp_path), [meddle])


# --- refused, with file, field and remedy -----------------------------------------------------------------------------


def tamper(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    record = json.loads((folder / "run.json").read_text())
    change(record)
    (folder / "run.json").write_text(json.dumps(record))


def test_a_folder_of_another_spec_is_refused_by_field(simulate: Simulate) -> None:
    folder = simulate("random", steps=2).folder
    tamper(folder, lambda r: r["spec"]["strategy"].update(source="0" * 64))
    with pytest.raises(InputError, match=r"run\.json: spec\.strategy\.source: .* move the folder away"):
        simulate("random", steps=2)


def test_a_folder_of_a_later_version_is_refused(simulate: Simulate) -> None:
    folder = simulate("random", steps=2).folder
    tamper(folder, lambda r: r.update(v=99))
    with pytest.raises(InputError, match=r"run\.json: v: written by labcoat .* update labcoat"):
        simulate("random", steps=2)
    with pytest.raises(InputError, match=r"run\.json: v:"):
        labcoat.open_run(folder)


def test_another_sandbox_is_refused_on_resume(simulate: Simulate) -> None:
    folder = simulate("random", steps=2).folder
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    (folder / "events.jsonl").write_text("".join(lines[:5]))
    tamper(folder, lambda r: r["bench"]["sandbox"].update(level="bwrap"))
    with pytest.raises(InputError, match=r"bench\.sandbox\.level: this run was begun with 'bwrap'"):
        simulate("random", steps=2)


def test_a_changed_prompt_of_the_editor_is_refused_on_resume(simulate: Simulate) -> None:
    folder = simulate("random", steps=2).folder
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    (folder / "events.jsonl").write_text("".join(lines[:5]))
    tamper(folder, lambda r: r["prompts"].update({"edit.md": "0" * 64}))
    with pytest.raises(InputError, match=r"run\.json: prompts\.edit\.md: this prompt has changed"):
        simulate("random", steps=2)


def test_a_run_whose_strategy_changed_since_is_pointed_out(tmp_path: Path, simulate: Simulate) -> None:
    folder = simulate("random", steps=2, runs=tmp_path).folder
    tamper(folder, lambda r: r["spec"]["strategy"].update(source="0" * 64))
    old = folder.parent.parent / "random-00000000"
    folder.parent.rename(old)
    plan = Plan.of(task="sim/valley", strategy="random", params=None, model="offline:mutate", steps=2, seed=0)
    assert changed_since(plan, tmp_path) == [(old / "0", ["strategy.source"])]
    other = Plan.of(task="sim/valley", strategy="random", params=None, model="offline:mutate", steps=3, seed=0)
    assert changed_since(other, tmp_path) == []


def test_a_run_whose_model_had_other_parameters_is_pointed_out(tmp_path: Path, simulate: Simulate) -> None:
    def models(name: str) -> Models:
        return Models({"*": ScriptedModel(["no edit"] * 4, name)})

    begun = simulate("random", steps=2, model=models("openai:x@mine"), runs=tmp_path).folder
    for name, found in (('openai:x@mine {"seed":1}', [(begun, ["models.*"])]), ("openai:y@mine", [])):
        plan = Plan.of(task="sim/valley", strategy="random", model=models(name), steps=2, seed=0)
        assert changed_since(plan, tmp_path) == found


def test_a_finished_run_of_another_sandbox_level_is_no_answer(simulate: Simulate) -> None:
    folder = simulate("random", steps=2).folder
    tamper(folder, lambda r: r["bench"]["sandbox"].update(level="none"))
    assert simulate("random", steps=2).warnings[0].startswith("unsandboxed")
    with pytest.raises(
        InputError, match=r"bench\.sandbox\.level: this run was begun with 'none', 'bwrap' is asked for"
    ):
        simulate("random", steps=2, sandbox="bwrap")


def test_a_baseline_that_fails_is_measured_again_on_resume(tmp_path: Path) -> None:
    mine = tmp_path / "task"
    shutil.copytree(catalog.find("sim/valley").folder, mine)
    good = (mine / "simulate.py").read_text()
    flag = tmp_path / "fail"
    flag.write_text("")
    check = f"    if __import__('os').path.exists({str(flag)!r}):\n        raise ValueError('not today')\n"
    (mine / "simulate.py").write_text(good.replace("    distance = 0.0\n", check + "    distance = 0.0\n"))
    with pytest.raises(CannotRunHere, match=r"its baseline fails here \(crash\)[^$]*not today"):
        labcoat.run(task=str(mine), strategy="random", steps=2, runs=tmp_path / "runs")
    flag.unlink()
    assert labcoat.run(task=str(mine), strategy="random", steps=2, runs=tmp_path / "runs").status == "finished"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def simulate(:", "simulation.module: SyntaxError"),
        ("x = 1", "simulation.module: AttributeError"),
        ("def simulate(constants, split, seed):\n    return [].x", "simulation.module failed: AttributeError"),
    ],
)
def test_a_broken_simulation_is_the_tasks_error(tmp_path: Path, text: str, message: str) -> None:
    mine = tmp_path / "task"
    shutil.copytree(catalog.find("sim/valley").folder, mine)
    (mine / "simulate.py").write_text(text)
    with pytest.raises(InputError, match=message):
        labcoat.run(task=str(mine), strategy="random", steps=2, runs=tmp_path / "runs")


def test_a_broken_record_is_named(simulate: Simulate) -> None:
    folder = simulate("random", steps=2).folder
    (folder / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json: not a record of labcoat"):
        simulate("random", steps=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "sim/vally"}, "did you mean sim/valley"),
        ({"strategy": "autoreserch"}, "did you mean autoresearch"),
        ({"model": "gpt"}, "unknown model 'gpt'"),
        ({"model": "replay:/nowhere"}, "no run there"),
        ({"model": "scripted:/nowhere"}, "scripted:/nowhere"),
        ({"model": "idea=offline:mutate,edit"}, "'edit' is not PURPOSE=MODEL"),
        ({"steps": 0}, "--steps 0"),
        ({"seed": -1}, "--seed -1"),
        ({"params": {"attempts": 0}}, "attempts: Input should be greater"),
        ({"params": {"nonsense": 1}}, "nonsense: no such parameter"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"task": "sim/valley", "strategy": "autoresearch", "steps": 2, "runs": tmp_path} | options
    with pytest.raises(InputError, match=message):
        labcoat.run(**given)
    assert list(tmp_path.iterdir()) == []


def test_runs_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(labcoat.errors.LabcoatError, match="choose another place with --runs"):
        labcoat.run(task="sim/valley", strategy="random", steps=1, runs=tmp_path / "file")


# --- replay -----------------------------------------------------------------------------------------------------------


def test_replay_re_executes_every_decision_and_changes_nothing(simulate: Simulate) -> None:
    history = simulate("autoresearch", task="sim/ridge", steps=12)
    before = {p.name: p.read_bytes() for p in history.folder.iterdir() if p.is_file()}
    verified = replay(labcoat.open_run(history.folder))
    finished = [e for e in history.journal.events if e["state"] == "finished"]
    assert (verified.decisions, verified.trials, verified.finished) == (len(finished), 12, True)
    assert {p.name: p.read_bytes() for p in history.folder.iterdir() if p.is_file()} == before


def test_replay_of_an_unfinished_run_verifies_what_there_is(simulate: Simulate) -> None:
    history = simulate("autoresearch", steps=5)
    lines = (history.folder / "events.jsonl").read_text().splitlines(keepends=True)
    (history.folder / "events.jsonl").write_text("".join(lines[:9]))
    verified = replay(labcoat.open_run(history.folder))
    assert not verified.finished
    assert "not finished (stopped)" in verified.text


def edit_event(folder: Path, key: str, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "events.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    change(next(e for e in events if e["key"] == key and e["state"] == "finished"))
    path.write_text("".join(json.dumps(e) + "\n" for e in events))


def forge_value(event: dict[str, Any]) -> None:
    event["result"]["metrics"]["score"]["values"] = [0.999]


def forge_code(event: dict[str, Any]) -> None:
    event["result"]["changes"] = {}


def forge_status(event: dict[str, Any]) -> None:
    event["result"]["status"] = "ok"


def test_replay_finds_a_forged_metric(simulate: Simulate) -> None:
    history = simulate("autoresearch", steps=6)
    edit_event(history.folder, history.trials[2].key, forge_value)
    with pytest.raises(Diverged):
        replay(labcoat.open_run(history.folder))


def test_replay_finds_code_that_the_reply_does_not_give(simulate: Simulate) -> None:
    history = simulate("autoresearch", steps=6)
    edit_event(history.folder, "/1", forge_code)
    with pytest.raises(Diverged, match="another code than was recorded"):
        replay(labcoat.open_run(history.folder))


def test_replay_finds_a_violation_that_was_made_valid(simulate: Simulate) -> None:
    code = 'LEARNING_RATE = 0.064\nBATCH_SIZE = 32\nWIDTH = 4000\nDEPTH = 16\nNORMALISE = True\nSCHEDULE = "cosine"'
    model = Models({"*": ScriptedModel(lambda prompt, call: f"### FILE: train.py\n```python\n{code}\n```")})
    history = simulate("random", task="sim/ridge", steps=1, model=model)
    assert history.trials[0].outcome.status == "violation"
    edit_event(history.folder, history.trials[0].key, forge_status)
    with pytest.raises(Diverged):
        replay(labcoat.open_run(history.folder))


@pytest.mark.parametrize("key", ["/2", "/0", "begin", "confirm"])
def test_replay_finds_a_forged_request(simulate: Simulate, key: str) -> None:
    history = simulate("autoresearch", steps=3)

    def forge(event: dict[str, Any]) -> None:
        event["request"] |= {"parent": "/5", "chosen": "/8", "task": "x"}

    edit_event(history.folder, key, forge)
    with pytest.raises(Diverged, match="its request is not the one that was performed"):
        replay(labcoat.open_run(history.folder))


def test_replay_finds_another_baseline_and_another_manifest(simulate: Simulate) -> None:
    folder = simulate("autoresearch", steps=3).folder
    edit_event(folder, "begin", lambda e: e["result"].update(code={}))
    with pytest.raises(Diverged, match="baseline"):
        replay(labcoat.open_run(folder))
    folder = simulate("random", steps=3).folder
    tamper(folder, lambda r: r["task"]["metric"].update(unit="points"))
    with pytest.raises(Diverged, match=r"run\.json: task"):
        replay(labcoat.open_run(folder))


def test_replay_finds_what_was_recorded_and_is_never_asked_for(simulate: Simulate) -> None:
    folder = simulate("autoresearch", steps=3).folder
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    extra = next(e for e in events if e["key"] == "/0") | {"key": "/99"}
    (folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in [*events, extra]))
    with pytest.raises(Diverged, match="never asks for it: /99"):
        replay(labcoat.open_run(folder))


def test_the_api_replays_and_exports_what_it_ran(tmp_path: Path) -> None:
    async def search(lab: Lab, params: Params) -> None:
        await lab.trial(await lab.edit(lab.brief.baseline, "go"))

    mine = Strategy("mine", search)
    run = labcoat.run(task="sim/valley", strategy=mine, steps=1, runs=tmp_path)
    assert labcoat.replay(run, strategy=mine).finished
    assert labcoat.export_git(run, tmp_path / "tree.git").is_dir()


def test_a_broken_neighbour_is_no_reason_not_to_run(simulate: Simulate) -> None:
    folder = simulate("random", steps=2).folder
    neighbour = folder.parent.parent / "random-00000000" / "0"
    neighbour.mkdir(parents=True)
    (neighbour / "run.json").write_text("{")
    assert simulate("random", steps=3).status == "finished"


def test_replay_finds_a_changed_content(simulate: Simulate) -> None:
    history = simulate("autoresearch", steps=2)
    content = (history.folder / "blobs").read_bytes()
    (history.folder / "blobs").write_bytes(content.replace(b"autonomous", b"autonomouz"))
    with pytest.raises(Diverged, match="was changed"):
        replay(labcoat.open_run(history.folder))


def test_replay_with_another_strategy_source_says_where_the_old_one_is(simulate: Simulate) -> None:
    folder = simulate("autoresearch", steps=2).folder
    tamper(folder, lambda r: r["spec"]["strategy"].update(source="0" * 64))
    with pytest.raises(InputError, match=r"spec\.strategy\.source: .*autoresearch\.py is not what .*strategy_source"):
        replay(labcoat.open_run(folder))


def test_replay_with_another_task_says_so(tmp_path: Path) -> None:
    mine = tmp_path / "task"
    shutil.copytree(catalog.find("sim/valley").folder, mine)
    history = labcoat.run(task=str(mine), strategy="random", steps=2, runs=tmp_path / "runs")
    assert replay(history, str(mine)).finished
    with (mine / "simulate.py").open("a") as stream:
        stream.write("# changed\n")
    with pytest.raises(InputError, match=r"spec\.task\.hash"):
        replay(labcoat.open_run(history.folder), str(mine))


def test_a_strategy_that_changed_its_mind_diverges_on_resume(simulate: Simulate) -> None:
    wishes = ["first"]

    async def search(lab: Lab, params: Params) -> None:
        for _ in range(3):
            edit = await lab.edit(lab.brief.baseline, wishes[0])
            await lab.trial(edit)
            if wishes == ["first"]:
                raise RuntimeError

    with pytest.raises(StrategyError):
        simulate(search)
    wishes[0] = "second"
    with pytest.raises(Diverged, match="/0 asks for something else"):
        simulate(search)


def test_the_replay_model_repeats_a_run_without_its_model(tmp_path: Path, simulate: Simulate) -> None:
    first = simulate("autoresearch", steps=8)
    second = simulate("autoresearch", steps=8, model=f"replay:{first.folder}", runs=tmp_path / "again")
    assert [s.outcome for s in second.steps] == [s.outcome for s in first.steps]
    with pytest.raises(InputError, match="no reply is recorded"):
        simulate("autoresearch", steps=9, model=f"replay:{first.folder}", runs=tmp_path / "longer")
    with pytest.raises(InputError, match="parts that differ: task"):
        simulate("autoresearch", task="sim/ridge", model=f"replay:{first.folder}", runs=tmp_path / "other")


def test_interrupted_by_hand_the_run_is_clean(simulate: Simulate) -> None:
    count = 0

    def press(event: dict[str, Any]) -> None:
        nonlocal count
        count += event["kind"] == "trial" and event["state"] == "finished"
        if count == 3:
            count += 1
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        simulate("random", steps=6, observers=[press])
    assert len(simulate("random", steps=6).trials) == 6


def test_strategies_are_registered_with_how_to_rebuild_them() -> None:
    from labcoat import strategies

    for name in strategies.names():
        strategy = strategies.find(name)
        assert isinstance(strategy, Strategy)
        assert strategy.name == name
