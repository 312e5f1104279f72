"""Trials from end to end: every status, nothing hidden in sight, nothing left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from labcoat.bench import dataset, home, sandbox
from labcoat.bench.outcome import Measure, Outcome
from labcoat.errors import CannotRunHere
from labcoat.tree import Code, sha256
from tests.bench.conftest import OpenBench
from tests.bench.tiny import CONSTANT, CONSTRAINT, DATA, FIT, MANIFEST, PREDICT, SCORER, WITHOUT_FIT, candidate, program

VALUE = "np.save(f'{artefact}/level.npy', %s)"


def outcome(bench_code: Code, open_bench: OpenBench, where: sandbox.Sandbox, **parts: str) -> Outcome:
    """The outcome of one trial in a bench of its own."""
    with open_bench(where, **parts).trial(bench_code, 0) as (found, _):
        return found


def test_baseline_trial_and_test(open_bench: OpenBench, either: sandbox.Sandbox) -> None:
    bench = open_bench(either)
    baseline = bench.baseline(0)
    assert baseline.status == "ok" and baseline.seed == 0
    assert baseline.metrics == {"error": Measure([0.5, 1.5], [0.1, 0.1]), "level": Measure([2.0, 2.0], [None, None])}
    assert baseline.slack == {"level": 0.5}
    assert bench.baseline(0) == baseline

    with bench.trial(candidate(VALUE % 2.5), seed=7) as (better, kept):
        assert better.status == "ok" and better.seed == 7
        assert better.metrics["error"].values == [0.0, 1.0] and better.slack == {"level": 1.0}
        assert kept is not None and np.load(kept / "level.npy") == 2.5
        test = bench.test(kept, candidate(VALUE % 2.5), seed=7)
        folder = kept.parent
    assert not folder.exists()
    assert test.status == "ok" and test.metrics["error"].values == [0.0]
    assert test.artefact == better.artefact
    assert bench.baseline_test(7).metrics["error"].values == [0.5]


def test_executions_tell_what_ran(open_bench: OpenBench, either: sandbox.Sandbox) -> None:
    code = candidate("print('training')\n" + FIT)
    with open_bench(either).trial(code, seed=3) as (found, kept):
        assert kept is not None
        level = sha256((kept / "level.npy").read_bytes())
    fit, first, second = found.executions
    assert fit.argv == ["python", "main.py", "fit", "/train", "/artefact", "3"]
    assert (fit.phase, fit.tree, fit.exit, fit.stdout) == ("fit", code.sha, 0, "training\n")
    assert fit.written == {"level.npy": level} and fit.seconds > 0 and fit.peak_memory > 1 << 20
    assert first.argv == ["python", "main.py", "predict", "/inputs", "/artefact", "/out"]
    assert set(first.written) == {"prediction.npy"} and first.written != second.written
    assert Outcome.from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        (candidate("1 / 0"), "crash", "ZeroDivisionError: division by zero"),
        (candidate("sys.exit(3)"), "crash", "exit code 3"),
        (candidate("os.kill(os.getpid(), 11)"), "crash", "SIGSEGV"),
        (candidate("print('only this'); sys.exit(1)"), "crash", "only this"),
        (candidate(predict="raise KeyError('x')"), "crash", "predict ended with exit code 1"),
        (Code.of({"main.py": "def f(:\n"}), "crash", "SyntaxError"),
        (Code.of({"other.py": ""}), "crash", "/ws/main.py"),
        (Code.of({"main.py": "", "main.py/x": ""}), "crash", "cannot be written"),
        (candidate("time.sleep(60)"), "timeout", "fit ran longer than 3 s"),
        (candidate("x = b'x' * (500 << 20); time.sleep(60)"), "out_of_memory", "more than 400 MiB"),
        (candidate("open(f'{artefact}/big', 'wb').write(b'x' * (5 << 20))"), "crash", "File too large"),
        (
            candidate("for i in range(3): open(f'{artefact}/{i}', 'wb').write(b'x' * (3 << 20))"),
            "crash",
            "fit wrote more than 4 MiB and was ended",
        ),
        (candidate("os.symlink('/etc/passwd', f'{artefact}/x')"), "tampered", "/artefact/x' is a symbolic link"),
        (candidate(predict="pass"), "bad_output", "/out/prediction.npy is missing"),
        (candidate(predict=PREDICT + "\nopen(f'{out}/more', 'w')"), "bad_output", "'more'"),
        (candidate(predict="os.mkfifo(f'{out}/prediction.npy')"), "tampered", "named pipe"),
        (candidate(VALUE % "np.nan"), "bad_output", "NaN or infinity"),
        (candidate(VALUE % 77.0), "bad_output", "77 is not allowed"),
        (candidate(VALUE % 99.0), "bad_output", "level is inf for this output"),
        (candidate(VALUE % 1.0), "violation", "level = 1 must be at least 1.5 (the baseline's 2, tolerance 0.5)"),
    ],
)
def test_statuses(
    code: Code, status: str, said: str, open_bench: OpenBench, bwrap: sandbox.Bubblewrap, labcoat_home: Path
) -> None:
    manifest = (MANIFEST + CONSTRAINT).replace("timeout = 20", "timeout = 3", 1)
    bench = open_bench(bwrap, manifest=manifest)
    with bench.trial(code, 0) as (found, _):
        assert (found.status, found.ok) == (status, False)
    assert said in found.error
    assert str(labcoat_home) not in found.error
    assert bool(found.metrics) == (status == "violation")
    ended = status in ("timeout", "out_of_memory") or "was ended" in said
    assert all(execution.exit is not None for execution in found.executions) or ended
    scratch = bench._scratch.folder
    assert not list(scratch.glob("trial-*"))
    bench.close()
    assert not scratch.exists()


def test_statuses_without_a_sandbox(open_bench: OpenBench, labcoat_home: Path) -> None:
    bench = open_bench(
        sandbox.Unsandboxed(), manifest=(MANIFEST + CONSTRAINT).replace("timeout = 20", "timeout = 3", 1)
    )
    for code, status, said in (
        (candidate("1 / 0"), "crash", 'File "/ws/main.py", line'),
        (candidate("raise SystemExit(artefact)"), "crash", "\n/artefact"),
        (candidate("time.sleep(60)"), "timeout", "fit ran longer than 3 s"),
        (candidate("x = b'x' * (500 << 20); time.sleep(60)"), "out_of_memory", "more than 400 MiB"),
        (candidate(predict="os.symlink('/etc/passwd', f'{out}/prediction.npy')"), "tampered", "symbolic link"),
        (candidate(VALUE % 1.0), "violation", "level = 1"),
    ):
        with bench.trial(code, 0) as (found, _):
            assert found.status == status and said in found.error and str(labcoat_home) not in found.error


def test_without_a_sandbox_changed_code_is_found(open_bench: OpenBench) -> None:
    change = "os.chmod(sys.argv[0], 0o644)\nopen(sys.argv[0], 'a').write('#')\n"
    found = outcome(candidate(change + FIT), open_bench, sandbox.Unsandboxed())
    if os.geteuid() == 0:  # the code is root's, so the worker's user cannot change it
        assert found.status == "crash" and "not permitted" in found.error
    else:
        assert found.status == "tampered" and "may only read" in found.error


HUNT = """import glob
found = []
for folder, _, files in os.walk('/', onerror=lambda error: None):
    if folder.startswith(('/proc', '/usr', '/env', '/python', '/lib')):
        continue
    found += [os.path.join(folder, name) for name in files]
