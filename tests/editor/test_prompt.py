"""What the model is shown, and in which order."""

from __future__ import annotations

from labcoat.editor import apply_reply, edit_prompt
from labcoat.models.chat import Prompt
from labcoat.tree import Code


def prompt(
    files: dict[str, str] | None = None, instruction: str = "Raise lr.", error: str = "", patterns: tuple[str, ...] = ()
) -> Prompt:
    files = files or {"b.py": "lr = 1\n", "a.py": "x = 1\r\ny = 2\r\n"}
    return edit_prompt(
        task="The task.", metric="acc = 0.5", files=files, instruction=instruction, error=error, patterns=patterns
    )


def test_parts_hold_what_was_given() -> None:
    made = prompt(error="NameError")
    assert [made.get(name) for name in ("task", "metric", "error", "instruction")] == [
        "The task.", "acc = 0.5", "NameError", "Raise lr."
    ]  # fmt: skip
    assert made.files == {"a.py": "x = 1\ny = 2\n", "b.py": "lr = 1\n"}


def test_what_is_stable_comes_first() -> None:
    names = [part.name for part in prompt(error="NameError").parts if part.name != "heading"]
    assert names == ["format", "task", "metric", "file", "file", "error", "instruction"]


def test_prompts_of_one_base_share_everything_before_the_error() -> None:
    one, two = prompt(instruction="A", error="B").text, prompt(instruction="C").text
    shared = one.index("# What went wrong before")
    assert one[:shared] == two[:shared]


def test_without_an_error_there_is_no_heading_for_one() -> None:
    assert "wrong" not in prompt().text
    assert prompt(error="NameError").text.count("# What went wrong before\n\nNameError") == 1


def test_what_may_be_changed_is_named() -> None:
    assert "a pattern allows: a.py, b.py" in prompt().get("format")
    assert "a pattern allows: src/*.py" in prompt(patterns=("src/*.py",)).get("format")


def test_texts_that_look_like_the_template_are_left_alone() -> None:
    made = prompt({"a.py": "{task}\n# Task\n{editable}\n"}, instruction="{file}\n# Files\n{error}")
    assert made.files["a.py"] == "{task}\n# Task\n{editable}\n"
    assert made.get("instruction") == "{file}\n# Files\n{error}"


def test_files_that_are_no_text_are_not_shown() -> None:
    assert list(prompt({"a.py": "x\n", "b.bin": "\0\ufffd"}).files) == ["a.py"]


def test_a_prompt_sent_back_changes_nothing() -> None:
    """Small models echo what they read. The examples in it name no file, so the echo is rejected."""
    files = {"a.py": "x = 1\n"}
    made = prompt(files)
    assert apply_reply(made.text, Code.of({"a.py": "x = 1\n"}), lambda path: path == "a.py").reason
