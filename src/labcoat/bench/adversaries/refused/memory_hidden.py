"""Takes twice the memory that it may have, as files without a name that no process maps."""

import os
import time

from adversary import DISK, MEMORY

EXPECT = "crash", "out_of_memory"
SAYS = "MiB of memory|not permitted|not implemented|No space left"

block = b"x" * min(DISK, MEMORY // 8)
held = []
for number in range(2 * MEMORY // len(block)):
    held.append(os.memfd_create(f"{number}"))
    os.write(held[-1], block)
time.sleep(60)
