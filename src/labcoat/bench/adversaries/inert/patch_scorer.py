"""Puts its own ``scorer`` and ``score_server`` where a scorer in the same interpreter would look for modules."""

import sys
import types

from adversary import BEST, METRIC

for name in ("scorer", "score_server", "sitecustomize"):
    module = types.ModuleType(name)
    module.__dict__["score"] = lambda outputs, answers: {METRIC: {"value": BEST, "se": 0.0}}
    sys.modules.setdefault(name, module)
