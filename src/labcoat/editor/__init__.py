"""The shared code editor: one model call, its reply, a patch, and a new code or a clear rejection.

All strategies edit through it, so that no difference between them comes from how well edits are read. The call itself
is the caller's: :func:`edit_prompt` goes before it, :func:`apply_reply` after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labcoat.editor.apply import UNCHANGED, apply
from labcoat.editor.operations import Rejected
from labcoat.editor.patch import parse
from labcoat.editor.prompt import TEMPLATE, edit_prompt, template
from labcoat.tree import Code

__all__ = ["TEMPLATE", "UNCHANGED", "Edited", "Rejected", "apply", "apply_reply", "edit_prompt", "parse", "template"]


@dataclass(frozen=True)
class Edited:
    """The code after an edit. If ``reason`` is not empty the edit failed, and the code is the one before it."""

    code: Code
    reason: str = ""


def apply_reply(reply: str, base: Code, is_editable: Callable[[str], bool]) -> Edited:
    r"""Carry out what ``reply`` asks for, all of it or nothing. A rejection is a result, never an exception.

    >>> base = Code.of({"train.py": "lr = 0.1\nsteps = 9\n"})
    >>> block = "<<<<<<< SEARCH\nlr = 0.1\n=======\nlr = 0.2\n>>>>>>> REPLACE"
    >>> apply_reply(f"### FILE: train.py\n{block}", base, lambda path: path == "train.py").code.text("train.py")
    'lr = 0.2\nsteps = 9\n'
    >>> edited = apply_reply("### FILE: train.py\n```python\nlr = (\n```", base, lambda path: path == "train.py")
    >>> print(edited.reason)
    Nothing was applied, because the result has errors:
    train.py, line 1: '(' was never closed: lr = (
    """
    try:
        return Edited(apply(parse(reply), base, is_editable))
    except Rejected as rejected:
        return Edited(base, rejected.reason)
