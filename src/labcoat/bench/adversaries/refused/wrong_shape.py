"""Leaves an output with one axis too many."""

from adversary import OUTPUTS, leave, npy

EXPECT = "bad_output"
SAYS = "has shape|bytes"
IN = "predict"

first = OUTPUTS[0]
leave(npy(first.descr, (*first.shape, 1)))
