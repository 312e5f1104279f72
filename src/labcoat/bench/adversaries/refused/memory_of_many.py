"""Takes twice the memory that it may have, in eight processes of which none takes too much."""

import os
import time

from adversary import MEMORY

EXPECT = "out_of_memory"
SAYS = "MiB of memory"

for _ in range(8):
    if os.fork() == 0:
        block = b"x" * (MEMORY // 4)
        time.sleep(60)
        os._exit(0)
time.sleep(60)
