"""How the commands print: sentences, lines and trees for people, JSON for programs.

On a terminal text keeps to its width: it is folded at spaces, and only there. In a pipe nothing is cut or folded.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, as docs/json.md describes it.")]

LABEL = 12  # columns of the name before a line of a summary

ITEM = re.compile(r" *(?:[-*]|\d+\.) ")  # how an item of a list begins


def columns(stream: TextIO) -> int | None:
    """Width of the terminal; None where there is none."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def printable(text: str) -> str:
    """``text`` with control characters shown and not obeyed: what a candidate or a model wrote may hold any."""
    return "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)


def program() -> str:
    """How labcoat was called, for a line that can be pasted."""
    return f"{sys.executable} -m labcoat" if Path(sys.argv[0]).name == "__main__.py" else sys.argv[0]


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(value, indent=1, ensure_ascii=False))


def fold(text: str, width: int | None, indent: int = 0) -> list[str]:
    """``text`` in lines of at most ``width``, all but the first indented; a longer word stays whole."""
    if width is None:
        return [text]
    room, hang = max(width, indent + 20 if indent else 1), " " * indent
    lines = textwrap.wrap(text, room, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
    return lines or [""]


def say(text: str, stream: TextIO | None = None, indent: int = 0) -> None:
    """Print a sentence."""
    stream = stream or sys.stdout
    print("\n".join(fold(printable(text), columns(stream), indent)), file=stream, flush=stream is sys.stderr)


def print_text(text: str) -> None:
    """Prose with lists. On a terminal its paragraphs and items are folded anew, in a pipe it is printed as it is."""
    if columns(sys.stdout) is None:
        print(printable(text))
        return
    paragraphs: list[tuple[str, int | None]] = []  # and how deep a line is that goes on with it, if one can
    for line in text.splitlines():
        mark, depth = ITEM.match(line), len(line) - len(line.lstrip())
        if paragraphs and line and not mark and depth == paragraphs[-1][1]:
            paragraphs[-1] = (f"{paragraphs[-1][0]} {line.strip()}", depth)
        else:
            paragraphs.append((line, mark.end() if mark else None if depth or not line else 0))
    for paragraph, hang in paragraphs:
        say(paragraph, indent=hang or 0)


def print_line(name: str, text: str) -> None:
    """A line of a summary: a name, and what is to be said about it."""
    print("\n".join(fold(f"{name:<{LABEL}}{printable(text)}", columns(sys.stdout), LABEL)))


def print_tree(labels: Mapping[int, str], parents: Mapping[int, int | None]) -> None:
    """The nodes below those without a parent. On a terminal a line that is too long loses its beginning."""
    below: dict[int | None, list[int]] = {}
    for node in labels:
        parent = parents[node]
        below.setdefault(parent if parent in labels else None, []).append(node)
    whole = columns(sys.stdout)
    waiting = [("", "", node) for node in reversed(below.get(None, []))]
    while waiting:  # no recursion: a search can be deeper than Python's stack
        before, branch, node = waiting.pop()
        line = printable(before + branch + labels[node])
        print(line if whole is None or len(line) <= whole else "..." + line[3 - whole :])
        if branch:
            before += "    " if branch in ("└── ", "`-- ") else drawn("│   ", "|   ")
        children = below.get(node, [])
        for child in reversed(children):
            waiting.append((before, drawn("└── ", "`-- ") if child == children[-1] else drawn("├── ", "|-- "), child))


def drawn(line: str, plain: str) -> str:
    """``line``, or what stands for it where standard output has no such characters."""
    try:
        line.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return plain
    return line


def number(value: float | None) -> str:
    """A metric for people; a dash where there is none."""
    return "-" if value is None else f"{value:.6g}"


def money(usd: float | None) -> str:
    """Money for people; a price that nobody knows is said to be unknown."""
    return "unknown" if usd is None else f"${usd:.4g}"


def short(value: float | None) -> str:
    """A metric in a table or a line of progress."""
    return "-" if value is None else f"{value:.4g}"
