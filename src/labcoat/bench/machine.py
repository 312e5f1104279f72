"""What this machine is, for records and for the key of a measured baseline."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from labcoat.bench import gpus


def facts() -> dict[str, Any]:
    """Processor, cores, memory, kernel, Python, and GPUs where there are any."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        "kernel": platform.release(),
        "python": platform.python_version(),
        **gpus.models(gpus.here()),
    }


def _field(path: str, name: str) -> str | None:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None
