"""Leaves a symbolic link to its inputs in place of an output."""

import os

from adversary import FOLDERS, leave

EXPECT = "tampered"
SAYS = "symbolic link"
IN = "predict"

path = leave()
os.remove(path)
os.symlink(FOLDERS.get("inputs", "/etc/passwd"), path)
