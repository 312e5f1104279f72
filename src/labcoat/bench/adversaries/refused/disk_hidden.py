"""Fills the disk with files that have no name any more, but are still open."""

import os
import time

from adversary import DISK, PLACE

EXPECT = "crash"
SAYS = "wrote more than"

held = []
for number in range(16):
    held.append(open(f"{PLACE}/{number}", "wb", buffering=0))
    os.remove(f"{PLACE}/{number}")
    held[-1].write(b"x" * (DISK // 8))
time.sleep(60)
