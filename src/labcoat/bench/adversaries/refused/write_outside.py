"""Cannot work without writing beside the folder that it may write."""

from adversary import PLACE

EXPECT = "crash"
SAYS = "Read-only file system|Permission denied"
SANDBOX_ONLY = True

open(f"{PLACE}/../labcoat-adversary", "w").close()
