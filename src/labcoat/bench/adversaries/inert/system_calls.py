"""Steers the sandbox's own first process (ptrace, its memory, a signal), reads keyrings, chooses its processors."""

import ctypes
import os
import signal

from adversary import found

SANDBOX_ONLY = True

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
USER_KEYRING = -4
KEYCTL, READV = {"x86_64": (250, 310), "aarch64": (219, 270)}.get(os.uname().machine, (None, None))

kernel = ctypes.CDLL(None, use_errno=True)
if kernel.ptrace(PTRACE_ATTACH, 1, None, None) == 0:
    found("ptrace")
    kernel.ptrace(PTRACE_DETACH, 1, None, None)
if KEYCTL is not None and kernel.syscall(KEYCTL, 0, USER_KEYRING, 1) >= 0:
    found("the user's keyring")
if READV is not None:
    held = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    if kernel.syscall(READV, 1, ctypes.byref(held), 1, ctypes.byref(held), 1, 0) > 0:
        found("memory of process 1")
if KEYCTL is not None:
    try:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        found("processors of its own choice")
    except OSError:
        pass
try:
    os.kill(1, signal.SIGKILL)  # the kernel keeps it from the first process of a namespace
except OSError:
    pass
