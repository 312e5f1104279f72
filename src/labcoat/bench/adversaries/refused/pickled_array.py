"""Leaves an array of objects whose unpickling would run code."""

import os
import pickle

from adversary import leave, npy

EXPECT = "bad_output"
SAYS = "numpy.save|dtype|bytes"
IN = "predict"


class _Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch /tmp/labcoat-adversary",)


leave(npy("|O", (1,), pickle.dumps(_Bomb())))
