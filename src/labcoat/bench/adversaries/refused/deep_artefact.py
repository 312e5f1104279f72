"""Leaves folders nested far deeper than any model needs, for who walks them to run out of stack."""

import os

from adversary import PLACE

EXPECT = "bad_output"
SAYS = "nested deeper"
IN = "fit"

os.chdir(PLACE)
for _ in range(500):
    os.mkdir("d")
    os.chdir("d")
