"""A task out of a project: what is taken, what is left out and why, and a manifest that holds what was wished."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from dulwich import porcelain

from labcoat import snapshot
from labcoat.bench import own_environment
from labcoat.errors import InputError
from labcoat.new_task import Wishes, argv, environment_of, long, make, quoted, slug
from labcoat.snapshot import look
from labcoat.task import Task
from tests.bench.test_environment import disk
from tests.own.conftest import Make
from tests.own.small import base_python, state


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


# --- the snapshot -----------------------------------------------------------------------------------------------------


def test_code_is_taken_and_what_else_lies_there_is_left_out_with_a_reason(project: Path) -> None:
    found = look(project, ["data"])
    assert list(found.files) == ["src/small/__init__.py", "src/small/model.py", "train.py"]
    assert {path: reason.split(";")[0] for path, reason in found.left_out.items()} == {
        ".env": "may hold keys: never copied",
        ".gitignore": "hidden",
        ".venv/": "an environment",
        "cache/": "ignored by git",
        "checkpoints/": "ignored by git",
        "data/": "mounted, not copied",
    }


def test_in_a_repository_it_is_what_git_has_or_would_add(tmp_path: Path) -> None:
    repo = porcelain.init(write(tmp_path / "repo", **{"a.py": "", "out/kept.txt": ""}))
    porcelain.add(repo, [str(tmp_path / "repo/a.py"), str(tmp_path / "repo/out/kept.txt")])
    ignored = {"out/new.txt": "", "x.log": "", "b/c": "", "excluded.py": ""}
    rules = {".gitignore": "out/\n*.log\n", "b/.gitignore": "c\n", ".git/info/exclude": "excluded.py\n"}
    write(tmp_path / "repo", **ignored, **rules, **{"b/d": "", "untracked.py": ""})
    found = look(tmp_path / "repo", [])
    assert set(found.files) == {"a.py", "b/d", "out/kept.txt", "untracked.py"}
    assert found.left_out[".git/"] == "history" and found.left_out["excluded.py"] == "ignored by git"
    part = look(tmp_path / "repo/b", [])
    assert set(part.files) == {"d"} and part.left_out["c"] == "ignored by git"


@pytest.mark.parametrize(
    "name", [".env", ".env.local", "prod.env", "id_rsa", "deploy.pem", "tls.key", "credentials.json", "secrets.toml"]
)
def test_keys_are_never_copied_even_if_git_has_them(name: str, tmp_path: Path) -> None:
    repo = porcelain.init(write(tmp_path / "repo", **{name: "secret", "a.py": ""}))
    porcelain.add(repo, [str(tmp_path / "repo" / name)])
    found = look(tmp_path / "repo", [])
    assert list(found.files) == ["a.py"] and found.left_out[name] == "may hold keys: never copied"


def test_folders_that_are_no_code_are_left_out(tmp_path: Path) -> None:
    names = [
        "a.py", "__pycache__/a.pyc", "node_modules/x/y.js", "env/pyvenv.cfg", "conda/conda-meta/x", "other/.git/config",
        "p-task/task.toml", "p-task/workspace/a.py", "runs/single/t/s/0/run.json", "runs/single/t/s/0/events.jsonl",
    ]  # fmt: skip
    project = write(tmp_path, **dict.fromkeys(names, ""))
    (project / "link.py").symlink_to("a.py")
    found = look(project, [])
    assert list(found.files) == ["a.py"]
    assert {path: reason.split(";")[0] for path, reason in found.left_out.items()} == {
        "__pycache__/": "can be made again",
        "conda/": "an environment",
        "env/": "an environment",
        "link.py": "a link",
        "node_modules/": "can be made again",
        "other/": "a repository of its own",
        "p-task/": "a task of labcoat",
        "runs/single/t/s/0/": "a run of labcoat",
    }


def test_what_is_too_large_is_refused_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remedy = "mount it with --data, or name it in a .gitignore"
    project = write(tmp_path, **{"a.py": "", "big/weights.bin": "x" * 2000, "big/more.bin": "x"})
    monkeypatch.setattr(snapshot, "LARGEST", 1000)
    with pytest.raises(InputError, match=rf"big/weights\.bin: .* each trial copies every file .*: {remedy}"):
        look(project, [])
    assert list(look(project, ["big"]).files) == ["a.py"]
    monkeypatch.setattr(snapshot, "LARGEST", 1 << 20)
    monkeypatch.setattr(snapshot, "MOST_FILES", 2)
    with pytest.raises(InputError, match=rf"3 files, .* Most are in big/ \(2 files, 0 MiB\), a\.py .*: {remedy}"):
        look(project, [])
    (project / ".gitignore").write_text("big\n")
    assert list(look(project, []).files) == ["a.py"]


# --- the manifest -----------------------------------------------------------------------------------------------------


def test_the_manifest_holds_what_was_wished(new: Make, project: Path) -> None:
    before = state(project)
    made = new(
        edit=["src/*.py", "train.py"], test_command="python train.py --evaluate '{\"a\": {seed}}'", timeout=90.5,
        memory_mb=512, cpus=2, prompt='Say "x\\y" \ttwice\n"""end"""', id="own/other", title='A "title" \\ with # all',
    )  # fmt: skip
    manifest = made.task.manifest
    assert (manifest.id, manifest.title, manifest.integrity) == (
        "own/other",
        'A "title" \\ with # all',
        "self-reported",
    )
    assert manifest.prompt.text == 'Say "x\\y" \ttwice\n"""end"""'
    assert manifest.files.editable == ["src/*.py", "train.py"] and manifest.files.place == str(project)
    assert manifest.environment.path == str(project / ".venv") and made.environment.endswith("(found in the project)")
    (mount,) = manifest.data.mounts
    assert (mount.source, mount.at) == (str(project / "data"), "data")
    run, test = manifest.phase
    assert run.argv == ["python", "train.py", "--seed", "{seed}"] and test.argv[-1] == '{{"a": {seed}}}'
    assert (run.timeout, run.resources.memory_mb, run.resources.cpus) == (90.5, 512, 2)
    assert manifest.report is None and manifest.metric.direction == "lower"
    assert manifest == Task.load(made.task.folder).manifest
    assert state(project) == before


def test_the_statement_says_what_a_command_meets(new: Make) -> None:
    statement = new(metric_file="out/m.json").task.statement
    assert "Command: python train.py --seed {seed}, in a fresh copy of the project, without network" in statement
    assert "its result is the key loss of out/m.json" in statement
    assert "Data that can be read and not changed: data" in statement


@pytest.mark.parametrize("text", ["plain", 'a"b\\c', "tab\there", "é😀", "\x7f\x01\x1f", "# [x] = 1", "'''", '"""', ""])
def test_every_text_is_a_toml_string(text: str) -> None:
    assert tomllib.loads(f"x = {quoted(text)}")["x"] == text
    assert tomllib.loads(f"x = {long(f'one {text}{chr(10)}two')}")["x"] == f"one {text}\ntwo"


