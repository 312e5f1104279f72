"""The words that shape a task: refit, units, after, harness, assets, the scorer's requires; each on a tiny one."""

from __future__ import annotations

import re
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest

from labcoat.bench import sandbox
from labcoat.bench.environment import Environment
from labcoat.bench.outcome import Outcome
from labcoat.bench.worker import SandboxedBench
from labcoat.errors import InputError
from labcoat.tree import Code, sha256
from tests.bench.conftest import OpenBench
from tests.bench.test_environment import write_wheel
from tests.bench.tiny import DATA, FIT, HEAD, MANIFEST, SCORER, candidate, make_task

UNITS_DATA = DATA.replace(
    'np.save(out / "train/y.npy", np.array([1.0, 2.0, 3.0]))\n',
    """for number, value in enumerate([1.0, 10.0, 100.0]):
    (out / "train" / str(number)).mkdir()
    np.save(out / "train" / str(number) / "y.npy", np.array([value]))
""",
).replace('("val", [4, 5]), ("test", [6])', '("val", [4, 5, 6]), ("test", [1, 2, 3])')
SUM = """import os.path
before = np.load(f'{state}/level.npy') if os.path.exists(f'{state}/level.npy') else 0.0
np.save(f'{artefact}/level.npy', before + np.load(f'{train}/y.npy').sum())"""
LAST = """x = np.load(f'{inputs}/x.npy')
np.save(f'{out}/prediction.npy', np.full(len(x), float(np.load(f'{artefact}/level.npy'))))"""


def program(fit: str, predict: str = LAST) -> Code:
    """A candidate whose fit also gets its state."""
    phases = [("if phase == 'fit':\n    train, state, artefact = rest", fit)]
    phases.append(("else:\n    inputs, artefact, out = rest", predict))
    text = [HEAD, *(f"{head}\n{textwrap.indent(lines, '    ')}" for head, lines in phases)]
    return Code.of({"main.py": "\n".join(text) + "\n"})


def units(fit: str = 'feed = "units"', predict: str = "") -> str:
    """The tiny manifest with words for its phases."""
    text = MANIFEST.replace('"{train}", "{artefact}", "{seed}"]', f'"{{train}}", "{{state}}", "{{artefact}}"]\n{fit}')
    return text.replace('"{out}"]', f'"{{out}}"]\n{predict}')


def levels(outcome: Outcome) -> list[float]:
    """What was predicted for each problem: the tiny scorer reports the mean prediction."""
    assert outcome.status == "ok", outcome.error
    return outcome.metrics["level"].values


def opened(open_bench: OpenBench, kind: sandbox.Sandbox, code: Code, **parts: str) -> SandboxedBench:
    """A bench whose baseline is ``code``."""
    return open_bench(kind, main=code.text("main.py"), **parts)


# --- refit ----------------------------------------------------------------------------------------------------------

REFIT = MANIFEST + "[test]\nrefit = true\n"
REFIT_DATA = DATA + '(out / "refit").mkdir()\nnp.save(out / "refit/y.npy", np.array([4.0, 5.0, 6.0]))\n'


def test_refit_trains_again_for_the_test_on_data_that_the_search_never_saw(
    open_bench: OpenBench, either: sandbox.Sandbox
) -> None:
    bench = open_bench(either, manifest=REFIT, data=REFIT_DATA)
    with bench.trial(candidate(), 0) as (outcome, kept):
        assert levels(outcome) == [2.0, 2.0] and kept is None and outcome.artefact is None
    test = bench.test(None, candidate(), 0)
    assert levels(test) == [5.0]
    assert [execution.phase for execution in test.executions] == ["fit", "predict"]
    assert levels(bench.baseline_test(0)) == [5.0]
    assert (bench.dataset.folder / "refit").stat().st_mode & 0o777 == 0o700


def test_a_refit_that_fails_has_no_test_score(open_bench: OpenBench, bwrap: sandbox.Sandbox) -> None:
    bench = open_bench(bwrap, manifest=REFIT, data=REFIT_DATA)
    only_small = candidate("assert np.load(f'{train}/y.npy').max() < 4\n" + FIT)
    with bench.trial(only_small, 0) as (outcome, _):
        assert outcome.ok
    test = bench.test(None, only_small, 0)
    assert test.status == "crash" and not test.metrics


