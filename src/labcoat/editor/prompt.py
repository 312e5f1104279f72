"""Prompt: what the model of the ``edit`` purpose reads, laid out by the template ``edit.md``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from labcoat.models.chat import Part, Prompt

TEMPLATE = "edit.md"
_SLOT = re.compile(r"^\{(\w+)\}$", re.MULTILINE)


def edit_prompt(
    *, task: str, metric: str, files: Mapping[str, str], instruction: str, error: str = "", patterns: Sequence[str] = ()
) -> Prompt:
    """Ask for an edit of ``files``.

    What stays the same from one edit to the next comes first (answer format, task), so that providers can cache it.
    Every text is a part of its own, unchanged. Headings are parts called ``heading``; one without a text is left out.

    Args:
        task: the task's text.
        metric: one line: name, present value, direction.
        files: the text of every editable file by its relative path. Shown in the order of their paths; line endings
            are shown as newlines, and files with null bytes are not shown.
        instruction: what to change.
        error: what went wrong before, if that is what the edit is to repair.
        patterns: the globs of what may be changed; by default the paths of ``files`` are named.
    """
    shown = [Part("file", text.replace("\r\n", "\n"), path) for path, text in sorted(files.items()) if "\0" not in text]
    slots = {
        "task": [Part("task", task)],
        "metric": [Part("metric", metric)],
        "file": shown,
        "error": [Part("error", error)],
        "instruction": [Part("instruction", instruction)],
    }
    form, *sections = template().split("\n# ")
    form = "\n# ".join([form, *(section for section in sections if not _SLOT.search(section))])
    parts = [Part("format", form.strip().replace("{editable}", ", ".join(patterns or sorted(files))))]
    for section in sections:
        if slot := _SLOT.search(section):
            content = [part for part in slots[slot[1]] if part.text.strip()]
            parts += [Part("heading", "# " + section[: slot.start()].strip()), *content] if content else []
    return Prompt.of(parts)


@cache
def template() -> str:
    """The text of the template."""
    return Path(__file__).with_name(TEMPLATE).read_text(encoding="utf-8")
