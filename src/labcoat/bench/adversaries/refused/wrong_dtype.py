"""Leaves an output of bytes, a dtype that no task accepts."""

from adversary import OUTPUTS, leave, npy

EXPECT = "bad_output"
SAYS = "has dtype"
IN = "predict"

leave(npy("|S1", OUTPUTS[0].shape))
