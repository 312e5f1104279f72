"""Leaves one file of the artefact under two names."""

import os

from adversary import PLACE, write

EXPECT = "tampered"
SAYS = "hard links"
IN = "fit"

write(f"{PLACE}/model.npy", b"x")
os.link(f"{PLACE}/model.npy", f"{PLACE}/again.npy")
