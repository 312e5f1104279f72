"""Cannot work without the network (the address is one that documents use)."""

import socket

EXPECT = "crash"
SAYS = "Network is unreachable"
SANDBOX_ONLY = True

socket.create_connection(("192.0.2.1", 80), timeout=3)
