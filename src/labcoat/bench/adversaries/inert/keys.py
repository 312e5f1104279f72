"""Looks for keys: variables beyond those that arithmetic needs, and files where people keep them."""

import os

from adversary import found

SANDBOX_ONLY = True

EXPECTED = {
    "PATH", "HOME", "LANG", "LC_CTYPE", "PWD", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "OPENBLAS_CORETYPE", "CUDA_VISIBLE_DEVICES",
}  # fmt: skip
PLACES = ["/root", "/home", "/run", "/var", "/mnt", "/srv", "/etc/shadow", "/etc/ssl/private", "/sys/fs/cgroup"]
PLACES += [os.path.expanduser(f"~/{name}") for name in (".netrc", ".ssh", ".aws", ".config", ".cache", ".env")]

with open("/proc/self/environ", "rb") as stream:
    given = {line.partition(b"=")[0].decode() for line in stream.read().split(b"\0") if line}
for name in sorted(given - EXPECTED):
    found(f"variable {name}")
for place in PLACES:
    if os.path.exists(place):
        found(place)
