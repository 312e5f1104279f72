"""Looks for the answers of validation and test, by content, in every file that can be seen, and by name."""

from adversary import files, found, visible

SANDBOX_ONLY = True

for what, path in visible().items():
    if what.startswith("answers"):
        found(f"{what} in {path}")
for path, _ in files():
    if "/answers/" in path:
        found(path)
