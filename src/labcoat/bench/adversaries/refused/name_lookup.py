"""Cannot work without looking up a name."""

import socket

EXPECT = "crash"
SAYS = "gaierror|Name or service|name resolution"
SANDBOX_ONLY = True

socket.getaddrinfo("labcoat.invalid", 80)
