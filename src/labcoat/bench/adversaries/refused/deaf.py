"""Closes its streams, ignores every polite signal and leaves children that do the same, in sessions of their own."""

import os
import signal
import time

EXPECT = "timeout"
SAYS = "ran longer than"

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
os.closerange(0, 3)
time.sleep(600)
