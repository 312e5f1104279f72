"""Starts ten times as many processes as it may have."""

import os
import time

from adversary import PROCESSES

EXPECT = "crash"
SAYS = "Resource temporarily unavailable"
SANDBOX_ONLY = True

for _ in range(10 * PROCESSES):
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
