"""The documentation is true: its commands run, its examples hold, its names exist, its links lead somewhere."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from labcoat import catalog, errors
from labcoat.bench.outcome import Status
from labcoat.bench.simulated import constants
from labcoat.cli import main
from labcoat.models.offline import STRUCTURAL
from labcoat.models.settings import FILE, Endpoint, read_settings
from tests.models.stub_server import Stub

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
by_name = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)

JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "object": (dict,), "list": (list,),
    "null": (type(None),), "any": (object,),
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A fenced block: the word after its fence, the line it begins at, its content, the file that it shows."""

    kind: str
    line: int
    text: str
    file: str | None
    """Named in the line before it: `` `restarts.py`: ``."""


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"(?:^`([\w.]+)`:\n\n)?^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(m[2], text[: m.start(3)].count("\n"), m[3], m[1]) for m in found]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


# --- commands -------------------------------------------------------------------------------------------------------


def command(line: str) -> tuple[list[str], int]:
    """Arguments and expected exit code of ``$ labcoat ARGS  # exit code N``."""
    typed, _, comment = line.partition("  # exit code ")
    return shlex.split(typed)[2:], int(comment or 0)


def interpret(args: list[str]) -> tuple[int, str]:
    """Exit code and all output of ``python ARGS``."""
    done = subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def perform(args: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and all output of ``labcoat ARGS``, in this process."""
    monkeypatch.setattr(sys, "argv", ["labcoat", *args])
    code: Any = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    out, err = capsys.readouterr()
    return code, err + out


def same(line: str) -> str:
    """What must agree of a line of output: not hashes of source, times and the width of columns."""
    line = re.sub(r"-[0-9a-f]{8}\b", "-HASH", line)
    line = re.sub(r"\d+\.\d+ s\b|(?<= )0\.0\d(?= )", "TIME", line)
    return " ".join(re.sub(r"ETA [\d:]+|[=─-]{4,}", "", line).split())


def is_shown(line: str, output: list[str]) -> bool:
    """Whether a line of a page, in which ``...`` stands for anything, is one of the output."""
    pattern = ".*".join(re.escape(piece.strip()) for piece in same(line).split("..."))
    return any(re.fullmatch(pattern, given) for given in output)


@pytest.mark.parametrize("name", ["tutorial.md", "add-a-strategy.md", "score.md"])
def test_commands_of_a_walk_run_and_print_what_it_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the top: a file that is shown is written, a command of a console block is run."""
    monkeypatch.chdir(tmp_path)
    ran = 0
    for block in blocks(DOCS / name):
        if block.file:
            (tmp_path / block.file).write_text(block.text)
        output: list[str] = []
        for number, line in enumerate(block.text.splitlines() if block.kind == "console" else [], block.line + 1):
            if line.startswith("$ "):
                args, expected = command(line)
                if line.startswith("$ python "):
                    code, text = interpret(args)
                else:
                    assert line.startswith("$ labcoat "), f"{name}:{number}: a console block holds labcoat commands"
                    code, text = perform(args, monkeypatch, capsys)
                assert code == expected, f"{name}:{number}: {line}\n{text}"
                output = [same(given) for given in text.splitlines()]
                ran += 1
            else:
                assert is_shown(line, output), f"{name}:{number}: not printed: {line}\n" + "\n".join(output)
    assert ran > 4


def test_commands_that_are_not_run_are_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names and options of the other commands are known."""
    lines = {line for page in PAGES for block in blocks(page) for line in block.text.splitlines()}
    for line in sorted(line for line in lines if line.startswith("$ labcoat ")):
        args = command(line)[0]
        code, text = perform([*args[: 2 if args[0] in ("strategy", "task") else 1], "--help"], monkeypatch, capsys)
        assert code == 0, line
        assert all(option in text for option in args if option.startswith("--")), line


def test_commands_of_the_readme_work_in_order_after_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a simulated task: that is quick, and only the numbers differ."""
    monkeypatch.chdir(tmp_path)
    assert perform(["demo", "--task", "sim/ridge"], monkeypatch, capsys)[0] == 0
    lines = [line for block in blocks(ROOT / "README.md") for line in block.text.splitlines()]
    assert all(len(line) <= 80 for line in lines)
    commands = [line for line in lines if line.startswith(".venv/bin/labcoat ")]
    assert len(commands) > 3
    for line in commands:
        args = shlex.split(line.replace("fml/fairlearn-adult", "sim/ridge"), comments=True)[1:]
        code, text = perform(args, monkeypatch, capsys)
        assert code == 0, f"{line}\n{text}"


def test_five_lines_lead_from_an_empty_folder_to_a_run_with_an_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    block = next(block for block in blocks(DOCS / "models.md") if block.kind == "sh")
    install, *lines = block.text.splitlines()
    assert len(lines) == 4 and "pip install" in install
    with Stub() as server:
        for line in lines:
            if line.startswith("echo "):
                subprocess.run(["sh", "-c", line.replace("http://localhost:8000/v1", server.url)], check=True)
            else:
                args = shlex.split(line.removeprefix(".venv/bin/labcoat ").replace("MODEL", "stub"))
                code, text = perform(args, monkeypatch, capsys)
                assert code == 0, text
    assert len(server.received) > 5


def test_settings_of_endpoints_are_all_documented_and_the_recipes_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = DOCS / "models.md"
    section = prose(page).partition("## labcoat.toml")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(Endpoint.model_fields)
    (recipes,) = (block.text for block in blocks(page) if block.kind == "toml")
    (tmp_path / "labcoat.toml").write_text(recipes)
    monkeypatch.chdir(tmp_path)
    assert set(read_settings().endpoint) == {"openrouter", "vllm", "ollama", "litellm", "llama", "openai"}


@by_name
def test_python_examples_hold(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        if block.kind == "python":
            example = doctest.DocTestParser().get_doctest(block.text, {}, page.name, str(page), block.line)
            assert example.examples, f"{page.name}:{block.line}: write it as a session with >>>"
            failed, _ = doctest.DocTestRunner().run(example)
            assert not failed, f"{page.name}:{block.line}: the output above differs"


def test_the_exit_codes_are_all_there() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", prose(DOCS / "tutorial.md"), re.MULTILINE)}
    raised = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.LabcoatError)
    }
    assert codes == {0, 130} | raised


