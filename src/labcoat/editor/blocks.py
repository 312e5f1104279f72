"""Blocks: the markers of a SEARCH/REPLACE block, and its two halves."""

from __future__ import annotations

import re
from collections.abc import Sequence

from labcoat.editor.operations import Rejected

_SEARCH = re.compile(r"([ \t]*+)(<{5,}+)[ \t]*+SEARCH[ \t>:]*+", re.IGNORECASE)
_REPLACE = re.compile(r"[ \t]*+>{5,}+[ \t]*+REPLACE[ \t<:]*+", re.IGNORECASE)
_DIVIDER = re.compile(r"[ \t]*+={5,}+[ \t]*+")


def begins(line: str) -> bool:
    """Whether ``line`` is ``<<<<<<< SEARCH``."""
    return "<<<<<" in line and _SEARCH.fullmatch(line) is not None


def ends(line: str) -> bool:
    """Whether ``line`` is ``>>>>>>> REPLACE``."""
    return ">>>>>" in line and _REPLACE.fullmatch(line) is not None


def halves(opening: str, body: Sequence[str], name: str) -> tuple[str, str]:
    """The search and replace texts of the block called ``name``, given the lines between its two markers.

    The lines themselves may hold a row of equals signs, as an underlined heading does. The divider is the one that
    looks like the opening line: as many signs, as much indentation.

    Raises:
        Rejected: if there is no divider or more than one.
    """
    match = _SEARCH.fullmatch(opening)
    assert match is not None, "the caller has seen the opening line"
    divider = match[1] + "=" * len(match[2])
    splits = [at for at, line in enumerate(body) if line.rstrip() == divider]
    splits = splits or [at for at, line in enumerate(body) if _DIVIDER.fullmatch(line)]
    if not splits:
        raise Rejected(f'{name} has no "=======" line. Put one between the lines to find and the new lines.')
    if len(splits) > 1:
        raise Rejected(
            f'{name} has {len(splits)} "=======" lines, so it is not clear where SEARCH ends. '
            'Use longer markers for this block: "<<<<<<<<< SEARCH", "=========", ">>>>>>>>> REPLACE".'
        )
    (at,) = splits
    return _text(body[:at]), _text(body[at + 1 :])


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
