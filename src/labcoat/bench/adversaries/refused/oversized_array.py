"""Leaves an output as large as any file may be, made of a hole."""

import os

from adversary import DISK, leave

EXPECT = "bad_output"
SAYS = "are possible|not what its header says"
IN = "predict"

os.truncate(leave(), DISK)