# --- names ----------------------------------------------------------------------------------------------------------


@cache
def names_of_tests(path: Path) -> set[str]:
    """Functions and methods that a test file defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_tests_that_are_named_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", prose(DOCS / "how-a-run-works.md"))
    assert len(named) > 30
    missing = [f"{path}::{name}" for path, name in named if not (ROOT / path).is_file()]
    missing += [
        f"{path}::{name}" for path, name in named if (ROOT / path).is_file() and name not in names_of_tests(ROOT / path)
    ]
    assert missing == []


def find(dotted: str) -> object:
    """The module, class, function or attribute of that name."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(dotted)


@by_name
def test_modules_and_symbols_exist(page: Path) -> None:
    for dotted in set(re.findall(r"`(labcoat(?:\.\w+)+)`", prose(page))) - {FILE}:
        find(dotted)


def test_every_status_is_explained() -> None:
    explained = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", prose(DOCS / "how-a-run-works.md"), re.MULTILINE)
    assert set(get_args(Status)) <= {name for row in explained for name in re.findall(r"\w+", row)}


def test_numbers_of_the_methods_are_those_of_the_code() -> None:
    page = prose(DOCS / "methods.md")
    task = catalog.find("sim/valley")
    spec = importlib.util.spec_from_file_location("valley", task.folder / "simulate.py")
    assert spec is not None and spec.loader is not None
    valley = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(valley)
    for name, value in constants(task.baseline, ["train.py"]).items():
        optimum = valley.OPTIMUM
        assert (
            f"| `{name}` | {valley.WEIGHTS[name]} | {optimum['val'][name]} | {optimum['test'][name]} | {value} |"
            in page
        )
    assert all(f"`{name}`" in page for name in STRUCTURAL)


# --- links ----------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made on the web."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@by_name
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(other), f"{page.name}: {target}"


# --- json.md --------------------------------------------------------------------------------------------------------


@cache
def documented() -> dict[str, dict[str, str]]:
    """Fields of json.md with their types, by the heading of their table."""
    sections = re.split(r"^### ", prose(DOCS / "json.md"), flags=re.MULTILINE)[1:]
    return {
        section.splitlines()[0]: dict(re.findall(r"^\| `(\w+)` \| ([\w ]+) \|", section, re.MULTILINE))
        for section in sections
    }


