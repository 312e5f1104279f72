"""Leaves a file in the artefact whose name is no text and steers a terminal."""

import os

from adversary import PLACE

EXPECT = "bad_output"
SAYS = "printable"
IN = "fit"

os.close(os.open(PLACE.encode() + b"/\xff\x1b[2J\n", os.O_CREAT | os.O_WRONLY))
