"""Root drops privileges itself; an ordinary user has none to drop. Here root runs the same as an ordinary user."""

from __future__ import annotations

import json
from pathlib import Path

from labcoat.bench import sandbox
from labcoat.bench.environment import Environment
from tests.bench.tiny import FIT, candidate, make_task, program
from tests.bench.users import run_as_nobody

SCRIPT = """
import json, os, sys
from pathlib import Path
from labcoat.bench import environment, sandbox
from labcoat.bench.worker import SandboxedBench
from labcoat.errors import CannotRunHere
from labcoat.task import Task
from labcoat.tree import Code
from tests.bench.conftest import with_numpy
assert os.getuid() == 65534
task, candidates = Task.load(Path(sys.argv[1])), json.loads(sys.argv[2])
with_numpy(environment.prepare([], lambda text: None))
found = {"probe": sandbox.probe()}
good, poisons = Code.of({"main.py": candidates["good"]}), json.loads(sys.argv[3])
for level in ("bwrap", "none"):
    with SandboxedBench(task, sandbox.choose(level, False), lambda text: None) as bench:
        bench.prepare()
        for name, main in candidates.items():
            with bench.trial(Code.of({"main.py": main}), 0) as (outcome, kept):
                test = bench.test(kept, Code.of({"main.py": main}), 0).status if outcome.ok else None
                found[f"{level} {name}"] = [outcome.status, outcome.error, test]
for name, main in poisons.items():
    with SandboxedBench(task, sandbox.choose("none", False), lambda text: None) as bench:
        bench.prepare()
        folders = [bench.environment.folder / "complete", bench.dataset.folder / "fingerprint"]
        with bench.trial(Code.of({"main.py": main}), 0) as (outcome, _):
            found[name] = [outcome.status, *(folder.exists() for folder in folders)]
        try:
            with bench.trial(good, 0) as (outcome, _):
                found[f"{name}, then"] = outcome.status
        except CannotRunHere as error:
            found[f"{name}, then"] = str(error)
    with_numpy(environment.prepare([], lambda text: None))
    with SandboxedBench(task, sandbox.choose("none", False), lambda text: None) as bench:
        bench.prepare()
        with bench.trial(good, 0) as (outcome, _):
            found[f"{name}, again"] = [outcome.status, outcome.metrics["error"].values]
print(json.dumps(found))
"""

CLOSE = """os.makedirs(f'{artefact}/a/b'); open(f'{artefact}/a/b/c', 'w').close()
np.save(f'{artefact}/level.npy', 2.0)
for path in ('/a/b/c', '/a/b', '/a', '/level.npy', ''): os.chmod(artefact + path, 0)"""


# What an ordinary user's worker can reach where there is no sandbox: libraries, answers, and both stamps.
POISONS = {
    "environment": "open(np.__file__, 'a').write('# poison\\n')",
    "answers": "place = os.path.dirname(train) + '/val/0/answers'\n"
    "os.chmod(place, 0o700)\nos.chmod(place + '/y.npy', 0o600)\nnp.save(place + '/y.npy', np.zeros(4))",
    "stamp": "place = os.path.dirname(sys.prefix)\nos.remove(place + '/complete')\n"
    "os.mkdir(place + '/complete')\nos.chmod(place, 0o500)",
}


def test_everything_works_for_an_ordinary_user(
    numpy_environment: Environment, bwrap: sandbox.Bubblewrap, open_folder: Path
) -> None:
    make_task(open_folder / "task")
    theirs = open_folder / "home"
    touch = "os.chmod(sys.argv[0], 0o644)\nopen(sys.argv[0], 'a').write('#')\n"
    candidates = {
        "good": candidate().text("main.py"),
        "closed": program(CLOSE),
        "crash": program("1 / 0"),
        "hidden": program(f"raise SystemExit(str([os.path.exists(p) for p in ('/home', {str(theirs)!r})]))"),
        "touch": program(touch),
    }
    poisons = {name: program(f"{lines}\n{FIT}") for name, lines in POISONS.items()}
    args = [str(open_folder / "task"), json.dumps(candidates), json.dumps(poisons)]
    found = json.loads(run_as_nobody(numpy_environment, open_folder, SCRIPT, *args))
    assert found["probe"] is None
    for level in ("bwrap", "none"):
        assert found[f"{level} good"] == ["ok", "", "ok"]
        assert found[f"{level} closed"] == ["ok", "", "ok"]
        assert found[f"{level} crash"][0] == "crash" and "/ws/main.py" in found[f"{level} crash"][1]
    assert found["bwrap touch"][0] == "crash" and "Read-only file system" in found["bwrap touch"][1]
    assert found["none touch"][0] == "tampered"
    assert found["environment"] == found["stamp"] == ["tampered", False, True]
    assert found["answers"] == ["tampered", True, False]
    for name in POISONS:
        assert "changed by an earlier command; start again" in found[f"{name}, then"]
        assert found[f"{name}, again"] == ["ok", [0.5, 1.5]]
    assert found["bwrap hidden"][0] == "crash" and "[False, False]" in found["bwrap hidden"][1]
    assert not list((theirs / "labcoat/work").glob("bench-*"))
