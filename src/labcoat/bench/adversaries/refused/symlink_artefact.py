"""Leaves a symbolic link out of the artefact, to be followed by who copies it."""

import os

from adversary import PLACE

EXPECT = "tampered"
SAYS = "symbolic link"
IN = "fit"

os.symlink("/etc/passwd", f"{PLACE}/model.npy")
