"""A model that answers from a script. Tests use it with the real lab, editor and journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from labcoat.errors import InputError
from labcoat.models.chat import ROOM, Call, ModelRefuses, Prompt, Reply
from labcoat.models.structured import read
from labcoat.tree import sha256

Answer = Callable[[Prompt, Call], str | Reply]


class ScriptedModel:
    """Answers from a list, in the order of the run's calls, or from a function of prompt and call."""

    constants_only = False

    def __init__(self, script: Sequence[str | Reply] | Answer, name: str = "scripted") -> None:
        """``script`` is a list of replies, or a function that gives one."""
        self.name = name
        self._script = script

    @classmethod
    def read(cls, path: str) -> ScriptedModel:
        """Read one reply a line: a JSON string, or an object with ``text`` and any other fields of a Reply.

        Raises:
            InputError: naming the line that is wrong.
        """
        replies: list[str | Reply] = []
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"--model scripted:{path}: {error.strerror}") from None
        for number, line in enumerate(content.splitlines(), 1):
            try:
                value = json.loads(line)
                reply = value if isinstance(value, str) else Reply.from_json(value)
                if isinstance(reply, Reply) and not isinstance(reply.text, str):
                    raise TypeError
                replies.append(reply)
            except (ValueError, TypeError, AttributeError):
                raise InputError(
                    f'{path}:{number}: a line is a JSON string, or an object like {{"text": "...", "finish": "stop"}}'
                ) from None
        # Its content, and not where it lies, is part of a run's identity.
        return cls(replies, name=f"scripted:{Path(path).name}@{sha256(content)[:12]}")

    def room(self, purpose: str) -> int:
        """What holds where nothing is known."""
        return ROOM

    def chat(self, prompt: Prompt, call: Call) -> Reply:
        """The reply that the script has for this call."""
        if callable(self._script):
            answer = self._script(prompt, call)
        elif call.index < len(self._script):
            answer = self._script[call.index]
        else:
            raise ModelRefuses(f"{self.name}: has {len(self._script)} replies, the run asks for one more")
        return read(answer if isinstance(answer, Reply) else Reply(answer, cost=0.0), call.schema)
