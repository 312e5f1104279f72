"""The task fml/gcastle-notears: manifest, generator, scorer, and its programs."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import labcoat
from labcoat.bench import sandbox
from labcoat.bench.environment import Environment, outside, prepare
from labcoat.bench.worker import SandboxedBench
from labcoat.task import Task

FOLDER = Path(labcoat.__file__).parent / "tasks/fml/gcastle-notears"
SOLUTIONS = sorted(path.name for path in (FOLDER / "solutions").iterdir() if path.is_dir())
SALT, OTHER = bytes(32), bytes(31) + b"1"
ONE_THREAD = {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def load(path: str) -> ModuleType:
    """Import one of the task's files; its folder is no package."""
    spec = importlib.util.spec_from_file_location(f"gcastle_notears_{path.replace('/', '_')}", FOLDER / f"{path}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


data, scorer = load("data"), load("scorer")


def dag(nodes: int, *edges: tuple[int, int]) -> Any:
    """A graph from its edges."""
    graph = np.zeros((nodes, nodes), bool)
    for i, j in edges:
        graph[i, j] = True
    return graph


def score(graph: Any, truth: Any) -> dict[str, float]:
    """The values of all metrics."""
    scores = scorer.score({"graph": graph}, {"graph": truth})
    assert all(measure["se"] is None for measure in scores.values())
    return {name: measure["value"] for name, measure in scores.items()}


def is_acyclic(graph: Any) -> bool:
    """Whether no walk has as many steps as there are nodes."""
    return not np.linalg.matrix_power(graph.astype(float), len(graph)).any()


def random_digraphs(count: int, nodes: int, share: float) -> list[Any]:
    """Directed graphs without loops, with and without cycles."""
    rng = np.random.default_rng(0)
    return [(rng.random((nodes, nodes)) < share) & ~np.eye(nodes, dtype=bool) for _ in range(count)]


# --- manifest


def test_manifest_loads_and_agrees_with_the_scripts() -> None:
    task = Task.load(FOLDER)
    manifest = task.manifest
    assert task.id == "fml/gcastle-notears" and manifest.data.salted and not manifest.data.source
    assert task.editable_files(task.baseline) == ["algorithm.py"]
    assert [phase.name for phase in manifest.phase] == ["predict"]
    assert all("==" in requirement for requirement in manifest.environment.requires)
    truth = dag(3, (0, 1))
    assert score(np.zeros((3, 3), bool), truth)[manifest.metric.name] == manifest.metric.worst
    assert score(truth, truth)[manifest.metric.name] == manifest.metric.best
    sizes = data.SIZES["cpu"]
    for split, text in (("val", "{} validation graphs"), ("test", "{} other graphs")):
        assert text.format(len(sizes[split]) * len(data.KINDS)) in manifest.prompt.text
        assert f"{min(sizes[split])} to {max(sizes[split])} variables" in manifest.prompt.text
    assert f"({data.SAMPLES}, d)" in manifest.prompt.text


def test_noop_differs_from_the_baseline_in_comments_only() -> None:
    noop, baseline = ((FOLDER / place / "algorithm.py").read_text() for place in ("solutions/noop", "workspace"))
    assert noop != baseline
    assert ast.dump(ast.parse(noop)) == ast.dump(ast.parse(baseline))


# --- generator


@pytest.mark.parametrize("nodes", [3, 10, 20, 50])
def test_graphs_are_drawn_in_topological_order_with_their_number_of_edges(nodes: int) -> None:
    for seed in range(20):
        scale_free = data.scale_free(nodes, np.random.default_rng(seed))
        assert not np.tril(scale_free).any() and scale_free.sum() == 2 * nodes - 3
        if nodes >= 5:  # fewer have no room for so many edges
            uniform = data.erdos_renyi(nodes, np.random.default_rng(seed))
            assert not np.tril(uniform).any() and uniform.sum() == 2 * nodes


def test_scale_free_graphs_have_hubs_of_effects_or_of_causes() -> None:
    graphs = [data.scale_free(50, np.random.default_rng(seed)) for seed in range(60)]
    most_causes = np.array([graph.sum(0).max() for graph in graphs])
    most_effects = np.array([graph.sum(1).max() for graph in graphs])
    assert (np.minimum(most_causes, most_effects) == 2).all()
    assert (np.maximum(most_causes, most_effects) > 6).all()
    assert 15 < (most_causes > most_effects).sum() < 45


def test_samples_follow_the_model() -> None:
    rng = np.random.default_rng(0)
    X = data.sample(dag(3, (0, 2), (1, 2)), 20_000, rng)
    assert X[:, :2].std(0) == pytest.approx(0.5, abs=0.01)
    # Given nearly the same causes, what is left of the effect is its own noise.
    near = (np.abs(X[:, 0] - 0.4) < 0.05) & (np.abs(X[:, 1] + 0.3) < 0.05)
    assert X[near, 2].std() == pytest.approx(0.5, abs=0.05)
    assert X[:, 2].std() > 0.55


def test_problems_are_standardised_shuffled_and_belong_to_their_graphs() -> None:
    forward = total = 0
    apart: list[tuple[float, float]] = []
    for X, graph in data.problems(SALT, "cpu", "test"):
        assert X.dtype == np.float64 and X.shape == (500, len(graph))
        assert np.abs(X.mean(0)).max() < 1e-12 and np.abs(X.std(0) - 1).max() < 1e-12
        assert is_acyclic(graph)
        forward, total = forward + int(np.triu(graph).sum()), total + int(graph.sum())
        related, strength = graph | graph.T | np.eye(len(graph), dtype=bool), np.abs(np.corrcoef(X, rowvar=False))
        apart.append((float(strength[graph].mean()), float(strength[~related].mean())))
    assert 0.4 < forward / total < 0.6, "the order of columns says nothing"
    assert all(edge > other for edge, other in apart)


def test_every_salt_and_every_problem_has_its_own_graph() -> None:
    def graphs(salt: bytes) -> list[bytes]:
        return [graph.tobytes() for split in ("val", "test") for _, graph in data.problems(salt, "cpu", split)]

    first, second = graphs(SALT), graphs(OTHER)
    assert first == graphs(SALT)
    assert len({*first, *second}) == len(first) + len(second) == 60


def test_scales() -> None:
    for split, count in (("val", 10), ("test", 20)):
        sizes = [len(graph) for _, graph in data.problems(SALT, "cpu", split)]
        assert len(sizes) == count and min(sizes) == 10 and max(sizes) == 20
    for split, count in (("val", 6), ("test", 10)):
        assert [len(graph) for _, graph in data.problems(SALT, "full", split)] == [50] * count


def make(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run ``data.py`` as the bench does."""
    argv = [sys.executable, str(FOLDER / "data.py"), "--sources", str(out), "--out", str(out), "--scale", "cpu", *more]
    return subprocess.run(argv, capture_output=True, text=True, env=os.environ | ONE_THREAD)


def test_no_truth_is_in_the_inputs(tmp_path: Path) -> None:
    for folder, salt in (("one", SALT), ("again", SALT), ("other", OTHER)):
        assert make(tmp_path / folder, "--salt", salt.hex()).returncode == 0
    one, again, other = (
        {path.relative_to(tmp_path / folder).as_posix(): path.read_bytes() for path in (tmp_path / folder).rglob("*.*")}
        for folder in ("one", "again", "other")
    )
    assert set(one) == {
        f"{split}/{number}/{name}"
        for split, count in (("val", 10), ("test", 20))
        for number in range(count)
        for name in ("inputs/X.npy", "answers/graph.npy", "problem.json")
    }
    assert one == again
    assert all(one[name] != other[name] for name in one if name.endswith(".npy"))
    for problem in (tmp_path / "one").glob("*/*"):
        nodes = np.load(problem / "inputs/X.npy").shape[1]
        assert json.loads((problem / "problem.json").read_text()) == {"nodes": nodes}


def test_without_a_salt_nothing_is_made(tmp_path: Path) -> None:
    done = make(tmp_path / "out")
    assert done.returncode != 0 and "--salt" in done.stderr
    assert not (tmp_path / "out").exists()


# --- scorer

TRUTH = dag(4, (0, 1), (1, 2), (0, 3))


@pytest.mark.parametrize(
    ("edges", "shd", "correct"),
    [
        ([(0, 1), (1, 2), (0, 3)], 0, 3),
        ([(0, 1), (1, 2)], 1, 2),  # one missing
        ([(0, 1), (1, 2), (0, 3), (2, 3)], 1, 3),  # one extra
        ([(1, 0), (1, 2), (0, 3)], 1, 2),  # one reversed: one error, not two
        ([(1, 0), (2, 1), (3, 0)], 3, 0),
        ([], 3, 0),
        ([(2, 1), (2, 3), (0, 3)], 3, 1),  # one reversed, one extra, one missing
    ],
)
def test_scores_of_graphs_made_by_hand(edges: list[tuple[int, int]], shd: int, correct: int) -> None:
    found = score(dag(4, *edges), TRUTH)
    assert found == {
        "normalised_shd": pytest.approx(shd / 3),
        "shd": shd,
        "f1": pytest.approx(2 * correct / (3 + len(edges))),
        "tpr": pytest.approx(correct / 3),
        "fdr": pytest.approx((len(edges) - correct) / len(edges) if edges else 0),
    }


def test_distance_is_the_number_of_pairs_that_differ() -> None:
    graphs = [np.triu(graph) for graph in random_digraphs(40, 7, 0.4)]
    rng = np.random.default_rng(1)
    for graph, truth in itertools.pairwise(graphs):
        order = rng.permutation(7)
        graph = graph[np.ix_(order, order)]
        pairs = itertools.combinations(range(7), 2)
        differ = sum((graph[i, j], graph[j, i]) != (truth[i, j], truth[j, i]) for i, j in pairs)
        assert score(graph, truth)["shd"] == differ


def test_booleans_and_integers_score_the_same() -> None:
    graph = dag(4, (0, 1), (3, 2))
    for dtype in ("int8", "int64", "uint8"):
        assert score(graph.astype(dtype), TRUTH) == score(graph, TRUTH)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (dag(4, (0, 1), (1, 2), (2, 0)), r"cycle: (0 -> 1 -> 2 -> 0|1 -> 2 -> 0 -> 1|2 -> 0 -> 1 -> 2);"),
        (dag(4, (3, 1), (1, 2), (2, 3), (0, 1)), "has a cycle"),
        (dag(4, (1, 3), (3, 1)), r"both directions: graph\[1, 3\] and graph\[3, 1\]"),
        (TRUTH | TRUTH.T, "both directions"),
        (dag(4, (2, 2)), r"loop: graph\[2, 2\]"),
        (2 * dag(4, (0, 1)).astype(int), "other than 0 and 1, such as 2"),
        (-dag(4, (0, 1)).astype(int), "other than 0 and 1, such as -1"),
    ],
)
def test_what_is_no_dag_is_refused_by_name(graph: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        score(graph, TRUTH)


def test_a_cycle_is_found_where_there_is_one() -> None:
    graphs = random_digraphs(300, 6, 0.2)
    assert 50 < sum(map(is_acyclic, graphs)) < 250
    for graph in graphs:
        cycle = scorer.cycle(graph)
        assert bool(cycle) != is_acyclic(graph)
        if cycle:
            assert cycle[0] == cycle[-1] and len(set(cycle)) == len(cycle) - 1
            assert all(graph[i, j] for i, j in itertools.pairwise(cycle))


# --- solutions that need numpy only


def mean_score(name: str, split: str = "val") -> float:
    learn = load(f"solutions/{name}/algorithm").learn
    return float(
        np.mean([score(learn(X, 0), truth)["normalised_shd"] for X, truth in data.problems(SALT, "cpu", split)])
    )


def test_trivial_solutions_get_what_they_deserve() -> None:
    assert mean_score("empty") == 1
    assert mean_score("random") > 1.2
    assert 0.8 < mean_score("correlation") < 1.2
    with pytest.raises(ValueError, match="both directions"):
        mean_score("skeleton")


def test_the_reference_learns_directions() -> None:
    assert mean_score("reference") < 0.6 and mean_score("reference", "test") < 0.6
    learn = load("solutions/reference/algorithm").learn
    for X, truth in itertools.islice(data.problems(SALT, "cpu", "val"), 4):
        graph = learn(X, 0)
        assert score(graph, truth)["shd"] < score(graph, truth.T)["shd"]


# --- programs, in the task's own environment


@pytest.fixture(scope="module")
def environment() -> Environment:
    """The task's own, where its programs run."""
    return prepare(Task.load(FOLDER).manifest.environment.requires, print)


CHECKS = """
import numpy as np
import algorithm

rng = np.random.default_rng(0)

# h is 0 for a DAG and positive for a cycle; its gradient is that of differences.
W = rng.normal(size=(5, 5))
h, gradient = algorithm.acyclicity(W)
assert h > 0 and abs(algorithm.acyclicity(np.triu(W, 1))[0]) < 1e-12
for i in range(5):
    for j in range(5):
        step = np.zeros((5, 5))
        step[i, j] = 1e-6
        slope = (algorithm.acyclicity(W + step)[0] - algorithm.acyclicity(W - step)[0]) / 2e-6
        assert abs(slope - gradient[i, j]) < 1e-5 * max(1, abs(slope)), (i, j)

# A linear chain 2 -> 0 -> 3 -> 1 with equal noise is recovered, weights and all.
X = rng.normal(size=(2000, 4))
for cause, effect, weight in ((2, 0, 1.5), (0, 3, -1.2), (3, 1, 0.9)):
    X[:, effect] += weight * X[:, cause]
X -= X.mean(0)
W = algorithm.notears(X)
assert [tuple(edge) for edge in np.argwhere(algorithm.learn(X, 0))] == [(0, 3), (2, 0), (3, 1)]
assert np.allclose([W[2, 0], W[0, 3], W[3, 1]], [1.5, -1.2, 0.9], atol=0.12)
assert algorithm.acyclicity(W)[0] <= algorithm.H_TOL

# Of a cycle the weakest edge is left out; a DAG keeps all edges.
cycle = np.array([[0, 2.0, 0], [0, 0, -1.0], [0.5, 0, 0]])
assert (algorithm.acyclic(cycle) == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]).all()
tree = np.tril(rng.normal(size=(6, 6)), -1)
assert (algorithm.acyclic(tree) == (tree != 0)).all()
"""


@pytest.mark.slow
def test_the_baseline_is_notears(environment: Environment) -> None:
    command = [environment.interpreter(outside), "-c", CHECKS]
    done = subprocess.run(
        command, cwd=FOLDER / "workspace", env=os.environ | ONE_THREAD, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["baseline", *SOLUTIONS])
def test_predict_writes_the_graph(name: str, tmp_path: Path, environment: Environment) -> None:
    task = Task.load(FOLDER)
    code = task.baseline
    if name != "baseline":
        code = code.put({"algorithm.py": (FOLDER / "solutions" / name / "algorithm.py").read_bytes()})
    code.write(tmp_path / "work")
    X, _ = next(data.problems(SALT, "cpu", "val"))
    np.save(tmp_path / "X.npy", X)
    argv = [part.format(inputs=tmp_path, out=tmp_path, seed=0) for part in task.manifest.phase[0].argv]
    command = [environment.interpreter(outside), *argv[1:]]
    subprocess.run(command, cwd=tmp_path / "work", check=True, env=os.environ | ONE_THREAD)
    graph = np.load(tmp_path / "graph.npy", allow_pickle=False)
    assert graph.shape == (10, 10) and graph.dtype == bool


@pytest.mark.slow
@pytest.mark.skipif(sandbox.probe() is not None, reason=str(sandbox.probe()))
def test_trials_in_the_sandbox() -> None:
    task = Task.load(FOLDER)
    name, floor = task.metric.name, task.manifest.references.noise_floor
    with SandboxedBench(task, sandbox.Bubblewrap(), print) as bench:
        bench.prepare()
        assert len(bench.facts()["salt_hash"]) == 64
        baseline = bench.baseline(0)
        assert baseline.ok and len(baseline.metrics[name].values) == 10
        card = task.manifest.references.baseline_val
        assert card is not None and abs(baseline.metrics[name].mean - card.mean) < 5 * card.std

        def trial(solution: str) -> Any:
            content = (FOLDER / "solutions" / solution / "algorithm.py").read_bytes()
            code = task.baseline.put({"algorithm.py": content})
            with bench.trial(code, 0) as (outcome, kept):
                assert kept is None
                return outcome, code

        assert trial("noop")[0].metrics == baseline.metrics
        assert trial("empty")[0].metrics[name].values == [1.0] * 10
        refused, _ = trial("skeleton")
        assert refused.status == "bad_output" and "both directions" in refused.error and not refused.metrics
        reference, code = trial("reference")
        assert reference.ok and reference.metrics[name].mean < baseline.metrics[name].mean - floor
        test, baseline_test = bench.test(None, code, 0), bench.baseline_test(0)
        assert test.ok and baseline_test.ok and len(test.metrics[name].values) == 20
        assert test.metrics[name].mean < baseline_test.metrics[name].mean - floor
