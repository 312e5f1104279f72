"""Looks for network interfaces and for sockets of other processes, abstract ones among them."""

import socket

from adversary import found

SANDBOX_ONLY = True

for _, name in socket.if_nameindex():
    if name != "lo":
        found(f"interface {name}")
for table in ("unix", "tcp", "tcp6", "udp", "udp6"):
    try:
        with open(f"/proc/net/{table}") as stream:
            for line in stream.read().splitlines()[1:]:
                found(f"{table} socket {line.split()[-1]}")
    except FileNotFoundError:  # a kernel without that protocol
        pass