def test_data_for_the_refit_must_be_there(open_bench: OpenBench, bwrap: sandbox.Sandbox) -> None:
    with pytest.raises(InputError, match=r"data\.py: it did not write refit"):
        open_bench(bwrap, manifest=REFIT)


def test_what_the_manifest_does_not_speak_of_is_refused(open_bench: OpenBench, bwrap: sandbox.Sandbox) -> None:
    with pytest.raises(InputError, match=r"data\.py: it wrote refit, of which task\.toml says nothing"):
        open_bench(bwrap, data=REFIT_DATA)


# --- units ----------------------------------------------------------------------------------------------------------


def test_units_come_one_by_one_and_the_last_artefact_predicts(open_bench: OpenBench, either: sandbox.Sandbox) -> None:
    bench = opened(open_bench, either, program(SUM), manifest=units(), data=UNITS_DATA)
    with bench.trial(program(SUM), 0) as (outcome, kept):
        assert levels(outcome) == [111.0] * 3
        assert kept is not None and [path.name for path in kept.iterdir()] == ["level.npy"]
        phases = [execution.phase for execution in outcome.executions]
        assert phases == ["fit"] * 3 + ["predict"] * 3
        assert levels(bench.test(kept, program(SUM), 0)) == [111.0] * 3
    assert outcome.executions[1].argv[-3:] == ["/train", "/state", "/artefact"]


def test_units_can_be_gone_through_several_times(open_bench: OpenBench, bwrap: sandbox.Sandbox) -> None:
    manifest = units('feed = "units"\npasses = 2')
    bench = opened(open_bench, bwrap, program(SUM), manifest=manifest, data=UNITS_DATA)
    assert levels(bench.baseline(0)) == [222.0] * 3


def test_after_each_unit_its_own_problem_is_predicted(open_bench: OpenBench, either: sandbox.Sandbox) -> None:
    manifest = units(predict='after = "each"')
    bench = opened(open_bench, either, program(SUM), manifest=manifest, data=UNITS_DATA)
    with bench.trial(program(SUM), 0) as (outcome, kept):
        assert levels(outcome) == [1.0, 11.0, 111.0]
        assert kept is not None
        assert sorted(path.relative_to(kept).as_posix() for path in kept.rglob("*.npy")) == [
            "0/level.npy", "1/level.npy", "2/level.npy",
        ]  # fmt: skip
        test = bench.test(kept, program(SUM), 0)
    assert levels(test) == [1.0, 11.0, 111.0] and test.artefact == outcome.artefact


def test_units_and_problems_must_be_as_many(open_bench: OpenBench, bwrap: sandbox.Sandbox) -> None:
    data = UNITS_DATA.replace('("test", [1, 2, 3])', '("test", [1])')
    with pytest.raises(InputError, match=r'test/ has the problems 0 and train/ the units 0, 1, 2; with after = "each"'):
        open_bench(bwrap, manifest=units(predict='after = "each"'), data=data)
    with pytest.raises(InputError, match=r"it did not write train/0, train/1 \.\.\. and nothing else"):
        open_bench(bwrap, manifest=units())


SECRETLY = """import os, glob
places = ['/tmp', '/dev/shm', '/ws', state, train]
seen = [path for place in places for path in glob.glob(f'{place}/*') if 'left' in path]
for place in places:
    try:
        open(f'{place}/left', 'w').close()
    except OSError:
        pass
np.save(f'{artefact}/level.npy', float(len(seen)))"""


def test_nothing_but_the_artefact_passes_from_unit_to_unit(open_bench: OpenBench, bwrap: sandbox.Sandbox) -> None:
    bench = opened(open_bench, bwrap, program(SECRETLY), manifest=units(), data=UNITS_DATA)
    assert levels(bench.baseline(0)) == [0.0] * 3


def test_only_so_much_passes(open_bench: OpenBench, bwrap: sandbox.Sandbox) -> None:
    manifest = units('feed = "units"\nartefact_mb = 1')
    bench = opened(open_bench, bwrap, program(SUM), manifest=manifest, data=UNITS_DATA)
    with bench.trial(program(SUM + "\nopen(f'{artefact}/all', 'wb').write(bytes(2 << 20))"), 0) as (outcome, _):
        assert outcome.status == "bad_output" and "/artefact holds more than 1048576 bytes" in outcome.error


