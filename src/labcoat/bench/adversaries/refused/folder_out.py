"""Leaves a folder in place of an output."""

import os

from adversary import leave

EXPECT = "tampered"
SAYS = "is a folder"
IN = "predict"

path = leave()
os.remove(path)
os.mkdir(path)
