"""Cannot work without changing its own program, which is protected."""

import os

EXPECT = "crash", "tampered"
SAYS = "Read-only file system|Permission denied|Operation not permitted|may only read"

for folder, _, names in os.walk(os.getcwd()):
    for name in names:
        path = os.path.join(folder, name)
        os.chmod(path, 0o666)
        with open(path, "a") as stream:
            stream.write("#")
