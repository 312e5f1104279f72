"""Leaves a named pipe in the artefact."""

import os

from adversary import PLACE

EXPECT = "tampered"
SAYS = "named pipe"
IN = "fit"

os.mkfifo(f"{PLACE}/model.npy")
