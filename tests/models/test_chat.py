"""Prompts in named parts, and the models for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from labcoat.errors import InputError
from labcoat.journal import Journal
from labcoat.models import Call, ModelRefuses, Models, Part, Prompt, Reply, Usage, load
from labcoat.models.replay import ReplayModel
from labcoat.models.scripted import ScriptedModel

CALL = Call("idea", "/0", 0, 0)


def test_a_prompt_keeps_its_parts_and_drops_empty_ones() -> None:
    prompt = Prompt.of([Part("task", "do"), None, Part("error", "  "), Part("file", "x = 1\n", "a.py")])
    assert [part.name for part in prompt.parts] == ["task", "file"]
    assert prompt.text == "do\n\n### FILE: a.py\n```\nx = 1\n```"
    assert prompt.files == {"a.py": "x = 1\n"}
    assert prompt.get("task") == "do"


def test_a_file_with_a_fence_gets_a_longer_fence() -> None:
    assert Part("file", "````\ncode\n````", "README.md").render().splitlines()[1] == "`````"


def test_a_memory_loses_its_oldest_items_first_and_says_so() -> None:
    memory = Part("history", "Ideas so far:", items=tuple(f"idea number {n}" for n in range(1, 501)))
    prompt = Prompt.of([Part("task", "do"), memory]).packed(100)
    lines = prompt.get("history").splitlines()
    assert lines[0] == "Ideas so far:"
    assert lines[1] == f"({500 - len(lines[2:])} earlier left out)"
    assert lines[2:] == [f"idea number {n}" for n in range(501 - len(lines[2:]), 501)]
    assert 90 <= prompt.tokens <= 100
    assert len(prompt.parts) == 2


def test_of_two_memories_the_one_that_takes_most_is_cut() -> None:
    long, short = Part("a", "long:", items=("x" * 300,) * 10), Part("b", "short:", items=("y" * 30,) * 3)
    prompt = Prompt.of([long, short]).packed(600)
    assert prompt.get("a").count("x" * 300) == 5
    assert prompt.get("b") == "\n".join(["short:", *["y" * 30] * 3])


def test_a_prompt_with_room_is_whole_and_one_without_items_is_left_as_it_is() -> None:
    whole = Prompt.of([Part("history", "head", items=("one", "two"))]).packed(100)
    assert whole.text == "head\none\ntwo"
    fixed = Prompt.of([Part("task", "x" * 1000)])
    assert fixed.packed(10) == fixed


def test_replies_survive_the_journal_and_fields_of_later_versions_are_passed_over() -> None:
    reply = Reply("text", {"a": 1}, Usage(1, 2, 3, 4, 2), 0.5, 1.5, "length")
    assert Reply.from_json(reply.to_json() | {"mood": "good"}) == reply
    assert reply.usage.total == 10


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('"first"\n{"text": "second", "finish": "refusal"}\n')
    model = ScriptedModel.read(str(path))
    assert model.chat(Prompt.of([]), CALL).text == "first"
    assert model.chat(Prompt.of([]), Call("edit", "/1", 1, 0)).finish == "refusal"
    with pytest.raises(ModelRefuses, match="has 2 replies"):
        model.chat(Prompt.of([]), Call("edit", "/2", 2, 0))


@pytest.mark.parametrize("line", [b"[1]", b"first", b"{}", b'{"text": 1}', b"", b'"\xff"'])
def test_a_bad_line_of_a_script_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "script.jsonl"
    path.write_bytes(b'"first"\n' + line + b"\n")
    with pytest.raises(InputError, match=r"script\.jsonl:2: a line is a JSON string, or an object like"):
        ScriptedModel.read(str(path))


def test_the_replay_model_finds_the_only_run_below_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelRefuses, match="no run there"):
        ReplayModel(str(tmp_path))
    for number in range(23):
        with Journal(make(tmp_path / f"{number:02}/run"), write=True):
            pass
        if number == 0:
            assert ReplayModel(str(tmp_path)).name == ReplayModel(str(tmp_path / "00/run")).name
    with pytest.raises(ModelRefuses, match=r"23 runs there, name one of them:\n  .*/00/run\n[^$]*\n  ... and 3 more$"):
        ReplayModel(str(tmp_path))


def make(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def test_a_model_for_each_purpose() -> None:
    models = Models.parse("edit=offline:mutate,*=offline:mutate")
    assert models.spec == {"*": "offline:mutate", "edit": "offline:mutate"}
    assert models.of("review").name == "offline:mutate"
    assert models.constants_only


def test_unknown_models_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown model 'offline:think'; known:\n  offline:mutate"):
        load("offline:think")


def test_the_fields_of_a_reply_are_those_of_the_object_asked_for_or_none() -> None:
    assert Reply("", parsed={"done": True}).fields == {"done": True}
    assert Reply("no object", finish="schema_never_met").fields == {}
