"""Ends with ``os._exit(0)`` once the output is written, past whatever else would run at the end."""

import atexit
import os
import sys


def _leave_early() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


atexit.register(_leave_early)