def check(value: dict[str, Any], *objects: str) -> None:
    """Fields and types of ``value`` are those that the page gives for these objects, no more and no fewer."""
    fields = {name: kind for of in objects for name, kind in documented()[of].items()}
    assert set(value) == set(fields), objects
    for name, kind in fields.items():
        allowed = tuple(python for word in kind.split(" or ") for python in JSON_TYPES[word])
        assert isinstance(value[name], allowed), (objects, name, value[name])
        assert kind != "integer" or not isinstance(value[name], bool), (objects, name)


def read(args: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    code, text = perform([*args, "--json"], monkeypatch, capsys)
    assert code == 0, text
    return json.loads(text)


def test_tasks_json_is_as_documented(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for task in read(["tasks"], monkeypatch, capsys):
        check(task, "Task")
        check(task["metric"], "Metric")


def test_strategies_json_is_as_documented(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for strategy in read(["strategies"], monkeypatch, capsys):
        check(strategy, "Strategy")
        for parameter in strategy["parameters"].values():
            check(parameter, "Parameter")
        explained = read(["strategy", "show", strategy["name"]], monkeypatch, capsys)
        check(explained, "Strategy", "Explanation")
        assert explained["parameters"] == strategy["parameters"]


def test_doctor_model_json_is_as_documented(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = read(["doctor", "--model", "offline:mutate"], monkeypatch, capsys)
    check(found, "Examination")
    assert found["works"] and [finding["what"] for finding in found["findings"]][:2] == ["answer", "schema"]
    for finding in found["findings"]:
        check(finding, "Finding")


def test_examples_in_json_are_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lines(text: str) -> list[str]:
        text = re.sub(r'"[0-9a-f]{64}"', "HASH", re.sub(r'"seconds": [\d.]+', "TIME", text))
        return [same(line).rstrip(",") for line in text.splitlines()]

    monkeypatch.chdir(tmp_path)
    perform(["run", "sim/ridge", "--steps", "3", "--seed", "3"], monkeypatch, capsys)
    real: set[str] = set()
    for args in (["tasks"], ["strategies"], ["strategy", "show", "autoresearch"], ["show", "runs"]):
        real |= set(lines(perform([*args, "--json"], monkeypatch, capsys)[1]))
    shown = [line for block in blocks(DOCS / "json.md") for line in lines(block.text) if "..." not in line]
    assert shown and [line for line in shown if line not in real] == []


def measurements(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All that was measured in a run."""
    yield from filter(None, [run["baseline"], *run["trials"], run["best"]])
    if run["test"]:
        yield from [run["test"], run["test"]["baseline"]]


@pytest.mark.parametrize("options", [["--steps", "15", "--seed", "3"], ["--steps", "5", "--max-calls", "3"]])
def test_show_json_is_as_documented(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    perform(["run", "sim/ridge", *options], monkeypatch, capsys)
    run = read(["show", "runs"], monkeypatch, capsys)
    check(run, "Run")
    check(run["metric"], "Metric")
    check(run["spent"], "Spent", "Account")
    for spent in run["spent"]["by_purpose"].values():
        check(spent, "Spent")
    for purse in run["spent"]["by_step"]:
        check(purse, "Spent", "Purse")
    for price in run["prices"].values():
        check(price, "Price")
        for rate in price["rates"]:
            check(rate, "Rate")
    assert run["fork"] is None
    for step in [run["baseline"], *run["trials"], run["best"]]:
        check(step, "Step", "Measurement")
    assert (run["test"] is None) == ("--max-calls" in options)
    if run["test"]:
        check(run["test"], "Measurement", "Test")
        check(run["test"]["baseline"], "Measurement")
    for measured in measurements(run):
        for value in measured["values"]:
            check(value, "Value")


def test_sim_json_is_as_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ["--strategy", "random", "--strategy", "autoresearch", "--landscape", "haystack", "--landscape", "fragile"]
    found = read(["sim", *chosen, "--seeds", "2", "--steps", "5"], monkeypatch, capsys)
    check(found, "Sim")
    check(found["grid"], "Grid")
    for row in found["rows"]:
        check(row, "Row")
    tables = found["tables"]
    check(tables, "Tables")
    estimates = []
    for standing in tables["strategies"]:
        check(standing, "Standing")
        estimates += [standing["improvement"], standing["position"], standing["win_rate"]]
    for landscape in tables["landscapes"]:
        check(landscape, "Landscape")
    assert tables["density"]
    for split in tables["density"]:
        check(split, "Split")
        for half in split["strategies"]:
            check(half, "Half")
            estimates += [half["dense"], half["sparse"], half["correlation"]]
        for crossover in split["crossover"]:
            check(crossover, "Crossover")
            estimates += [crossover["dense"], crossover["sparse"]]
    for estimate in estimates:
        check(estimate, "Estimate")


def test_score_json_is_as_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for task in ("sim/valley", "sim/ridge"):
        for strategy in ("random", "autoresearch"):
            perform(["run", task, "--strategy", strategy, "--steps", "4"], monkeypatch, capsys)
    perform(["run", "sim/ridge", "--steps", "4", "--seed", "1", "--max-calls", "3"], monkeypatch, capsys)
    code, text = perform(["score", "runs", "--format", "json"], monkeypatch, capsys)
    assert code == 0, text
    found = json.loads(text)
    check(found, "Scores")
    kinds = {"runs": "ScoredRun", "arms": "Arm", "tasks": "ScoredTask", "correlations": "Correlation"}
    kinds |= {"pairs": "Pair", "validation_to_test": "Survival"}
    for name, kind in (kinds | {"missing": "Missing"}).items():
        assert found[name]
        for each in found[name]:
            check(each, kind)
    estimates = [pair["lead"] for pair in found["pairs"]]
    for survival in found["validation_to_test"]:
        estimates += [survival[name] for name in ("validation", "test", "survives", "slope")]
    for estimate in estimates:
        check(estimate, "Estimate")
    check(found["ranks"], "Ranking")
    check(found["partition"], "Partition")
    for placed in found["partition"]["arms"]:
        check(placed, "Placed")
    for arm in found["arms"]:
        for name in ("improvement", "improvement_on_shared_tasks", "of_headroom"):
            check(arm[name], "Mean")
        for name in ("win_rate_over_tasks", "win_rate_over_rounds"):
            check(arm[name], "WinRate")
    for task in found["tasks"]:
        check(task["metric"], "Metric")
        for mean in [*task["test"].values(), *task["improvement"].values()]:
            check(mean, "Mean")


def test_show_json_of_a_fork_is_as_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    perform(["run", "sim/ridge", "--steps", "3"], monkeypatch, capsys)
    args = ["run", "sim/ridge", "--steps", "4", "--runs", "forks", "--fork", "runs:2"]
    assert perform(args, monkeypatch, capsys)[0] == 0
    run = read(["show", "forks"], monkeypatch, capsys)
    check(run, "Run")
    check(run["fork"], "Fork")
    check(run["fork"]["spent"], "Spent")
    (record,) = tmp_path.glob("forks/**/run.json")
    words = set(re.findall(r"`([\w.]+)`", prose(DOCS / "how-a-run-works.md")))
    said = json.loads(record.read_text())
    kinds = {json.loads(line)["kind"] for line in record.with_name("events.jsonl").read_text().splitlines()}
    assert {*said, *said["fork"], *said["spec"]["fork"], *said["prices"]["*"], *kinds} - words == set()


def test_fields_of_the_record_are_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fields of run.json and of events, and the kinds and states of events."""
    monkeypatch.chdir(tmp_path)
    perform(["run", "sim/valley", "--steps", "2", "--max-calls", "2"], monkeypatch, capsys)
    perform(["run", "sim/valley", "--steps", "2"], monkeypatch, capsys)
    (record,) = tmp_path.glob("**/run.json")
    words = set(re.findall(r"`([\w.]+)`", prose(DOCS / "how-a-run-works.md")))
    said = json.loads(record.read_text())
    fields = {*said, *(f"strategy.{name}" for name in said["spec"]["strategy"])}
    fields |= {f"task.{name}" for name in said["spec"]["task"]} | {"models", "steps", "seed"}
    for name in ("sandbox", "environment"):
        fields |= {f"{name}.{inner}" for inner in said["bench"][name]}
    for line in record.with_name("events.jsonl").read_text().splitlines():
        event = json.loads(line)
        fields |= {*event, event["kind"], event["state"]}
        fields |= set(event.get("request", {}))
        if event["kind"] in ("baseline", "trial", "test") and event["state"] == "finished":
            fields |= set(event["result"])
    assert fields - words == set()