def test_refit_of_units_after_each(open_bench: OpenBench, bwrap: sandbox.Sandbox) -> None:
    data = (
        UNITS_DATA
        + """
for number, value in enumerate([2.0, 20.0, 200.0]):
    (out / "refit" / str(number)).mkdir(parents=True)
    np.save(out / "refit" / str(number) / "y.npy", np.array([value]))
"""
    )
    manifest = units(predict='after = "each"') + "[test]\nrefit = true\n"
    bench = opened(open_bench, bwrap, program(SUM), manifest=manifest, data=data)
    assert levels(bench.baseline_test(0)) == [2.0, 22.0, 222.0]


# --- harness --------------------------------------------------------------------------------------------------------

HARNESS = MANIFEST.replace('"{out}"]', '"{out}"]\ncode = "harness"')
OURS = """import sys
import numpy as np
_, inputs, artefact, out = sys.argv[1:]
level = np.load(f"{artefact}/weights.npz")["level"]
np.save(f"{out}/prediction.npy", np.full(len(np.load(f"{inputs}/x.npy")), float(level)))
"""
WEIGHTS = "np.savez(f'{artefact}/weights.npz', level=np.load(f'{train}/y.npy').mean() + %s)"
NEVER = "raise SystemExit('a file of the candidate ran')"


@pytest.fixture
def harnessed(numpy_environment: Environment, open_folder: Path, bwrap: sandbox.Sandbox) -> SandboxedBench:
    """A task whose predict is its own program."""
    (open_folder / "task/harness").mkdir(parents=True)
    (open_folder / "task/harness/main.py").write_text(OURS)
    main = candidate(WEIGHTS % 0, NEVER).text("main.py")
    return SandboxedBench(make_task(open_folder / "task", HARNESS, main=main), bwrap, lambda text: None)


def test_a_harness_predicts_from_data_and_sees_no_file_of_the_candidate(harnessed: SandboxedBench) -> None:
    with harnessed as bench:
        bench.prepare()
        assert levels(bench.baseline(0)) == [2.0, 2.0]
        with bench.trial(candidate(WEIGHTS % 1, NEVER), 0) as (outcome, kept):
            assert levels(outcome) == [3.0, 3.0]
            fit, first, _ = outcome.executions
            assert fit.tree == candidate(WEIGHTS % 1, NEVER).sha and first.tree == bench.task.harness.sha
            assert levels(bench.test(kept, candidate(WEIGHTS % 1, NEVER), 0)) == [3.0]


BOMB = """import zipfile
with zipfile.ZipFile(f'{artefact}/weights.npz', 'w', zipfile.ZIP_DEFLATED) as archive:
    with archive.open('level.npy', 'w') as member:
        np.lib.format.write_array_header_1_0(member, {'descr': '<f8', 'fortran_order': False, 'shape': (1 << 26,)})
        for _ in range(512):
            member.write(bytes(1 << 20))"""


@pytest.mark.parametrize(
    ("fit", "status", "said"),
    [
        ("open(f'{artefact}/weights.pkl', 'wb').write(b'x')", "bad_output", r"weights\.pkl' is not one of \.npy, "),
        ("open(f'{artefact}/code.py', 'w').write('x = 1')", "bad_output", r"code\.py' is not one of"),
        ("np.savez(f'{artefact}/weights.npz', level=np.array({}, dtype=object))", "crash", "allow_pickle=False"),
        (BOMB, "out_of_memory", "predict used more than 400 MiB"),
    ],
)
def test_what_a_harness_must_not_read_has_no_score(harnessed: SandboxedBench, fit: str, status: str, said: str) -> None:
    with harnessed as bench:
        bench.prepare()
        with bench.trial(candidate(fit, NEVER), 0) as (outcome, _):
            assert outcome.status == status and re.search(said, outcome.error), outcome.error


def test_the_harness_is_part_of_the_task(harnessed: SandboxedBench) -> None:
    task = harnessed.task
    before = task.hash
    (task.folder / "harness/main.py").write_text(OURS + "# changed\n")
    assert type(task).load(task.folder).hash != before


# --- assets, and the scorer's own environment -------------------------------------------------------------------------


