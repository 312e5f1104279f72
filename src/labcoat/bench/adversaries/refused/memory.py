"""Takes four times the memory that it may have."""

import time

from adversary import MEMORY

EXPECT = "out_of_memory"
SAYS = "MiB of memory"

blocks = []
for _ in range(64):
    blocks.append(b"x" * (MEMORY // 16))
time.sleep(60)
