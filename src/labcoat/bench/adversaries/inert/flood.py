"""Prints 32 MiB, control characters and bytes that are no text among them."""

import os

line = b"\x00\x1b[2J\x1b]0;title\x07\xff\xfe" + b"all work and no play\n" * 50
for _ in range((32 << 20) // (len(line) * 60)):
    data = line * 60
    while data:
        data = data[os.write(1, data) :]
