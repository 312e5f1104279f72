"""The commands as a user types them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labcoat import cli
from labcoat.bench import home
from labcoat.cli import output, table
from labcoat.cli.progress import Progress
from labcoat.history import History
from labcoat.journal import Journal
from labcoat.plan import Plan

CLI = [sys.executable, "-c", "from labcoat.cli import main; main()"]


def labcoat(*args: object, check: int = 0) -> str:
    done = subprocess.run([*CLI, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == check, done.stderr + done.stdout
    return done.stdout if check == 0 else done.stderr


def as_json(*args: object) -> Any:
    return json.loads(labcoat(*args, "--json"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    labcoat("run", "sim/ridge", "--strategy", "autoresearch", "--steps", 15, "--seed", 3, "--runs", folder)
    return folder


def test_listings_have_a_stable_json_form() -> None:
    tasks = as_json("tasks")
    assert {"sim/valley", "sim/ridge", "fml/fairlearn-adult"} <= {task["id"] for task in tasks}
    assert all(task["metric"]["direction"] in ("higher", "lower") for task in tasks)
    strategies = as_json("strategies")
    assert {"autoresearch", "random"} <= {strategy["name"] for strategy in strategies}
    assert next(s for s in strategies if s["name"] == "autoresearch")["parameters"]["attempts"]["default"] == 3


def test_show_json_has_what_docs_promise(runs: Path) -> None:
    shown = as_json("show", runs)
    assert len(shown["trials"]) == 15
    assert [trial["step"] for trial in shown["trials"]] == list(range(1, 16))
    assert isinstance(shown["test"]["value"], float)
    assert isinstance(shown["test"]["baseline"]["value"], float)
    assert shown["best"]["value"] == min(t["value"] for t in shown["trials"] if t["status"] == "ok")
    assert shown["sandbox"] == "none needed"
    assert shown["status"] == "finished"


def test_show_prints_table_tree_and_summary(runs: Path) -> None:
    text = labcoat("show", runs)
    assert "baseline" in text and "└──" in text
    assert "trials      15 of 15" in text
    assert "sandbox     none needed" in text


def test_diff_shows_what_a_step_changed_and_the_way_between_two(runs: Path) -> None:
    step = labcoat("diff", runs, 1)
    assert step.startswith("--- a/train.py\n+++ b/train.py\n")
    assert step.count("\n-") == 1 and step.count("\n+") == 2  # one line, and the header of the new file
    assert labcoat("diff", runs, "baseline", "best").startswith("--- a/train.py")
    assert "have the same code" in labcoat("diff", runs, 2, 2)


def test_log_shows_prompt_reply_and_outcome(runs: Path) -> None:
    text = labcoat("log", runs, 2)
    assert "prompt: instruction" in text
    assert "reply (stop)" in text
    assert "outcome: " in text


def test_replay_verifies(runs: Path) -> None:
    assert "decisions re-executed and equal to the journal, 15 trials" in labcoat("replay", runs)


def test_git_gives_a_sound_repository_with_the_search_tree(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "tree.git"
    labcoat("git", runs, "--to", target)

    def git(*args: str) -> str:
        return subprocess.run(["git", "--git-dir", target, *args], capture_output=True, text=True, check=True).stdout

    git("fsck", "--strict")
    shown = as_json("show", runs)
    for trial in shown["trials"]:
        parents = git("log", "-1", "--format=%P", f"step-{trial['step']}").split()
        assert parents == git("rev-parse", f"step-{trial['parent']}^{{commit}}").split()
    assert git("show", "best:train.py") != git("show", "baseline:train.py")
    assert len(list((target / "objects/pack").glob("*.pack"))) == 1
    assert "exists" in labcoat("git", runs, "--to", target, check=2)


def test_a_finished_run_exits_at_once(runs: Path) -> None:
    done = subprocess.run(
        [*CLI, "run", "sim/ridge", "--steps", "15", "--seed", "3", "--runs", str(runs)], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "already finished" in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["run", "sim/vallei"], 2, "did you mean sim/valley"),
        (["run", "sim/valley", "--strategy", "greedy"], 2, "unknown strategy 'greedy'"),
        (["run", "sim/valley", "-S", "attempts"], 2, "write it as NAME=VALUE"),
        (["run", "sim/valley", "-S", "attempts=many"], 2, "attempts: Input should be a valid integer"),
        (["show", "/nowhere"], 2, "no run there"),
        (["run", "./nowhere"], 2, "./nowhere: no task.toml there; `labcoat task new`"),
        (["run", "sim/valley", "--steps", "x"], 2, "Invalid value"),
        (["run", "sim/valley", "--max-usd", "nan"], 2, "nan is not a positive number"),
        (["run", "sim/valley", "--max-seconds", "inf"], 2, "inf is not a positive number"),
        (["run", "sim/valley", "--max-calls", "0"], 2, "limit on calls (--max-calls): 0 is not a positive number"),
        (["run", "sim/valley", "--max-tokens", "-5"], 2, "-5 is not a positive number"),
    ],
)
def test_bad_input_gets_one_clear_message(tmp_path: Path, args: list[str], code: int, message: str) -> None:
    text = labcoat(*args, *(["--runs", tmp_path] if args[0] == "run" else []), check=code)
    assert message in text
    assert "Traceback" not in text
    assert not list(tmp_path.iterdir())


def test_several_runs_are_listed(runs: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        labcoat("run", "sim/valley", "--steps", 1, "--seed", seed, "--runs", tmp_path)
    assert "2 runs there, name one of them" in labcoat("show", tmp_path, check=2)


def test_unknown_steps_are_named(runs: Path) -> None:
    assert "it has steps 0 (the baseline) to 15, or `best`" in labcoat("diff", runs, 99, check=2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_by_a_signal_the_same_command_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    command = [*CLI, "run", "sim/valley", "--steps", "3000", "--runs", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stderr
        for line in first.stderr:
            if "step 5/" in line:
                break
        first.send_signal(number)
        _, rest = first.communicate(timeout=30)
        assert first.returncode == 130, rest
        assert "the same command goes on from here" in rest
    shown = as_json("show", tmp_path)
    assert shown["status"] == "stopped" and 5 <= len(shown["trials"]) < 3000
    assert "the run is not finished" in labcoat("replay", tmp_path)


def test_a_limit_has_its_own_exit_code_and_the_resumed_run_says_where_it_goes_on(tmp_path: Path) -> None:
    text = labcoat("run", "sim/valley", "--steps", 5, "--max-calls", 4, "--runs", tmp_path, check=5)
    assert "limit reached: calls = 4" in text and "going on" not in text
    assert "  going on after step 2\n" in told("run", "sim/valley", "--steps", 5, "--runs", tmp_path)


def test_before_the_first_step_there_is_no_step_zero(tmp_path: Path) -> None:
    plan = Plan.of(task="sim/valley", strategy="random", params=None, model="offline:mutate", steps=3, seed=0)
    assert Progress(plan, tmp_path).reached == "before the first step"


def told(*args: object) -> str:
    """What a command that succeeds says on standard error."""
    done = subprocess.run([*CLI, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_an_unfinished_run_that_the_same_command_began_is_pointed_out_once(tmp_path: Path) -> None:
    command = ["run", "sim/valley", "--steps", 5, "--runs", tmp_path]
    for name in ("done", "stopped-long-ago", "stopped"):
        labcoat(*command, *(["--max-calls", 4] if name != "done" else []), check=0 if name == "done" else 5)
        (begun,) = tmp_path.glob("single/sim/valley/autoresearch-????????")
        edit_record(begun / "0/run.json", lambda record: record["spec"]["strategy"].update(source="older"))
        begun.rename(begun.with_name(f"autoresearch-{name}"))
    os.utime(tmp_path / "single/sim/valley/autoresearch-stopped-long-ago/0", (0, 0))
    (note,) = [line for line in told(*command).splitlines() if "note" in line]
    assert note.endswith(
        f"strategy.source changed since the same command began {begun.with_name('autoresearch-stopped')}/0"
    )
    assert "note" not in told(*command)


def edit_record(path: Path, change: Callable[[Any], None]) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_a_step_that_is_not_valid_shows_why_and_what_was_tried(tmp_path: Path) -> None:
    labcoat("run", "sim/ridge", "--steps", 60, "--runs", tmp_path)
    lines = {line.split()[0]: line for line in reversed(labcoat("show", tmp_path).splitlines()) if line}
    reasons = {"violation": r"  misses memory_gb by [\d.]+; \w+: Change `", "crash": r"  ValueError: .*; \w+: Change `"}
    for status, reason in reasons.items():
        failed = [trial for trial in as_json("show", tmp_path)["trials"] if trial["status"] == status]
        assert failed
        for trial in failed:
            line = lines[str(trial["step"])]
            assert re.search(reason, line) and line.endswith(trial["facts"]["idea"])


def test_the_star_is_explained_where_there_is_one(runs: Path, tmp_path: Path) -> None:
    legend = "* best valid step; the first among equals"
    assert labcoat("show", runs).count(legend) == 1
    labcoat("run", "sim/valley", "--steps", 2, "--max-calls", 1, "--runs", tmp_path, check=5)
    (events,) = tmp_path.glob("**/events.jsonl")
    kept = [line for line in events.read_text().splitlines() if json.loads(line)["kind"] not in ("baseline", "ask")]
    events.write_text("\n".join(kept) + "\n")
    with Journal(events.parent, write=True) as journal:
        journal.note("baseline_failed", {"status": "crash", "error": "ValueError: not\ntoday"}, key="baseline")
    shown = labcoat("show", tmp_path)
    assert "*" not in shown and "not\ntoday\n" in shown
    assert "baseline    fails here (crash), so nothing can be compared with it:" in shown


# --- terminals and pipes --------------------------------------------------------------------------------------------


def on_terminal(width: int, *args: object) -> list[str]:
    """The lines that a command writes on a terminal of that width, without its control sequences."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")} | {"TERM": "xterm"}
    with subprocess.Popen([*CLI, *map(str, args)], stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        found = b""
        with contextlib.suppress(OSError):  # Linux says EIO at the end of a terminal
            while data := os.read(ours, 1 << 16):
                found += data
    os.close(ours)
    assert process.returncode == 0
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", found.decode()).replace("\r\n", "\n")
    return [line.rpartition("\r")[2] for line in text.splitlines()]


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_all_keeps_to_its_width(tmp_path: Path, width: int) -> None:
    command = ["run", "sim/ridge", "--steps", 120, "--confirm", "2,1", "--retest", 1, "--runs", tmp_path]
    compared = ["--strategy", "aide", "--strategy", "random", "--landscape", "sim/desert", "--seeds", 2, "--steps", 5]
    for args in (
        command, [*command, "--estimate"], ["show", tmp_path], ["tasks"], ["strategies", "--parameters"],
        ["strategy", "show", "aira"], ["diff", tmp_path, "best"],
        ["sim", *compared, "--runs", tmp_path], ["score", tmp_path], ["paper-check"],
    ):  # fmt: skip
        for line in on_terminal(width, *args):
            path_alone = " " not in line.removeprefix("run ").strip()
            assert len(line) <= width or path_alone, line
            assert line == line.rstrip() or args[0] == "diff", line


def test_what_was_spent_fits_a_terminal_and_names_every_part(tmp_path: Path) -> None:
    usage = {"input_uncached": 12_345_678, "cache_read": 23_456_789, "cache_write": 3_456_789, "output": 1_234_567}
    line = json.dumps({"text": "no edit", "usage": usage | {"of_which_reasoning": 234_567}})
    (tmp_path / "replies").write_text(f"{line}\n" * 12)
    labcoat("run", "sim/ridge", "--steps", 2, "--model", f"scripted:{tmp_path / 'replies'}", "--runs", tmp_path)
    lines = on_terminal(80, "show", tmp_path)
    assert all(len(line) <= 80 for line in lines if " " in line.removeprefix("run ").strip())
    for part in ("tokens in, not cached", "read from a cache", "written to a cache", "of which reasoning"):
        assert sum(line.startswith(part) for line in lines) == 1, part


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    for module in (output, table):
        monkeypatch.setattr(module, "columns", lambda stream: width)


def test_a_table_that_is_too_wide_goes_in_parts_that_name_their_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head, rows = ["arm", "a long head", "third", "last"], [["x", "1", "33333333", "one two"], ["y", "2", "3", "four"]]
    terminal(monkeypatch, 20)
    table.print_table(head, rows)
    assert capsys.readouterr().out.splitlines() == [
        "arm  a     third",
        "     long",
        "     head",
        "───────────────────",
        "x    1     33333333",
        "y    2     3",
        "",
        "arm  last",
        "────────────",
        "x    one two",
        "y    four",
    ]


def test_a_head_is_folded_before_a_word_of_the_last_column_leaves_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(monkeypatch, 48)
    table.print_table(["arm", "a head of many words", "last"], [["x", "1", "a-word-of-22-character"]])
    assert capsys.readouterr().out.splitlines()[-1] == "x    1      a-word-of-22-character"


def test_rows_of_sentences_go_below_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head, rows = ["verdict", "claim", "found"], [["holds", "a claim that is long", "one two three four five six"]]
    terminal(monkeypatch, 34)
    table.print_table(head, rows, keys=2)
    assert capsys.readouterr().out.splitlines() == [
        "holds  a claim that is long",
        "  found  one two three four five",
        "         six",
    ]


def test_a_step_is_one_line_and_folds_are_at_spaces(tmp_path: Path) -> None:
    labcoat("run", "sim/ridge", "--steps", 5, "--runs", tmp_path)
    narrow, whole = on_terminal(80, "show", tmp_path), labcoat("show", tmp_path).splitlines()
    steps = [line for line in narrow if re.match(r"\d+ [ *]", line)]
    assert len(steps) == 6 and all(line.endswith("...") for line in steps[1:])
    assert not any(line.endswith("...") for line in whole)
    for args in (["tasks"], ["strategies", "--parameters"]):
        words = " ".join(on_terminal(80, *args)).split()
        assert set(labcoat(*args).split()) - set(words) <= {rule for rule in words if set(rule) == {"─"}} | {"─" * 80}


def test_in_a_pipe_nothing_is_cut_or_folded(runs: Path) -> None:
    lines = labcoat("show", runs).splitlines()
    for trial in as_json("show", runs)["trials"]:
        assert any(trial["facts"]["idea"] in line for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_a_deep_tree_keeps_its_labels(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    labels = {n: f"node {n}" for n in range(3000)}
    parents = {n: n - 1 if n else None for n in labels}
    terminal(monkeypatch, 80)
    output.print_tree(labels, parents)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["node 0", "└── node 1", "    └── node 2"]
    assert lines[-1].startswith("...") and lines[-1].endswith("└── node 2999") and len(lines[-1]) == 80


def test_the_metric_is_named_once(tmp_path: Path) -> None:
    text = told("run", "sim/ridge", "--steps", 9, "--runs", tmp_path)
    assert text.count("loss (lower is better)") == 1 and "loss=" not in text
    assert re.search(r"^ +step 9/9  ok +[\d.]+  best [\d.]+ \(step \d\) +\d.\d\d s$", text, re.MULTILINE)


def test_an_encoding_without_our_characters_is_no_obstacle(runs: Path) -> None:
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*CLI, "show", str(runs)], capture_output=True, env=env)
    assert done.returncode == 0, done.stderr
    assert b"`-- 1" in done.stdout and b"\\u" not in done.stdout
    done = subprocess.run([*CLI, "run", "sim/väl"], capture_output=True, env=env)
    assert done.returncode == 2 and b"sim/v\\xe4l" in done.stderr


@pytest.mark.parametrize("command", ["show {0}", "run sim/valley --steps 300 --runs {0}/more 2>&1", "--help"])
def test_a_reader_that_leaves_early_is_no_error(runs: Path, command: str, tmp_path: Path) -> None:
    script = tmp_path / "labcoat"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from labcoat.cli import main; main()" "$@"\n')
    script.chmod(0o755)
    target = runs if command.startswith("show") else tmp_path
    line = f"set -o pipefail; {script} {command.format(target)} | head -n 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count("\n") == 1
    if "more" in command:
        assert as_json("show", tmp_path / "more")["status"] == "finished"


def test_a_broken_pipe_that_is_not_ours_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> Any:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(History, "find", fail)
    monkeypatch.setattr(sys, "argv", ["labcoat", "show", "x"])
    monkeypatch.setattr(cli, "_has_no_reader", lambda stream: False)
    with pytest.raises(BrokenPipeError):
        cli.main()


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOTDIR, errno.ENAMETOOLONG])
def test_a_path_that_cannot_be_used_is_named(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(path: Path) -> Any:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(History, "find", fail)
    for args in (["show", "/x"], ["log", "/x", "1"], ["replay", "/x"], ["git", "/x"]):
        monkeypatch.setattr(sys, "argv", ["labcoat", *args])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 3
        assert capsys.readouterr().err.startswith(f"labcoat: /x: {os.strerror(number)}; choose another place")


AS_NOBODY = """
import os, sys
import labcoat.api, labcoat.bench.sandbox, labcoat.cli.progress, labcoat.git_export, labcoat.models.offline
import labcoat.replaying, labcoat.strategies.autoresearch
os.setgroups([]), os.setgid(65534), os.setuid(65534)
labcoat.cli.main()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_is_told_what_is_closed() -> None:
    if home.closed_to_others(Path(cli.__file__).parents[2]):
        pytest.skip("another user cannot read this checkout")
    with tempfile.TemporaryDirectory() as closed:
        run = ["run", "sim/valley", "--runs"]
        for args in (["show"], ["log", "1"], ["replay"], ["git"], run, ["run", "sim/valley", "--model"]):
            place = f"replay:{closed}/x" if args[-1] == "--model" else f"{closed}/x"
            given = [args[0], place, *args[1:]] if len(args) < 3 else [*args, place]
            done = subprocess.run([sys.executable, "-c", AS_NOBODY, *given], capture_output=True, text=True, cwd="/")
            assert done.returncode == 3 and "Traceback" not in done.stderr, done.stderr
            assert re.fullmatch(f"labcoat: {closed}/x.*: Permission denied; choose .*", done.stderr.splitlines()[-1])


# --- the demo, help -------------------------------------------------------------------------------------------------


def test_the_demo_ends_with_a_table_a_diff_and_what_to_do_next(tmp_path: Path) -> None:
    text = labcoat("demo", "--task", "sim/ridge", "--steps", 9, "--runs", tmp_path)
    assert re.search(r"^strategy  +trials  valid  val base  val best  test base  test +sandbox$", text, re.MULTILINE)
    assert "One seed and 9 trials decide nothing" in text
    assert "The winning code on validation: " in text and "\n--- a/train.py\n" in text
    assert text.count(" replay ") == 1


def test_a_demo_in_which_nothing_beats_the_baseline_says_so(tmp_path: Path) -> None:
    text = labcoat("demo", "--task", "sim/ridge", "--steps", 1, "--runs", tmp_path)
    assert "One seed and 1 trial decide nothing" in text
    assert "Nothing beat the baseline on validation" in text and "step 0" not in text


def test_help_is_short_and_whole() -> None:
    assert labcoat("-h") == labcoat("--help") and "..." not in labcoat("--help").replace("[ARGS]...", "")
    assert labcoat("run", "-h") == labcoat("run", "--help")


def test_help_is_quick_enough_to_be_used() -> None:
    begin = time.monotonic()
    assert "replay" in labcoat("--help")
    assert time.monotonic() - begin < 5  # benchmarks/ measures it; this only catches an accident


def test_under_nohup_a_hang_up_is_ignored(tmp_path: Path) -> None:
    command = [*CLI, "run", "sim/valley", "--steps", "300", "--runs", str(tmp_path)]
    with subprocess.Popen(
        ["nohup", *command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stderr
        for line in first.stderr:
            if "step 5/" in line:
                break
        first.send_signal(signal.SIGHUP)
        first.communicate(timeout=60)
        assert first.returncode == 0


def test_a_strategy_explains_itself_with_parameters_presets_and_prompts() -> None:
    text = labcoat("strategy", "show", "autoresearch")
    assert "\ndebug_from=crashed  (@released: incumbent)\n    Which code a retry edits." in text
    assert "Ours differs from the released port" in text
    assert "--- autoresearch.idea.md\nYou are an autonomous researcher." in text
    assert as_json("strategy", "show", "autoresearch@released") == as_json("strategy", "show", "autoresearch")
    assert re.search(
        r"^Source: \S+/adaptive\.py, \S+/adaptive_rules\.py$", labcoat("strategy", "show", "adaptive"), re.M
    )


def test_a_broken_plug_in_takes_no_other_strategy_from_the_list(tmp_path: Path) -> None:
    info = tmp_path / "plug-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[labcoat.strategies]\nmine = nowhere:STRATEGY\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*CLI, "strategies"], capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert "autoresearch" in done.stdout and "random" in done.stdout
    assert "strategy plug-in mine (nowhere:STRATEGY of plug): ModuleNotFoundError" in done.stderr
