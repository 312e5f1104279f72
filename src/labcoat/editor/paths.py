"""Paths: which file a model means by the path that it wrote. Never a guess between two."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import PurePosixPath

from labcoat.editor.operations import Rejected
from labcoat.tree import check_path

_SHOWN = 20
_LONGEST_NAME = 255  # bytes of one component, the limit of the usual file systems


def resolve(named: str, present: Collection[str], is_editable: Callable[[str], bool], create: bool) -> str:
    """The editable file that ``named`` means: that path, or the only editable file with which it shares its end.

    Args:
        named: what the reply says; "" if it names no file, which is clear only where one file is editable.
        present: the files that exist.
        is_editable: whether a path may be changed or created.
        create: whether the operation can create a file.

    Raises:
        Rejected: if it means no file, several, one that is not editable, or one outside the workspace.
    """
    editable = sorted(filter(is_editable, present))
    if not named:
        if len(editable) == 1:
            return editable[0]
        raise Rejected(f'The reply does not name the file to change. Begin with "### FILE: path". {_listed(editable)}')
    path = _plain(named)
    if path in present:
        if is_editable(path):
            return path
        raise Rejected(f"{path} is read-only. {_listed(editable)}")
    alike = [other for other in editable if other.endswith(f"/{path}") or path.endswith(f"/{other}")]
    new = create and is_editable(path)
    # A new file beside one of the same name is more often a path written wrongly: "./" says that it is meant.
    if new and (not alike or named.startswith("./")):
        return path
    if new:
        raise Rejected(
            f"{path} does not exist, and there is {' and '.join(alike)}. Write the path in full to change that file, "
            f'or "### FILE: ./{path}" to create a new one.'
        )
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise Rejected(f"{path} can mean {' or '.join(alike)}. Write the path in full.")
    if is_editable(path):
        raise Rejected(f"{path} does not exist. To create it, give the whole file. {_listed(editable)}")
    raise Rejected(f"There is no file {path}, and it may not be created. {_listed(editable)}")


def _plain(named: str) -> str:
    """``named`` as a plain relative path."""
    slashed = named.replace("\\", "/")
    if slashed.startswith(("/", "~")) or re.match(r"[A-Za-z]:", slashed) or ".." in slashed.split("/"):
        raise Rejected(f"{named} lies outside the workspace. Write paths relative to it, as they were shown.")
    path = str(PurePosixPath(slashed))
    try:
        check_path(path)
        sizes = [len(part.encode()) for part in path.split("/")]
    except ValueError:  # UnicodeEncodeError is one
        raise Rejected(f"{named!r} is not a path.") from None
    if max(sizes) > _LONGEST_NAME or not path.isprintable():
        raise Rejected(f"{named[:80]!r}... is not a path: a name is too long or holds control characters.")
    return path


def _listed(editable: Iterable[str]) -> str:
    paths = list(editable)
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"Editable: {', '.join(paths[:_SHOWN]) or 'no file'}{more}."
