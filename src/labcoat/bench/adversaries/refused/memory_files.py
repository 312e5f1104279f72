"""Takes twice the memory that it may have, as files in /tmp and /dev/shm, which no process owns."""

from adversary import DISK, MEMORY

EXPECT = "crash", "out_of_memory"
SAYS = "No space left|MiB of memory"
SANDBOX_ONLY = True

block = b"x" * (DISK // 2)
for number in range(2 * MEMORY // len(block)):
    with open(f"{('/tmp', '/dev/shm')[number % 2]}/labcoat-adversary-{number}", "wb") as stream:
        stream.write(block)
