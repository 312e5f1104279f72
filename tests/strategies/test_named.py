"""How a strategy is named: shipped, in a file, installed; its presets and where its parameters come from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import labcoat
from labcoat import strategies
from labcoat.budget import LimitReached, Limits
from labcoat.cli.run import _params
from labcoat.errors import InputError
from labcoat.history import History
from labcoat.lab import Lab, Params, Strategy

Simulate = Callable[..., History]

MINE = '''
"""Mine: one try."""
from pathlib import Path

from labcoat.lab import Lab, Params, Strategy, Template

SAY = Template(__file__, "say")


class Mine(Params):
    """Parameters of Mine."""

    often: int = 1
    """How often."""


async def search(lab: Lab, params: Mine) -> None:
    """Try a few times."""
    for _ in range(params.often):
        await lab.trial(await lab.edit(lab.brief.baseline, SAY()))


STRATEGY = Strategy("mine", search, Mine, presets={"twice": {"often": 2}})
OTHER = Strategy("other", search, Mine)
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A strategy in a file, with its template beside it."""
    (tmp_path / "mine.say.md").write_text("go on")
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path / "mine.py"


# --- presets and parameters -----------------------------------------------------------------------------------------


def test_a_preset_and_the_same_values_by_hand_are_one_run(simulate: Simulate) -> None:
    by_name = simulate("autoresearch@released", steps=3)
    by_hand = simulate("autoresearch", steps=3, params={"debug_from": "incumbent"})
    assert by_name.folder == by_hand.folder
    assert by_name.spec["strategy"]["name"] == "autoresearch"
    assert simulate("autoresearch@original", steps=3).folder == simulate("autoresearch", steps=3).folder


def test_the_file_holds_over_the_preset_and_what_is_typed_over_both(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('attempts = 5\ndebug_from = "crashed"\n')
    history = simulate("autoresearch@released", steps=1, params_file=tmp_path / "p.toml", params={"attempts": "2"})
    assert history.spec["strategy"]["params"] == {"attempts": 2, "debug_from": "crashed"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("attempts = 0", r"p\.toml: attempts: Input should be greater"),
        ("attemps = 3", r"p\.toml: attemps: no such parameter; did you mean attempts\?"),
        ("attempts 3", r"parameter file .*p\.toml: not valid TOML .*line 1"),
        (None, r"parameter file .*p\.toml: No such file"),
    ],
)
def test_what_is_wrong_in_a_parameter_file_is_named(
    simulate: Simulate, tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "p.toml").write_text(content)
    with pytest.raises(InputError, match=message):
        simulate("autoresearch", steps=1, params_file=tmp_path / "p.toml")


def test_what_is_typed_is_not_blamed_on_the_file(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("attempts = 5")
    with pytest.raises(InputError, match=r"\n  attempts: Input should be greater"):
        simulate("autoresearch", steps=1, params_file=tmp_path / "p.toml", params={"attempts": 0})


def test_a_list_is_typed_in_brackets() -> None:
    assert _params(["a=[4, 3]", "b=3", "c=x=y"]) == {"a": [4, 3], "b": "3", "c": "x=y"}
    with pytest.raises(InputError, match=r"-S a=\[4: write a list as"):
        _params(["a=[4"])


def test_an_unknown_preset_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="autoresearch: no preset 'paper'; it has: original, released"):
        strategies.named("autoresearch@paper")


class Number(Params):
    """Parameters."""

    number: int = 1
    """A number."""


class Needed(Params):
    """Parameters."""

    number: int
    """A number."""


@pytest.mark.parametrize(
    ("name", "params", "presets", "message"),
    [
        ("a", Number, {"released": {"number": "many"}}, "strategy a: preset 'released': number: Input should be"),
        ("a", Number, {"released": {"numbr": 2}}, "strategy a: preset 'released': numbr: no such field"),
        ("a", Needed, {}, "strategy a: defaults: number: Field required"),
        ("../a", Number, {}, "strategy '../a': a name has small letters"),
    ],
)
def test_a_strategy_is_checked_when_it_is_made(
    name: str, params: type[Params], presets: dict[str, dict[str, object]], message: str
) -> None:
    async def search(lab: Lab, params: Params) -> None:
        """Nothing."""

    with pytest.raises(InputError, match=message):
        Strategy(name, search, params, presets=presets)


# --- in a file ------------------------------------------------------------------------------------------------------


def test_a_strategy_in_a_file_runs_resumes_and_is_replayed_from_it(simulate: Simulate, mine: Path) -> None:
    with pytest.raises(LimitReached):
        simulate(f"{mine}@twice", steps=5, limits=Limits(calls=1))
    history = simulate(f"{mine}:STRATEGY", steps=5, params={"often": "2"})
    assert (len(history.trials), history.status) == (2, "finished")
    assert history.record["strategy_source"] == {"mine.py": MINE, "mine.say.md": "go on"}
    assert labcoat.replay(history, strategy=str(mine)).finished


def test_a_replay_that_does_not_find_the_strategy_says_how(simulate: Simulate, mine: Path) -> None:
    history = simulate(str(mine), steps=1)
    how = r"unknown strategy 'mine'.*\n.*in a file mine\.py; .*strategy_source.*--strategy path/to/mine"
    with pytest.raises(InputError, match=how):
        labcoat.replay(history)
    mine.write_text(MINE + "\n# changed\n")
    with pytest.raises(InputError, match=r"spec\.strategy\.source: .*mine\.py is not what .* --strategy"):
        labcoat.replay(history, strategy=str(mine))


