"""Looks for the scorer's source, ``data.py``, the manifest, raw sources, known solutions and the salt, by content."""

from adversary import found, visible

SANDBOX_ONLY = True

for what, path in visible().items():
    if not what.startswith(("answers", "inputs")):
        found(f"{what} in {path}")
