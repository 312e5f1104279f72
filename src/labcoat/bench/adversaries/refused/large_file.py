"""Writes one file that is larger than it may be."""

from adversary import DISK, PLACE

EXPECT = "crash"
SAYS = "File too large"

with open(f"{PLACE}/large", "wb") as stream:
    for _ in range(DISK // (1 << 20) + 1):
        stream.write(b"x" * (1 << 20))
