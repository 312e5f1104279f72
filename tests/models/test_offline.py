"""The offline model: it changes constants, and nothing else, in valid replies to every purpose."""

from __future__ import annotations

import ast
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labcoat.editor import apply_reply, edit_prompt
from labcoat.models import Call, Part, Prompt
from labcoat.models.offline import ALTERNATIVES, OfflineMutator, draw, instance, literals, mutate
from labcoat.tree import Code

CODE = '''"""A docstring with 42 in it."""
RATE = 0.5
WIDTH = 64
USE_BIAS = True
ACTIVATION = "relu"
GREETING = "not a known alternative"
FIRST = row[0]
LAST = row[-1]
MEAN = x.mean(axis=1)
SHUFFLE = split(random_state=7)
ZERO = 0
TEXT = f"{WIDTH:3d}"
'''


def ask(files: dict[str, str], purpose: str = "idea", seed: int = 0, **parts: str) -> str:
    shown = [Part("file", text, path) for path, text in files.items()]
    prompt = Prompt.of([*shown, *(Part(name, text) for name, text in parts.items())])
    return OfflineMutator().chat(prompt, Call(purpose, "/0", 0, seed)).text


def test_it_sees_quantities_switches_and_known_alternatives_only() -> None:
    assert [literal.source for literal in literals({"a.py": CODE})] == ["0.5", "64", "True", '"relu"']


def test_files_that_are_no_python_are_left_alone() -> None:
    assert literals({"a.json": '{"rate": 0.5}', "b.py": "rate = ("}) == []
    assert ask({"b.py": "rate = ("}) == "There is no constant to change."


def test_columns_are_characters_also_behind_other_alphabets() -> None:
    files = {"a.py": "größe, β = 12, 0.25\n"}
    assert [(lit.column, lit.source) for lit in literals(files)] == [(11, "12"), (15, "0.25")]


VALUES: list[float | int | bool | str] = [0.5, 0.001, 0.999999, 3.2, -2.5, 0.0, 1, 2, 64, -3, True, False, "adam"]


@given(st.integers(0, 10_000), st.sampled_from(VALUES))
def test_a_mutation_is_another_value_of_the_same_kind(seed: int, value: float | int | bool | str) -> None:
    new = ast.literal_eval(mutate(value, random.Random(seed)))
    assert new != value
    assert type(new) is type(value)
    if isinstance(value, float) and 0 < value < 1:
        assert isinstance(new, float) and 0 < new < 1


def test_numbers_move_log_uniformly_within_a_factor_of_four() -> None:
    rng = random.Random(0)
    factors = sorted(ast.literal_eval(mutate(100.0, rng)) / 100 for _ in range(2000))
    assert 0.249 < factors[0] < 0.26 and 3.9 < factors[-1] < 4.01
    assert 0.9 < factors[1000] < 1.1  # the median of a log-uniform factor is one


@given(
    st.integers(0, 100_000), st.sampled_from([CODE, "a = 1.5\na = 1.5\nb = [1.5,\n 1.5]\n", "x = 3\n" * 5, "y = 2.0"])
)
def test_every_edit_applies_and_changes_one_literal(seed: int, text: str) -> None:
    base = Code.of({"a.py": text})
    prompt = edit_prompt(task="t", metric="m", files={"a.py": text}, instruction="improve it")
    reply = OfflineMutator().chat(prompt, Call("edit", "/0", 0, seed)).text
    edited = apply_reply(reply, base, lambda path: True)
    assert edited.reason == ""
    before, after = text.split("\n"), edited.code.text("a.py").split("\n")
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_an_edit_carries_out_the_idea() -> None:
    idea = ask({"a.py": CODE}, seed=5)
    edit = ask({"a.py": CODE}, "edit", seed=6, instruction=idea)
    old, new = idea.split("`")[1], idea.split("`")[3]
    line = idea.split("`")[5]
    assert f"{line}\n=======\n{line.replace(old, new)}\n>>>>>>> REPLACE" in edit


def test_where_an_idea_failed_the_same_literal_gets_another_value() -> None:
    idea = "Change `0.5` to `0.9` at a.py:2:7, in the line `RATE = 0.5`."
    tried = CODE.replace("RATE = 0.5", "RATE = 0.9")
    edit = ask({"a.py": tried}, "edit", instruction=idea, error="it failed")
    assert "RATE = 0.9\n=======\nRATE = " in edit
    assert "RATE = 0.9\n=======\nRATE = 0.9\n" not in edit


def test_choices_depend_on_the_seed_of_the_call_alone() -> None:
    assert ask({"a.py": CODE}, seed=3) == ask({"a.py": CODE}, seed=3)
    assert len({ask({"a.py": CODE}, seed=n) for n in range(20)}) > 10


def test_a_literal_is_drawn_evenly() -> None:
    found = literals({"a.py": CODE})
    rng = random.Random(0)
    drawn = [change.literal.source for change in (draw(found, rng) for _ in range(4000)) if change]
    assert all(900 < drawn.count(literal.source) < 1100 for literal in found)


def test_known_alternatives_have_company() -> None:
    assert all(len(set(family)) == len(family) > 1 for family in ALTERNATIVES)


@pytest.mark.parametrize("seed", range(5))
def test_a_schema_is_filled_in(seed: int) -> None:
    schema = {
        "type": "object",
        "properties": {
            "idea": {"type": "string"},
            "score": {"type": "integer", "minimum": 1, "maximum": 10},
            "sure": {"type": "boolean"},
            "kind": {"enum": ["a", "b"]},
            "steps": {"type": "array", "items": {"type": "number"}, "minItems": 2},
            "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        },
    }
    value = instance(schema, random.Random(seed), "text")
    assert value["idea"] == "text"
    assert 1 <= value["score"] <= 10
    assert isinstance(value["sure"], bool)
    assert value["kind"] in ("a", "b")
    assert len(value["steps"]) == 2
    assert value["note"] is None
    reply = OfflineMutator().chat(Prompt.of([Part("file", CODE, "a.py")]), Call("review", "/0", 0, seed, schema))
    assert set(reply.parsed) == set(schema["properties"])
