"""Fences: where a fenced block ends, also when its content holds fences of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_FENCE = re.compile(r"([ \t]*)(`{3,}+|~{3,}+)([^`]*)")

# Atomic groups and possessive quantifiers throughout: nothing is ever tried twice, so the time is linear in the line.
# A repeated group is made atomic, (?>(?:...)*), not possessive, (?:...)*+: before CPython 3.11.5, a possessive group
# matches too much (gh-106052).
_DOUBLE = r'"""(?>(?:[^"\\]++|\\.|"(?!""))*)'
_SINGLE = r"'''(?>(?:[^'\\]++|\\.|'(?!''))*)"
_OUTSIDE = re.compile(
    rf"(?>(?:[^\"'#]++|\#.*+|{_DOUBLE}\"\"\"|{_SINGLE}'''"
    r"|\"(?!\"\")(?>(?:[^\"\\]++|\\.)*)\"?+|'(?!'')(?>(?:[^'\\]++|\\.)*)'?+)*)",
    re.DOTALL,
)
_INSIDE = {'"""': re.compile(_DOUBLE[3:], re.DOTALL), "'''": re.compile(_SINGLE[3:], re.DOTALL)}


def open_string(line: str, quote: str) -> str:
    """The triple quote that is open after ``line`` of Python, given the one open before it ("" for none)."""
    at = 0
    if quote:
        if quote not in line:
            return quote
        at = _end(_INSIDE[quote], line, 0)
        if not line.startswith(quote, at):
            return quote  # all quotes were escaped
        at += 3
    elif '"""' not in line and "'''" not in line:
        return ""
    at = _end(_OUTSIDE, line, at)
    return line[at : at + 3]


def _end(pattern: re.Pattern[str], line: str, at: int) -> int:
    match = pattern.match(line, at)
    return match.end() if match else at


@dataclass(frozen=True)
class Fence:
    """An opening fence: three or more backticks or tildes, with an info string."""

    indent: int
    mark: str
    info: str

    @classmethod
    def opening(cls, line: str) -> Fence | None:
        """Read ``line`` as an opening fence."""
        match = _FENCE.fullmatch(line)
        return cls(len(match[1]), match[2], match[3].strip()) if match else None

    @property
    def language(self) -> str:
        """First word of the info string, in lower case."""
        return re.split(r"[\s:{]", self.info, maxsplit=1)[0].lower()

    def closed_by(self, line: str) -> bool:
        """Whether ``line`` can close this fence: the same mark, at least as long, without an info string."""
        text = line.strip()
        return text.startswith(self.mark) and not text.strip(self.mark[0])

    def end(self, lines: Sequence[str], start: int, python: bool, stop: Callable[[str], bool]) -> int:
        """Index of the line that ends the block whose content begins at ``start``.

        That is the closing fence, or an earlier line for which ``stop`` holds, or ``len(lines)`` if there is neither.

        Python: the first of these outside a triple-quoted string. No other reading can be valid Python, because a line
        of backticks outside a string is an error, and a text that stops inside a string is one too.
        Other files: a fence with an info string opens an inner block, which takes the next closing fence.
        """
        quote = ""
        depth = 0
        for at in range(start, len(lines)):
            line = lines[at]
            if not quote and self.mark in line:
                if self.closed_by(line):
                    if not depth:
                        return at
                    depth -= 1
                elif not python and line.lstrip().startswith(self.mark) and Fence.opening(line):
                    depth += 1
            elif not quote and stop(line):
                return at
            if python:
                quote = open_string(line, quote)
        return len(lines)

    def content(self, lines: Sequence[str]) -> str:
        """The lines as text, without the indentation of the fence itself."""
        if not self.indent:
            return "".join(f"{line}\n" for line in lines)
        return "".join(f"{line[min(self.indent, len(line) - len(line.lstrip())) :]}\n" for line in lines)
