"""Changes folders that it was given to read, its code and the system: modes, new files, other names, fewer files."""

import os

from adversary import FOLDERS, MARK, PLACE, found

SANDBOX_ONLY = True

PLACES = {"/", "/usr/bin", "/usr/lib", "/etc", "/dev", "/proc", "/env", "/python/lib", os.getcwd(), *FOLDERS.values()}


def _open_up(place: str) -> None:
    os.chmod(place, 0o777)


def _add(place: str) -> None:
    open(f"{place}/{MARK}", "w").close()


def _move(place: str) -> None:
    os.rename(place, f"{place}.moved")


def _remove(place: str) -> None:
    os.remove(next(entry.path for entry in os.scandir(place) if entry.is_file()))


for place in sorted(place for place in PLACES - {PLACE} if os.path.isdir(place)):
    for attempt in (_open_up, _add, _move, _remove):
        try:
            attempt(place)
            found(f"{attempt.__name__[1:]} {place}")
        except (OSError, StopIteration):
            pass
