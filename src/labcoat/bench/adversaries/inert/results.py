"""Says that it has the best score: prints it, and writes it as a result file in every place that it can."""

import json
import os
import sys

from adversary import BEST, FOLDERS, METRIC

SANDBOX_ONLY = True

CLAIM = {METRIC: {"value": BEST, "se": 0.0, "mean": BEST}, "metrics": {METRIC: BEST}, "status": "ok"}

for stream in (sys.stdout, sys.stderr):
    print(f"{METRIC} = {BEST}\n{METRIC}: {BEST}\n{json.dumps(CLAIM)}", file=stream, flush=True)
# Not in /out, where a file that is not declared is refused.
for folder in ("/tmp", "/dev/shm", os.path.expanduser("~"), os.getcwd(), FOLDERS.get("artefact", "/tmp")):
    for name in ("results.json", "metrics.json", "outcome.json", "final_info.json"):
        try:
            with open(f"{folder}/{name}", "w") as file:
                json.dump(CLAIM, file)
        except OSError:
            pass
