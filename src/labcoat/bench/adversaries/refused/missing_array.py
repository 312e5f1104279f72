"""Leaves all outputs but the first, and ends well."""

import os

from adversary import leave

EXPECT = "bad_output"
SAYS = "is missing"
IN = "predict"

os.remove(leave())
