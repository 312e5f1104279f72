"""Doubles itself again and again, whatever the system answers."""

import os
import time

EXPECT = "crash", "timeout"
SAYS = "ran longer than|ended with exit code|Error"
SANDBOX_ONLY = True

deadline = time.monotonic() + 60  # should nothing stop it
while time.monotonic() < deadline:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