@pytest.fixture
def wheels(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of our own, and a home of its own."""
    found = open_folder / "wheels"
    found.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(found))
    return found


def asset(content: bytes, member: str = "tiny_weights/level.txt") -> str:
    return f'[[data.asset]]\nwheel = "tiny_weights==1.0"\nmember = "{member}"\nsha256 = "{sha256(content)}"\n'


def with_assets(manifest: str) -> str:
    """The tiny manifest with assets among the arguments of both phases."""
    return manifest.replace('"{seed}"]', '"{assets}"]').replace('"{out}"]', '"{out}", "{assets}"]')


ASSET_PROGRAM = Code.of(
    {
        "main.py": HEAD
        + """
if phase == "fit":
    train, artefact, assets = rest
    np.save(f"{artefact}/level.npy", float(open(f"{assets}/level.txt").read()))
    try:
        open(f"{assets}/level.txt", "w")
        raise SystemExit("an asset can be changed")
    except OSError:
        pass
else:
    inputs, artefact, out, assets = rest
    level = np.load(f"{artefact}/level.npy") + float(open(f"{assets}/level.txt").read())
    np.save(f"{out}/prediction.npy", np.full(len(np.load(f"{inputs}/x.npy")), level))
"""
    }
)


def test_assets_are_given_to_every_phase_and_cannot_be_changed(
    open_bench: OpenBench, bwrap: sandbox.Sandbox, wheels: Path
) -> None:
    write_wheel(wheels, "tiny_weights", {"tiny_weights/level.txt": b"4.5"})
    bench = opened(open_bench, bwrap, ASSET_PROGRAM, manifest=with_assets(MANIFEST) + asset(b"4.5"))
    assert levels(bench.baseline(0)) == [9.0, 9.0]


def test_another_asset_is_another_data_set(open_bench: OpenBench, bwrap: sandbox.Sandbox, wheels: Path) -> None:
    members = {"tiny_weights/level.txt": b"4.5", "tiny_weights/other/level.txt": b"1"}
    write_wheel(wheels, "tiny_weights", members)
    manifest = with_assets(MANIFEST)
    first = opened(open_bench, bwrap, ASSET_PROGRAM, manifest=manifest + asset(b"4.5"))
    other = asset(b"1", "tiny_weights/other/level.txt")
    second = opened(open_bench, bwrap, ASSET_PROGRAM, manifest=manifest + other)
    assert levels(second.baseline(0)) == [2.0, 2.0] and levels(first.baseline(0)) == [9.0, 9.0]
    with pytest.raises(InputError, match=r"data\.asset: two members have the same file name"):
        opened(open_bench, bwrap, ASSET_PROGRAM, manifest=manifest + asset(b"4.5") + other)


def numpy_wheel(folder: Path) -> str:
    """Our own numpy as a wheel in ``folder``; its pinned requirement."""
    package = Path(np.__file__).parent
    places = [place for place in (package, package.with_name("numpy.libs")) if place.exists()]
    with zipfile.ZipFile(folder / f"numpy-{np.__version__}-py3-none-any.whl", "w") as wheel:
        for path in (path for place in places for path in place.rglob("*")):
            if path.is_file() and not {"tests", "__pycache__"} & set(path.parts):
                wheel.write(path, path.relative_to(package.parent))
        info = f"numpy-{np.__version__}.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: numpy\nVersion: {np.__version__}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return f"numpy=={np.__version__}"


def test_a_scorer_has_what_it_requires_and_the_candidate_does_not(
    open_bench: OpenBench, bwrap: sandbox.Sandbox, wheels: Path
) -> None:
    write_wheel(wheels, "judging", {"judging.py": b"OFFSET = 5.0\n"})
    requires = f'[score]\nrequires = ["judging==1.0", "{numpy_wheel(wheels)}"]'
    scorer = "import judging\n" + SCORER.replace("p.mean())", "p.mean() + judging.OFFSET)")
    bench = open_bench(bwrap, manifest=MANIFEST.replace("[score]", requires), scorer=scorer)
    assert levels(bench.baseline(0)) == [7.0, 7.0]
    with bench.trial(candidate("import judging"), 0) as (outcome, _):
        assert outcome.status == "crash" and "No module named 'judging'" in outcome.error
