"""Leaves an output that the task does not ask for."""

from adversary import OUTPUTS, PLACE, leave, npy, write

EXPECT = "bad_output"
SAYS = "and nothing else"
IN = "predict"

leave()
write(f"{PLACE}/extra.npy", npy(OUTPUTS[0].descr, OUTPUTS[0].shape))
