"""Plants code that another interpreter would run: sitecustomize, a .pth file, a compiled module beside the code."""

import os
import site
import sys

from adversary import MARK, found

SANDBOX_ONLY = True

PLANTED = ["sitecustomize.py", "usercustomize.py", f"{MARK}.pth", "__pycache__/main.cpython-311.pyc"]

for folder in dict.fromkeys([*sys.path, *site.getsitepackages(), os.path.dirname(os.__file__), os.getcwd()]):
    for name in PLANTED if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w"):
                found(path)
        except OSError:
            pass
