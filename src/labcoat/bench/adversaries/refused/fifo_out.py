"""Leaves a named pipe in place of an output: who opens it would wait for ever."""

import os

from adversary import leave

EXPECT = "tampered"
SAYS = "named pipe"
IN = "predict"

path = leave()
os.remove(path)
os.mkfifo(path)
