"""Looks for run folders, journals and what labcoat keeps in its home."""

from adversary import FOLDERS, files, found

SANDBOX_ONLY = True

NAMES = {"events.jsonl", "run.json", "outcome.json", "fingerprint", "score_server.py"}

# Where it may have left files of such names itself, in this phase or in the one before.
own = tuple(FOLDERS.get(name, f"/{name}") + "/" for name in ("artefact", "state"))
for path, _ in files():
    _, _, name = path.rpartition("/")
    if (name in NAMES or "/labcoat/" in path) and not path.startswith(own):
        found(path)
