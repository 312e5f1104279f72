"""The scorer's protocol, and that its failures are ours and never a score."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from labcoat.bench import sandbox
from labcoat.bench.outputs import BadOutput
from labcoat.bench.scorer import Lines, Scorer, ScorerFailed
from labcoat.bench.worker import SandboxedBench
from tests.bench.conftest import OpenBench
from tests.bench.tiny import DATA, MANIFEST, SCORER


@contextmanager
def opened(bench: SandboxedBench, folder: Path) -> Iterator[Scorer]:
    folder.mkdir()
    folder.chmod(0o755)
    with Scorer(bench.task, bench.environment, bench.sandbox, bench.dataset.val, folder) as scorer:
        yield scorer


def outputs(values: float, rows: int = 4) -> dict[str, bytes]:
    stream = io.BytesIO()
    np.save(stream, np.full(rows, values))
    return {"prediction.npy": stream.getvalue()}


def test_scores_and_refusals(open_bench: OpenBench, either: sandbox.Sandbox, open_folder: Path) -> None:
    bench = open_bench(either)
    first, second = bench.dataset.val
    with opened(bench, open_folder / "scorer") as scorer:
        assert scorer.score(first, outputs(2.0)) == {"error": (0.5, 0.1), "level": (2.0, None)}
        with pytest.raises(BadOutput, match=r"^77 is not allowed$"):
            scorer.score(first, outputs(77.0))
        with pytest.raises(BadOutput, match="level is inf"):
            scorer.score(first, outputs(99.0))
        assert scorer.score(second, outputs(3.5, rows=5))["error"] == (0.0, 0.1)
        assert not list((open_folder / "scorer/outputs").iterdir())


@pytest.mark.parametrize(
    ("scorer", "said"),
    [
        ("def score(:", "SyntaxError"),
        ("import no_such_library", "No module named 'no_such_library'"),
        ("def score(outputs, answers): return 1 / 0", "ZeroDivisionError"),
        ("def score(outputs, answers): return {}", "measured no error"),
        ("def score(outputs, answers): return {'error': 3}", "TypeError"),
        ("def score(outputs, answers):\n    import os\n    os._exit(5)", "ended with exit code 5"),
        (
            "def score(outputs, answers):\n    import os\n    os.close(0); os.close(3); os.close(1)\n    os._exit(0)",
            "ended",
        ),
        ("def score(outputs, answers):\n    import time\n    time.sleep(60)", "did not answer within 3 s"),
        (
            "def score(outputs, answers):\n    x = b'x' * (900 << 20)\n    import time\n    time.sleep(60)",
            "more than 400 MiB",
        ),
        ("import os\ndef score(outputs, answers):\n    os.write(3, b'garbage\\n')", "answered b'garbage'"),
        ("import os\ndef score(outputs, answers):\n    os.write(3, b'[1]\\n')", "answered b'\\[1\\]'"),
        ("import os\ndef score(outputs, answers):\n    os.write(3, b'{\"id\": 9}\\n')", "to request 1"),
        ("import os\ndef score(outputs, answers):\n    os.write(3, b'x' * (2 << 20))", "line of more than"),
        (
            'import os\ndef score(outputs, answers):\n    os.write(3, b\'{"id": 1, "metrics": {"error": 1}}\\n\')',
            "answered {'id': 1",
        ),
    ],
)
def test_failures_are_ours(
    scorer: str, said: str, open_bench: OpenBench, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    manifest = MANIFEST.replace("timeout = 10", "timeout = 3")
    bench = open_bench(bwrap, scorer=scorer, manifest=manifest)
    with opened(bench, open_folder / "scorer") as found, pytest.raises(ScorerFailed, match=said) as caught:
        found.score(bench.dataset.val[0], outputs(1.0))
    assert "scorer.py: the scorer " in str(caught.value)


def test_the_scorer_has_no_network_and_sees_one_split(
    open_bench: OpenBench, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    look = """import os, socket
def score(outputs, answers):
    walks = [walk for top in ("/split", "/outputs", "/scorer") for walk in os.walk(top)]
    seen = sorted(os.path.join(folder, name) for folder, _, names in walks for name in names)
    raise ValueError(" ".join([*seen, *os.listdir("/"), *[name for _, name in socket.if_nameindex()]]))
"""
    bench = open_bench(bwrap, scorer=look)
    with opened(bench, open_folder / "scorer") as scorer, pytest.raises(BadOutput) as caught:
        scorer.score(bench.dataset.val[0], outputs(1.0))
    files = [word for word in str(caught.value).split() if word.startswith("/")]
    assert files == [
        "/outputs/1/prediction.npy",
        "/scorer/score_server.py",
        "/scorer/scorer.py",
        *(f"/split/{n}/{name}" for n in (0, 1) for name in ("answers/y.npy", "inputs/x.npy", "problem.json")),
    ]
    assert not {"ws", "train", "artefact"} & set(str(caught.value).split())


@pytest.mark.slow
def test_a_split_may_have_thousands_of_problems(
    open_bench: OpenBench, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    bench = open_bench(bwrap, data=DATA.replace("[4, 5]", "[4] * 3100"))  # bwrap takes 3,000 folders
    with opened(bench, open_folder / "scorer") as scorer:
        assert scorer.score(bench.dataset.val[3099], outputs(3101.5))["error"] == (0.0, 0.1)


def test_a_failing_scorer_stops_a_trial(open_bench: OpenBench, bwrap: sandbox.Bubblewrap) -> None:
    bench = open_bench(bwrap, scorer=SCORER.replace("p = outputs", "raise KeyError\n    p = outputs"))
    with pytest.raises(ScorerFailed, match="KeyError"), bench.trial(bench.task.baseline, 0):
        pass


def test_lines() -> None:
    lines = Lines()
    lines.feed(b"one\ntw")
    assert (lines.next(), lines.next()) == (b"one", None)
    lines.feed(b"o\n\n")
    assert (lines.next(), lines.next(), lines.next()) == (b"two", b"", None)
    lines.feed(b"x" * (3 << 20))
    assert lines.too_long
