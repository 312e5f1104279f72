"""GPUs of NVIDIA: which are here, and what a sandbox must show of the leased ones for CUDA to work.

Only the devices of the leased ones are shown, bound as devices after the sandbox's own ``/dev``, with ``/sys``, without
which CUDA does not start. They are named by UUID: a program that sees two of eight devices counts them anew.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labcoat.bench.leases import Lease
from labcoat.errors import CannotRunHere

CONTROL = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps"]
QUERY = ["nvidia-smi", "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits"]
PAUSE = 1.0  # seconds between two looks for a GPU that is free


@dataclass(frozen=True)
class Gpu:
    """One device."""

    number: int
    """Of ``/dev/nvidia<number>``."""
    uuid: str = ""
    """Empty where the driver does not say."""
    model: str = ""
    memory_mb: int | None = None
    """All of its memory; None where nvidia-smi does not say."""


def listed(devices: Sequence[str], information: Sequence[str], memory: str) -> list[Gpu]:
    """The GPUs, by number.

    Args:
        devices: the names in ``/dev``.
        information: what ``/proc/driver/nvidia/gpus/*/information`` hold.
        memory: what nvidia-smi answered to ``QUERY``.
    """
    sizes = {uuid.strip(): size.strip() for uuid, _, size in (line.partition(",") for line in memory.splitlines())}
    known = {}
    for text in information:
        fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
        known[fields.get("Device Minor", "")] = fields
    found = []
    for name in devices:
        if match := re.fullmatch(r"nvidia(\d+)", name):
            fields = known.get(match[1], {})
            uuid = fields.get("GPU UUID", "")
            size = sizes.get(uuid, "")
            found.append(
                Gpu(
                    int(match[1]),
                    uuid if "?" not in uuid else "",  # the driver shows those before the device was first used
                    fields.get("Model", ""),
                    int(size) if size.isdecimal() else None,
                )
            )
    return sorted(found, key=lambda gpu: gpu.number)


@cache
def here() -> list[Gpu]:
    """The GPUs of this machine."""
    devices = [path.name for path in Path("/dev").glob("nvidia*")]
    if not any(re.fullmatch(r"nvidia\d+", name) for name in devices):
        return []
    try:  # first, as it also wakes devices that nobody has used yet
        memory = subprocess.run(QUERY, capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        memory = ""
    information = [path.read_text() for path in Path("/proc/driver/nvidia/gpus").glob("*/information")]
    return listed(devices, information, memory)


def fitting(gpus: Sequence[Gpu], memory_mb: int | None) -> list[Gpu]:
    """Those with so much memory; one that does not say counts."""
    return [gpu for gpu in gpus if gpu.memory_mb is None or gpu.memory_mb >= (memory_mb or 0)]


def check(gpus: Sequence[Gpu], count: int, memory_mb: int | None, who: str = "this command") -> None:
    """Whether ``count`` of ``gpus`` can be leased.

    Raises:
        CannotRunHere: there are fewer here, or the driver does not name one.
    """
    enough = fitting(gpus, memory_mb)
    if len(enough) < count:
        needed = f" of {memory_mb} MiB" if memory_mb else ""
        those = ", ".join(f"/dev/nvidia{g.number} ({g.memory_mb or 'unknown'} MiB)" for g in gpus) or "no /dev/nvidia0"
        raise CannotRunHere(
            f"{who} needs {count} GPU(s){needed}, here: {those}; run it on a machine that has them (see `nvidia-smi`; "
            "a container shows them after `docker run --gpus all`)"
        )
    if nameless := [f"/dev/nvidia{gpu.number}" for gpu in enough if not gpu.uuid]:
        raise CannotRunHere(
            f"{who} needs a GPU, but the driver gives no UUID for {', '.join(nameless)}: "
            "`sudo nvidia-persistenced` and look at `cat /proc/driver/nvidia/gpus/*/information`"
        )


def lease(count: int, memory_mb: int | None) -> tuple[Lease, list[Gpu]]:
    """Hold ``count`` GPUs for one command; waits until so many are free at once.

    Raises:
        CannotRunHere: there are fewer here.
    """
    if not count:
        return Lease("gpus", [], 0), []
    check(here(), count, memory_mb)
    numbers = {gpu.number: gpu for gpu in fitting(here(), memory_mb)}
    while True:
        held = Lease("gpus", list(numbers), count)
        if len(held.held) == count:
            return held, [numbers[number] for number in held.held]
        held.close()  # all or none, or two that hold one of two would wait for ever
        time.sleep(PAUSE)


def variables(leased: Sequence[Gpu]) -> dict[str, str]:
    """What tells CUDA which GPUs it may use: none but the leased ones."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in leased)}


def arguments(leased: Sequence[Gpu]) -> list[str]:
    """Arguments of bwrap, to stand after ``--dev /dev``, that show the leased devices and what CUDA needs with them."""
    if not leased:
        return []
    names = [*(f"nvidia{gpu.number}" for gpu in leased), *CONTROL]
    binds = [part for name in names for part in ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")]
    return [*binds, "--ro-bind", "/sys", "/sys"]  # /proc/driver/nvidia is in every /proc


def models(gpus: Sequence[Gpu]) -> Mapping[str, list[str]]:
    """What a record of this machine says of its GPUs; nothing where there are none."""
    return {"gpus": [gpu.model or f"/dev/nvidia{gpu.number}" for gpu in gpus]} if gpus else {}
