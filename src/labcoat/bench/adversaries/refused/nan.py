"""Leaves NaN: among floats where those are accepted, else as floats."""

import math
import struct

from adversary import OUTPUTS, leave, npy

EXPECT = "bad_output"
SAYS = "NaN|has dtype"
IN = "predict"

first = OUTPUTS[0]
floats = {"float64": ("<f8", "<d"), "float32": ("<f4", "<f"), "float16": ("<f2", "<e")}
descr, form = next((floats[name] for name in first.dtypes if name in floats), floats["float64"])
leave(npy(descr, first.shape, struct.pack(form, math.nan) * math.prod(first.shape)))