def test_a_file_is_read_as_it_stands_and_nothing_is_written_beside_it(simulate: Simulate, mine: Path) -> None:
    assert len(simulate(str(mine), steps=5).trials) == 1
    mine.write_text(MINE.replace("often: int = 1", "often: int = 3"))  # of the same size, in the same second
    assert len(simulate(str(mine), steps=5).trials) == 3
    assert {path.name for path in mine.parent.iterdir()} == {"mine.py", "mine.say.md", "runs"}


def test_a_file_may_hold_several_strategies(mine: Path) -> None:
    assert strategies.find(str(mine)).name == "mine"
    assert strategies.find(f"{mine}:OTHER").name == "other"


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (None, "", r"strategy file .*mine\.py: No such file"),
        ("x = 1\ny = 1 / 0\n", "", r"mine\.py:2: ZeroDivisionError: division by zero"),
        ("x = (\n", "", r"mine\.py:1: '\(' was never closed"),
        ("import nowhere\n", "", r"mine\.py:1: ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit\n", "", r"mine\.py:1: SystemExit"),
        (MINE, ":NONE", r"mine\.py: NONE is not there; strategies in it: STRATEGY, OTHER"),
        (MINE, ":search", r"mine\.py: search is no Strategy but function"),
        (MINE.replace('"mine"', '"Mine"'), "", r"mine\.py:\d+: strategy 'Mine': a name has small letters"),
    ],
)
def test_what_is_wrong_in_a_strategy_file_is_named(mine: Path, content: str | None, name: str, message: str) -> None:
    mine.unlink() if content is None else mine.write_text(content)
    with pytest.raises(InputError, match=message):
        strategies.find(f"{mine}{name}")


# --- its rules ------------------------------------------------------------------------------------------------------


def test_a_module_of_rules_is_no_strategy_but_part_of_the_source_of_one() -> None:
    folder = Path(strategies.__file__).parent
    rules = [path.name for path in folder.glob("*_rules.py")]
    assert rules and not [name for name in strategies.names() if name.endswith("rules")]
    for name in rules:
        strategy = strategies.find(name.removesuffix("_rules.py").replace("_", "-"))
        assert strategy.source()[name] == (folder / name).read_text()
        assert [*strategy.source()][:2] == [strategy.path.name, name]
        assert name not in strategy.prompts()


def test_another_rule_is_another_run(simulate: Simulate, tmp_path: Path) -> None:
    for path in Path(strategies.__file__).parent.glob("openevolve*"):
        shutil.copy(path, tmp_path)
    file, rules = tmp_path / "openevolve.py", tmp_path / "openevolve_rules.py"
    before = simulate(str(file), steps=1)
    assert before.record["strategy_source"][rules.name] == rules.read_text()
    assert simulate(str(file), steps=1).folder == before.folder
    rules.write_text(rules.read_text().replace("NEAR = 2", "NEAR = 3"))
    assert simulate(str(file), steps=1).folder != before.folder


# --- installed ------------------------------------------------------------------------------------------------------


def install(site: Path, package: str, entry_points: str) -> None:
    """Lay out an installed package that names strategies."""
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[labcoat.strategies]\n{entry_points}\n")


@pytest.fixture
def site(mine: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, with the module of a plug-in in it."""
    site = tmp_path_factory.mktemp("site")
    for path in (mine, mine.with_name("mine.say.md")):
        (site / f"plugged_{path.name}").write_text(path.read_text())
    monkeypatch.syspath_prepend(site)
    return site


def test_an_installed_strategy_is_found_by_its_name_and_replayed(simulate: Simulate, site: Path) -> None:
    install(site, "plug", "mine = plugged_mine:STRATEGY")
    assert strategies.plugins() == ["mine"]
    history = simulate("mine@twice", steps=3)
    assert len(history.trials) == 2
    assert labcoat.replay(history).finished


@pytest.mark.parametrize(
    ("entry_points", "message"),
    [
        (
            "mine = plugged_mine:search",
            r"plug-in mine \(plugged_mine:search of plug\): mine is no Strategy but function",
        ),
        ("mine = plugged_mine:OTHER", r"plug-in mine \(plugged_mine:OTHER of plug\): its Strategy is named 'other'"),
        ("mine = plugged_mine:NONE", r"plug-in mine \(plugged_mine:NONE of plug\): AttributeError"),
        ("mine = nowhere:STRATEGY", r"plug-in mine \(nowhere:STRATEGY of plug\): ModuleNotFoundError"),
    ],
)
def test_a_plug_in_that_gives_no_strategy_is_named(site: Path, entry_points: str, message: str) -> None:
    install(site, "plug", entry_points)
    with pytest.raises(InputError, match=message):
        strategies.find("mine")


def test_two_plug_ins_of_one_name_are_refused_and_a_shipped_name_stays_ours(site: Path) -> None:
    install(site, "plug", "mine = plugged_mine:STRATEGY\nrandom = plugged_mine:OTHER")
    install(site, "plug2", "mine = plugged_mine:OTHER")
    with pytest.raises(InputError, match=r"several plug-ins name one so: .* of plug.* and .* of plug.*; uninstall"):
        strategies.find("mine")
    assert strategies.find("random").path.name == "random.py"
    assert strategies.plugins() == ["mine"]
