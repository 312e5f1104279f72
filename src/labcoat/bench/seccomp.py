"""System calls that no worker needs and that reach past its namespaces, as a filter for ``bwrap --seccomp``.

Denied with EPERM: steering other processes (the sandbox's own init among them), keyrings (they are in no namespace),
leaving the processors that a command was given, and large parts of the kernel that a measurement never uses. Only
families of sockets that a network namespace holds.
Where no control group counts memory: also files in memory, which belong to no folder and no process.
"""

from __future__ import annotations

import errno
import os
import struct

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
DENIED: dict[str, dict[str, int]] = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438,
        "add_key": 248, "request_key": 249, "keyctl": 250, "sched_setaffinity": 203,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "shmget": 29, "shmat": 30, "shmctl": 31, "shmdt": 67,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "pidfd_getfd": 438,
        "add_key": 217, "request_key": 218, "keyctl": 219, "sched_setaffinity": 122,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "shmget": 194, "shmctl": 195, "shmat": 196, "shmdt": 197,
    },
}  # fmt: skip
MEMORY_FILES = {
    "x86_64": {"memfd_create": 319, "memfd_secret": 447},
    "aarch64": {"memfd_create": 279, "memfd_secret": 447},
}
SOCKET = {"x86_64": 41, "aarch64": 198}
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
X32 = 0x40000000  # the second table of calls that x86_64 kernels may have

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, KILL, DENY = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM


def denied(machine: str, counted: bool) -> dict[str, int]:
    """The calls that are denied whatever their arguments, with their numbers; none on a machine that is not known."""
    return DENIED.get(machine, {}) | ({} if counted else MEMORY_FILES.get(machine, {}))


def program(machine: str, counted: bool) -> bytes:
    """The filter as classic BPF; empty where the machine's numbers are not known.

    Args:
        machine: as ``os.uname().machine``.
        counted: whether a control group counts all memory, so that files in memory are no way around a limit.
    """
    if machine not in AUDIT:
        return b""

    def code(operation: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", operation, if_true, if_false, value)

    number, architecture, first_argument = 0, 4, 16  # offsets in struct seccomp_data
    lines = [code(LOAD, architecture), code(JUMP_EQUAL, AUDIT[machine], 1), code(RETURN, KILL), code(LOAD, number)]
    lines += [code(JUMP_AT_LEAST, X32, 0, 1), code(RETURN, DENY)]
    for call in denied(machine, counted).values():
        lines += [code(JUMP_EQUAL, call, 0, 1), code(RETURN, DENY)]
    lines += [code(JUMP_EQUAL, SOCKET[machine], 1), code(RETURN, ALLOW), code(LOAD, first_argument)]
    for family in FAMILIES.values():
        lines += [code(JUMP_EQUAL, family, 0, 1), code(RETURN, ALLOW)]
    return b"".join([*lines, code(RETURN, DENY)])


def descriptor(counted: bool) -> int | None:
    """An open file with the filter for this machine, for the caller to close; None where there is none."""
    filtered = program(os.uname().machine, counted)
    if not filtered:
        return None
    handle = os.memfd_create("seccomp")
    os.write(handle, filtered)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle
