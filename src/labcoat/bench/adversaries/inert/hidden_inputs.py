"""Looks for the inputs of the test split, by content, in every file that can be seen."""

from adversary import found, visible

SANDBOX_ONLY = True

for what, path in visible().items():
    if what.startswith("inputs"):
        found(f"{what} in {path}")
