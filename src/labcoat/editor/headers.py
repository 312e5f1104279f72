"""Headers: the many ways in which a model names the file that a block of its answer is for."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LONGEST = 400  # characters; a longer line is no header, whatever it begins with
_VERBS = {"FILE", "NEW FILE", "FILENAME"}
_LIST_MARK = re.compile(r"\A(?:\d+[.)]|[-+])[ \t]+")
_PATH_LIKE = re.compile(r"[^\s:]*[\w-]\.[A-Za-z]\w*")
_ATTRIBUTE = re.compile(r"\b(?:title|file|filename|path|name)=[\"']?([^\"'\s}]+)")


@dataclass(frozen=True)
class Header:
    """An explicit header. ``marked`` says that it is a Markdown heading or bold, so hardly a sentence."""

    path: str
    marked: bool
    delete: bool = False


def explicit(line: str) -> Header | None:
    """Read ``### FILE: path``, ``**FILE: path**``, ``FILE: path``, ``### DELETE: path`` and their like."""
    if ":" not in line or len(line) > _LONGEST:
        return None
    text = line.strip()
    marked = text[0] in "#*"
    verb, _, rest = text.lstrip("#*` \t").partition(":")
    path = _bare_name(rest)
    if not path:
        return None
    # Only the exact word deletes: "### Delete: the old loop" is a heading of an explanation.
    if verb.strip("* ") == "DELETE":
        return Header(path, marked, delete=True) if marked else None
    known = verb.strip("* ").upper() in _VERBS
    return Header(path, marked) if known and (marked or not re.search(r"\s", path)) else None


def lone_path(line: str) -> str:
    """The path if ``line`` holds nothing but one (bold, in backticks, a heading, a list item), else ""."""
    if len(line) > _LONGEST:
        return ""
    text = line.strip().lstrip("#").strip()
    text = _bare_name(_LIST_MARK.sub("", text))
    return text if _PATH_LIKE.fullmatch(text) else ""


def in_info(info: str) -> str:
    """The path in a fence's info string (``python a/b.py``, ``python title="b.py"``, ``python:b.py``), else ""."""
    if len(info) > _LONGEST:
        return ""
    if attribute := _ATTRIBUTE.search(info):
        return attribute.group(1)
    words = info.replace(":", " ").split()
    return next((word for word in words if _PATH_LIKE.fullmatch(word)), "")


def _bare_name(text: str) -> str:
    """``text`` without the emphasis, quotes, final colon and final remark in brackets that surround a path."""
    name = text.strip().strip("*`\"': \t")
    if name.endswith(")") and " (" in name:
        name = name[: name.index(" (")].strip("*`\"': \t")
    return name
