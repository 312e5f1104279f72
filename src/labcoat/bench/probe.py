"""What ``labcoat doctor`` runs in a sandbox: one attempt at something that must not work, and what came of it, as JSON.

It needs the standard library only and nothing of labcoat.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

SPIN = 0.4  # seconds
MIB = 1 << 20


def attempt(action: Callable[[], Any]) -> str:
    """What the system says against ``action``; nothing where it works."""
    try:
        action()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def files(path: str) -> str:
    """Read a file that lies outside."""
    return attempt(lambda: open(path).read())


def network(port: str) -> str:
    """Connect to a program on this machine."""
    return attempt(lambda: socket.create_connection(("127.0.0.1", int(port)), 1).close())


def memory(size: str) -> str:
    """Take so many MiB, and wait to be ended."""
    taken = b"x" * (int(size) * MIB)
    time.sleep(2)
    return f"{len(taken) // MIB} MiB"


def processes(count: str) -> int:
    """Start so many processes; how many could be started."""
    started = 0
    for _ in range(int(count)):
        try:
            if os.fork() == 0:
                time.sleep(5)
                os._exit(0)
        except OSError:
            break
        started += 1
    return started


def disk(folder: str, size: str) -> str:
    """Write a file of so many MiB, then many that are smaller, until something ends it."""
    content = b"x" * (int(size) * MIB)

    def write(name: str, part: bytes) -> None:
        with open(f"{folder}/{name}", "wb", buffering=0) as stream:
            while part:
                part = part[stream.write(part) :]

    said = attempt(lambda: write("large", content))
    print(json.dumps(said), flush=True)
    for number in range(20):
        write(str(number), content[: len(content) // 8])
    time.sleep(2)
    return said


def sleep() -> None:
    """Never end."""
    time.sleep(60)


def logs(size: str) -> None:
    """Print so many MiB."""
    os.write(1, b"begin\n")
    for _ in range(int(size)):
        sys.stdout.write("x" * MIB)


def threads() -> dict[str, Any]:
    """Try to get all processors, then compute in two processes: how many there are, what was said, and what was got."""
    given = len(os.sched_getaffinity(0))
    said = attempt(lambda: os.sched_setaffinity(0, range(os.cpu_count() or 1)))
    begin = time.monotonic()
    child = os.fork()
    while time.monotonic() - begin < SPIN:
        pass
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    used = os.times()
    cpu = used.user + used.system + used.children_user + used.children_system
    return {"given": given, "said": said, "share": cpu / (time.monotonic() - begin)}


def calls(*numbers: str) -> list[int]:
    """Make system calls that mean nothing, by number; those that were not refused outright."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = {int(number): (libc.syscall(int(number), -1, -1, -1, -1, -1), ctypes.get_errno()) for number in numbers}
    return [number for number, said in done.items() if said != (-1, errno.EPERM)]


def tree(marker: str) -> str:
    """Leave a daemon behind."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os.wait()
    return marker


def user() -> dict[str, Any]:
    """Who we are and what we may."""
    with open("/proc/self/status") as status:
        fields = {name: value.strip() for name, _, value in (line.partition(":") for line in status)}
    rights = int(fields["CapEff"], 16)
    return {"uid": os.geteuid(), "capabilities": rights, "more": fields.get("NoNewPrivs") != "1"}


def gpu() -> dict[str, Any]:
    """Which devices are here, and whether CUDA starts on them (0, if so)."""
    try:
        started = ctypes.CDLL("libcuda.so.1").cuInit(0)
    except OSError as error:
        started = str(error)
    devices = sorted(name for name in os.listdir("/dev") if name.startswith("nvidia") and name[6:].isdigit())
    return {"devices": devices, "cuda": started}


if __name__ == "__main__":
    attempts = (files, network, memory, processes, disk, sleep, logs, threads, calls, tree, user, gpu)
    name, *given = sys.argv[1:]
    print(json.dumps({each.__name__: each for each in attempts}[name](*given)))
