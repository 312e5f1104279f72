"""Looks for other processes, and into those that it finds: environment, arguments, files, memory."""

import os

from adversary import found

SANDBOX_ONLY = True

for entry in os.listdir("/proc"):
    if entry.isdigit() and int(entry) not in (1, os.getpid()):
        found(f"process {entry}")
for pid in {1, os.getppid()} - {0}:
    for name in ("environ", "cmdline", "root/etc", "cwd", "fd", "mem", "maps"):
        path = f"/proc/{pid}/{name}"
        try:
            held = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(80)
            found(f"{path}: {held!r}")
        except OSError:
            pass