def test_a_prompt_may_lie_in_a_file(new: Make, tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("From a file.\n")
    assert new(prompt=f"@{tmp_path}/prompt.md").task.manifest.prompt.text == "From a file."


def test_a_link_in_the_project_is_mounted_where_it_leads(new: Make, project: Path) -> None:
    (project / "data").rename(project.parent / "elsewhere")
    (project / "data").symlink_to(project.parent / "elsewhere")
    (mount,) = new().task.manifest.data.mounts
    assert (mount.source, mount.at) == (str(project.parent / "elsewhere"), "data")


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"edit": ["lib/*.py"]}, r"--edit 'lib/\*\.py': names no file .* such as 'src/\*\.py'"),
        ({"edit": ["cache*"]}, r"--edit 'cache\*': .* left out: cache/ \(ignored by git\)"),
        ({"command": ""}, "--command: empty"),
        ({"command": "python 'x"}, "--command .*No closing quotation"),
        ({"command": "python a.py && python b.py"}, "--command: there is no shell, so no `&&`"),
        ({"test_command": "A=1 python b.py"}, "--test-command: there is no shell; begin with `env A=1`"),
        ({"data": [Path("/no/such")]}, "--data /no/such: no such folder"),
        ({"project": Path("/no/such")}, "/no/such: no such folder; name the folder of your project"),
        ({"prompt": "@/no/such"}, "--prompt @/no/such: cannot be read"),
        ({"python": Path("/etc")}, "/etc: no Python there"),
        ({"id": "Nonsense"}, r"^task\.toml: 1 field\(s\) to correct\n  id: String should match"),
        ({"metric": ""}, "metric.name: not a name: ''"),
        ({"metric": "lo\nss"}, r"metric.name: not a name: 'lo\\nss'"),
        ({"metric_file": "/abs.json"}, "report.file: .*relative path"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_left(
    wishes: dict[str, Any], said: str, new: Make, open_folder: Path
) -> None:
    before = set(open_folder.iterdir())
    with pytest.raises(InputError, match=said):
        new(**wishes)
    assert set(open_folder.iterdir()) == before


def test_the_project_itself_is_no_data(new: Make, project: Path) -> None:
    with pytest.raises(InputError, match="this is the project itself"):
        new(data=[project])
    with pytest.raises(InputError, match=r"data\.mounts\.0\.from: .* holds the project itself"):
        new(data=[project.parent])


def test_a_folder_that_exists_is_not_overwritten(new: Make, open_folder: Path) -> None:
    write(open_folder / "task", mine="")
    with pytest.raises(InputError, match="task: exists; name another folder with --to"):
        new()
    assert [path.name for path in (open_folder / "task").iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_made_is_named_and_nothing_is_left(new: Make, open_folder: Path) -> None:
    with disk(open_folder / "small", megabytes=1) as place:
        (place / "fill").write_bytes(bytes((1 << 20) - 4096))
        with pytest.raises(InputError, match=r"small/task: cannot be made: .*No space left.*--to"):
            new(to=place / "task")
        assert [path.name for path in place.iterdir()] == ["fill"]


def test_it_goes_beside_by_default(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wishes = Wishes(project=project, edit=["src/*"], command="python train.py", metric="loss", direction="lower")
    assert make(wishes).task.folder == Path("project-task")


def test_names_become_ids() -> None:
    assert [slug(name) for name in ("My Project!", "a_b.c", "..", "日本")] == [
        "my-project",
        "a_b.c",
        "project",
        "project",
    ]


def test_braces_other_than_the_seed_stand_for_themselves() -> None:
    (part,) = argv('\'{"a": {seed}, "b": {}}\'', "--command")
    assert part.format(seed=7) == '{"a": 7, "b": {}}'


# --- the environment --------------------------------------------------------------------------------------------------


def test_the_environment_is_the_one_named_else_the_projects_else_the_active_one(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("PATH", f"{base_python().parent}:/usr/bin:/bin")
    named = own_environment.find(base_python()).prefix
    assert environment_of(project, base_python()) == (named, "--python")
    assert environment_of(project, None) == (str(project / ".venv"), "found in the project")
    assert environment_of(tmp_path, None)[1] == "python3 on PATH"
    monkeypatch.setenv("CONDA_PREFIX", str(project / ".venv"))
    assert environment_of(tmp_path, None) == (str(project / ".venv"), "$CONDA_PREFIX")
    monkeypatch.setenv("VIRTUAL_ENV", str(project / ".venv"))
    assert environment_of(tmp_path, None) == (str(project / ".venv"), "$VIRTUAL_ENV")


# --- the command ------------------------------------------------------------------------------------------------------

CLI = [sys.executable, "-c", "from labcoat.cli import main; main()", "task", "new"]


def labcoat(*args: object) -> tuple[int, str, str]:
    done = subprocess.run([*CLI, *map(str, args)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_the_command_tries_once_and_says_what_self_reported_means(
    project: Path, open_folder: Path, bwrap: object
) -> None:
    (project / "strange\nname").touch()
    options = ["--edit", "src/*.py", "--metric", "loss", "--direction", "lower", "--data", project / "data"]
    options += ["--to", open_folder / "task", "--command", "python train.py --seed {seed}"]
    code, out, err = labcoat(project, *options)
    assert code == 0, err
    assert "left out    .env (may hold keys: never copied)" in out
    assert r"left out    'strange\nname' (its name is not plain text)" in out
    assert "number      loss = 2 (lower is better), " in out
    assert "A candidate can print anything" in out and f"run {open_folder}/task --steps 10" in out


def test_a_command_without_a_number_leaves_the_task_to_be_corrected(
    project: Path, open_folder: Path, bwrap: object
) -> None:
    options = ["--edit", "src/*.py", "--metric", "accuracy", "--direction", "higher", "--data", project / "data"]
    options += ["--to", open_folder / "task", "--command", "python train.py"]
    code, out, err = labcoat(project, *options)
    assert code == 2 and "the task is made, but gives no number yet" in err
    assert "looked for `accuracy = NUMBER`" in err and "epoch 2 loss: 2.0" in err
    assert Task.load(open_folder / "task").metric.name == "accuracy"
    assert labcoat(project, *options)[0] == 2
    options[options.index(open_folder / "task")] = open_folder / "untried"
    code, out, _ = labcoat(project, *options, "--no-try")
    assert code == 0 and "number " not in out.split("Self-reported")[0]
