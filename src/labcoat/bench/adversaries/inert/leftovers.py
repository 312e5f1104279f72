"""Leaves files in /tmp, /dev/shm, HOME and wherever else it can, for a later phase or trial to find."""

import os

from adversary import MARK, PLACE, found

SANDBOX_ONLY = True

PLACES = {"/tmp", "/dev/shm", "/var/tmp", "/run", "/dev", "/dev/mqueue", os.path.expanduser("~"), os.getcwd()}

for place in sorted(PLACES - {PLACE}):
    path = f"{place}/{MARK}"
    if os.path.exists(path):
        found(path)
    try:
        with open(path, "w") as stream:
            stream.write(MARK)
    except OSError:
        pass
