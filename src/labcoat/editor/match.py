"""Match: find the one place that a SEARCH text means, and put the replacement there."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence

from labcoat.editor.operations import Rejected

_SHOWN_LINES = 12  # of the closest region, in a rejection
_SHOWN_PLACES = 8
_MOST_PLACES = 100  # of the same lines but for their indentation; with more of them, no comparison of it is worth while
_MOST_LINES = 10_000  # of the file, in the look for the closest region
_COMPARED = 120  # characters of a line, and lines of the SEARCH text; difflib is quadratic in both

Change = Callable[[str], str]


def substitute(text: str, search: str, replace: str) -> str:
    """Replace the one region of ``text`` that ``search`` matches; all three are lines that end in a newline.

    Only whole lines match: "lr = 0.1" is no part of "lr = 0.15". Three ways to compare are tried, and the first that
    matches anywhere decides: exactly; without trailing white space; with one shift of the indentation for all lines
    (and tabs for spaces), which the replacement then gets too.

    Raises:
        Rejected: if several regions match, or none.
    """
    lines, wanted, new = (part.split("\n")[:-1] for part in (text, search, replace))
    for find in (_exact, _without_trailing_space, _with_other_indentation):
        found = list(find(lines, wanted, new))
        if len(found) == 1:
            at, replacement = found[0]
            return "".join(f"{line}\n" for line in [*lines[:at], *replacement, *lines[at + len(wanted) :]])
        if found:
            places = ", ".join(str(at + 1) for at, _ in found[:_SHOWN_PLACES])
            more = ", ..." if len(found) > _SHOWN_PLACES else ""
            raise Rejected(
                f"the SEARCH text is in the file {len(found)} times, at lines {places}{more}. "
                "Add lines before or after it until it is there only once."
            )
    raise Rejected(f"the SEARCH text is not in the file. {_closest(lines, wanted)}")


Matches = Iterator[tuple[int, Sequence[str]]]


def _exact(lines: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> Matches:
    for at in _positions(lines, wanted):
        yield at, new


def _without_trailing_space(lines: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> Matches:
    for at in _positions([line.rstrip() for line in lines], [line.rstrip() for line in wanted]):
        yield at, new


def _with_other_indentation(lines: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> Matches:
    if not any(line.strip() for line in wanted):
        return
    places = list(_positions([line.strip() for line in lines], [line.strip() for line in wanted]))
    if len(places) > _MOST_PLACES:
        yield from ((at, new) for at in places)
        return
    for at in places:
        region = lines[at : at + len(wanted)]
        for convert in _CONVERSIONS:
            shifted = _shift(region, [convert(line) for line in wanted], [convert(line) for line in new])
            if shifted is not None:
                yield at, shifted
                break


def _positions(lines: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Where ``wanted`` begins in ``lines``; by Knuth, Morris and Pratt: linear, however alike the lines are."""
    borders = [0] * len(wanted)
    matched = 0
    for at in range(1, len(wanted)):
        while matched and wanted[at] != wanted[matched]:
            matched = borders[matched - 1]
        matched += wanted[at] == wanted[matched]
        borders[at] = matched
    matched = 0
    for at, line in enumerate(lines):
        while matched and (matched == len(wanted) or line != wanted[matched]):
            matched = borders[matched - 1]
        matched += line == wanted[matched]
        if matched == len(wanted):
            yield at + 1 - matched


def _shift(region: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> Sequence[str] | None:
    """``new`` with the shift of indentation from ``wanted`` to ``region``; None if there is no such shift."""
    pairs = [(_indent(there), _indent(here)) for there, here in zip(region, wanted, strict=True) if here.strip()]
    there, here = pairs[0]
    more, less = there.removesuffix(here), here.removesuffix(there)
    if (more and less) or any(less + there != more + here for there, here in pairs):
        return None
    if not all(line.startswith(less) for line in new if line.strip()):
        return None
    return [more + line.removeprefix(less) if line.strip() else line for line in new]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _to_tabs(width: int) -> Change:
    def convert(line: str) -> str:
        columns = len(_indent(line).expandtabs(width))
        return "\t" * (columns // width) + " " * (columns % width) + line.lstrip(" \t")

    return convert


def _to_spaces(width: int) -> Change:
    return lambda line: _indent(line).expandtabs(width) + line.lstrip(" \t")


_CONVERSIONS: list[Change] = [lambda line: line, *map(_to_tabs, (4, 8, 2)), *map(_to_spaces, (4, 8, 2))]


def _closest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Show the region that looks most like ``wanted``, so that the model can copy it."""
    there = [line.strip()[:_COMPARED] for line in lines[:_MOST_LINES]]
    here = [line.strip()[:_COMPARED] for line in wanted[:_COMPARED]]
    start = _most_like(there, here)
    if start is None:
        return "Nothing in it looks like that text. Copy the lines to find from the file as it is now."
    shown = range(start, min(start + min(len(wanted), _SHOWN_LINES), len(lines)))
    return "The closest lines are these; copy them exactly:\n" + "\n".join(f"{at + 1:>5}| {lines[at]}" for at in shown)


def _most_like(there: Sequence[str], here: Sequence[str]) -> int | None:
    """Where the longest run of equal lines puts the start of ``here``, or else its most similar line."""
    longest = max(here, key=len)
    if not longest:
        return None
    run = difflib.SequenceMatcher(lambda line: len(line) < 3, there, here, autojunk=False).find_longest_match()
    if any(here[run.b : run.b + run.size]):
        return max(run.a - run.b, 0)
    similar = difflib.get_close_matches(longest, there, n=1)
    return max(there.index(similar[0]) - here.index(longest), 0) if similar else None
