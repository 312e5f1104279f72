"""Leaves a header that promises more data than the file has."""

from adversary import OUTPUTS, leave, npy

EXPECT = "bad_output"
SAYS = "not what its header says"
IN = "predict"

first = OUTPUTS[0]
leave(npy(first.descr, first.shape)[:-1])
