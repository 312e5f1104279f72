"""Fills the disk with many files, none of them too large."""

import time

from adversary import DISK, PLACE, write

EXPECT = "crash"
SAYS = "wrote more than"

for number in range(16):
    write(f"{PLACE}/{number}", b"x" * (DISK // 8))
time.sleep(60)
