"""Leaves a process that no polite signal ends, listening on an abstract socket, for the next phase to talk to."""

import os
import signal
import socket
import time

from adversary import MARK, found

SANDBOX_ONLY = True

NAME = f"\0{MARK}"

with socket.socket(socket.AF_UNIX) as client:
    try:
        client.connect(NAME)
        found("a process of an earlier phase")
    except OSError:
        pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        server = socket.socket(socket.AF_UNIX)
        server.bind(NAME)
        server.listen()
        time.sleep(600)
    os._exit(0)
os.wait()
