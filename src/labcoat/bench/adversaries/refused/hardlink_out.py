"""Leaves an output with a second name in the same folder."""

import os

from adversary import PLACE, leave

EXPECT = "bad_output", "tampered"
SAYS = "asks for|hard link"
IN = "predict"

os.link(leave(), f"{PLACE}/second.npy")