found = [path for path in found if not path.startswith(('/dev', '/etc'))]
raise SystemExit(' '.join(sorted(found)) + ' ' + ' '.join(sorted(os.environ)))
"""


def test_a_candidate_sees_its_code_and_its_inputs(
    open_bench: OpenBench, bwrap: sandbox.Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    bench = open_bench(bwrap)
    with bench.trial(candidate(HUNT), 0) as (found, _):
        files = [word for word in found.error.split() if word.startswith("/")]
        assert files == ["/train/y.npy", "/ws/main.py"]
        assert "OPENAI_API_KEY" not in found.error and "LABCOAT_HOME" not in found.error
    with bench.trial(candidate(predict=HUNT), 0) as (found, _):
        files = [word for word in found.error.split() if word.startswith("/")]
        assert files == ["/artefact/level.npy", "/inputs/x.npy", "/ws/main.py"]


def test_a_worker_may_write_only_where_it_must(open_bench: OpenBench, bwrap: sandbox.Bubblewrap) -> None:
    code = """for path in ('/ws', train, '/', '/env'):
    try:
        open(path + '/x', 'w')
    except OSError as error:
        print(path, error.strerror)"""
    found = outcome(candidate(code), open_bench, bwrap)
    assert found.executions[0].stdout.count("Read-only file system") == 4


def test_the_hidden_split_is_closed_to_everybody(open_bench: OpenBench, bwrap: sandbox.Bubblewrap) -> None:
    bench = open_bench(bwrap)
    hidden = bench.dataset.folder / "test"
    assert hidden.stat().st_mode & 0o777 == 0o700
    for answers in bench.dataset.folder.glob("val/*/answers"):
        assert answers.stat().st_mode & 0o777 == 0o700
        assert answers.stat().st_uid == (64202 if os.geteuid() == 0 else os.geteuid())


def test_the_baseline_is_measured_once_and_kept(open_bench: OpenBench, bwrap: sandbox.Bubblewrap) -> None:
    said: list[str] = []
    bench = open_bench(bwrap)
    bench._report = said.append
    first = bench.baseline(5)
    assert said == ["measuring the baseline (seed 5)"]
    bench._baselines.clear()
    assert bench.baseline(5) == first and len(said) == 1
    assert bench._baseline_folder(5) != bench._baseline_folder(6)
    assert bench.baseline_test(5) == bench.baseline_test(5)


def test_a_broken_baseline_stops_trials_and_is_not_kept(open_bench: OpenBench, bwrap: sandbox.Bubblewrap) -> None:
    bench = open_bench(bwrap, main=program("1 / 0"))
    assert bench.baseline(0).status == "crash"
    with (
        pytest.raises(CannotRunHere, match=r"the unchanged code cannot be measured here.*\n(.*\n)*ZeroDivisionError"),
        bench.trial(candidate(), 0),
    ):
        pass
    assert not bench._baseline_folder(0).exists()


def test_an_output_on_which_two_scorers_fail_makes_that_trial_a_crash(
    open_bench: OpenBench, bwrap: sandbox.Bubblewrap
) -> None:
    dies = "if float(outputs['prediction'].ravel()[0]) == 13.0: __import__('os')._exit(3)\n    p = outputs"
    bench = open_bench(bwrap, scorer=SCORER.replace("p = outputs", dies, 1))
    with bench.trial(candidate(VALUE % 13.0), 0) as (found, _):
        assert (found.status, found.metrics) == ("crash", {})
        assert found.error.startswith("the scorer failed on what this code left") and "exit code 3" in found.error
    with bench.trial(candidate(VALUE % 2.0), 0) as (found, _):
        assert found.ok


def test_a_task_without_fit(open_bench: OpenBench, either: sandbox.Sandbox) -> None:
    bench = open_bench(either, manifest=WITHOUT_FIT, main=CONSTANT)
    with bench.trial(bench.task.baseline, 0) as (found, kept):
        assert found.status == "ok" and kept is None and found.artefact is None
        assert len(found.executions) == 2
    assert bench.test(None, bench.task.baseline, 0).metrics["error"].values == [0.0]


def test_on_the_test_split_the_bound_is_widened(open_bench: OpenBench, bwrap: sandbox.Bubblewrap) -> None:
    scorer = SCORER.replace('"se": None', '"se": 0.3')
    bench = open_bench(bwrap, scorer=scorer)
    low = candidate(VALUE % 1.0)
    with bench.trial(low, 0) as (found, kept):
        assert found.status == "violation" and found.slack["level"] == pytest.approx(-0.5)
        test = bench.test(kept, low, 0)
    assert test.status == "ok" and test.slack["level"] == pytest.approx(-0.5 + 2 * np.hypot(0.3, 0.3))


def test_our_own_cost_is_small(open_bench: OpenBench, bwrap: sandbox.Bubblewrap) -> None:
    bench = open_bench(bwrap)
    bench.baseline(0)
    costs: list[float] = []
    while len(costs) < 15 and min(costs, default=1.0) >= 0.05:  # a busy machine slows most of them
        with bench.trial(candidate(), 0) as (found, _):
            costs.append(found.seconds - sum(execution.seconds for execution in found.executions))
    assert min(costs) < 0.05


def test_facts(open_bench: OpenBench, either: sandbox.Sandbox) -> None:
    bench = open_bench(either)
    found = json.loads(json.dumps(bench.facts()))
    assert found["sandbox"]["level"] == either.level and len(found["dataset"]["fingerprint"]) == 64
    assert found["machine"]["cores"] >= 1 and found["environment"]["lock_hash"]
    assert found["salt_hash"] == sha256(home.salt())


def test_a_full_disk_is_not_the_candidates_fault(
    open_bench: OpenBench, bwrap: sandbox.Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = open_bench(bwrap)
    bench.baseline(0)
    real = os.statvfs

    def full(path: str) -> os.statvfs_result:
        state = list(real(path))
        state[4] = 0
        return os.statvfs_result(state)

    monkeypatch.setattr(os, "statvfs", full)
    with pytest.raises(CannotRunHere, match=r"no space left.*LABCOAT_HOME"), bench.trial(candidate("1 / 0"), 0):
        pass


def test_data_changes_make_another_dataset(open_bench: OpenBench, bwrap: sandbox.Bubblewrap) -> None:
    first, second = open_bench(bwrap), open_bench(bwrap, data=DATA.replace("2.5 + k", "2.0 + k"))
    assert first.dataset.folder != second.dataset.folder
    assert first.dataset.fingerprint != second.dataset.fingerprint
    assert [problem.name for problem in dataset.problems(first.dataset.folder / "val")] == ["0", "1"]


def test_two_benches_at_once(open_bench: OpenBench, either: sandbox.Sandbox) -> None:
    first, second = open_bench(either), open_bench(either, scorer=SCORER + "# another\n")
    assert first.baseline(0).ok and second.baseline(0).ok  # both scorers run now
    with first.trial(candidate(VALUE % 2.5), 0) as (one, _), second.trial(candidate(VALUE % 2.5), 0) as (two, _):
        assert one.ok and two.ok
    first.close()
    with second.trial(candidate(VALUE % 2.5), 0) as (two, _):
        assert two.ok
