"""Where to cut a text so that an edit moves no cut but those beside it: content-defined boundaries on lines.

A cut falls before a line that stands out within REACH characters on both sides: the one that begins farthest to the
left, follows a blank line and, among equals, has the smallest checksum. Which lines these are depends on nothing
farther away. So pieces are whole functions and classes where these have the right length, and parts of them elsewhere.
"""

from __future__ import annotations

import zlib
from itertools import pairwise

REACH = 400
"""Pieces are longer than this, if the text is, and about twice as long on average, in characters."""
Key = tuple[int, bool, int]
EDGE: Key = (-1, False, 0)


def pieces(text: str) -> list[str]:
    """The text in consecutive pieces, each of whole lines.

    >>> pieces("")
    []
    """
    lines = text.splitlines(keepends=True)
    starts, keys, place, blank = [0], [EDGE], 0, True
    for line in lines:
        key = _key(line, blank)
        if key and place:
            starts.append(place)
            keys.append(key)
        place += len(line)
        blank = not line.strip()
    starts.append(place)
    keys.append(EDGE)
    cuts = [0, *(starts[i] for i in range(1, len(keys) - 1) if _stands_out(i, starts, keys)), place]
    return [text[a:b] for a, b in pairwise(cuts) if a < b]


def _key(line: str, after_blank: bool) -> Key | None:
    """How much a line stands out, less is more; None for one that begins nothing."""
    said = line.strip()
    if not said or said[0] in ")]}":
        return None
    return len(line) - len(line.lstrip()), not after_blank, zlib.crc32(said.encode())


def _stands_out(line: int, starts: list[int], keys: list[Key]) -> bool:
    key, start = keys[line], starts[line]
    before, after = line - 1, line + 1
    while before >= 0 and start - starts[before] <= REACH:
        if keys[before] <= key:
            return False
        before -= 1
    while after < len(keys) and starts[after] - start <= REACH:
        if keys[after] < key:
            return False
        after += 1
    return True
