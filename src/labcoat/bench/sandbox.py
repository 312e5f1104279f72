"""Which sandbox is used here."""

from __future__ import annotations

from typing import Any

from labcoat.bench.bubblewrap import Bubblewrap
from labcoat.bench.command import Level, Sandbox
from labcoat.bench.unsandboxed import Unsandboxed
from labcoat.errors import CannotRunHere, InputError

__all__ = ["Bubblewrap", "Level", "Sandbox", "Unsandboxed", "choose", "facts", "probe", "required"]


def choose(name: Level | None, constants_only: bool) -> Sandbox:
    """The sandbox to use here.

    Args:
        name: what the user asked for, if anything. ``none`` is only ever by this explicit wish, or as below.
        constants_only: every candidate differs from the baseline in constants only (``offline:mutate``), so that
            running without a sandbox runs no code that a model wrote. The caller prints the warning.

    Raises:
        CannotRunHere: bubblewrap does not work here, with the remedy.
    """
    if name == "none":
        return Unsandboxed()
    if name not in (None, "bwrap"):
        raise InputError(f"unknown sandbox {name!r}: bwrap or none")
    sandbox = Bubblewrap()
    reason = sandbox.probe()
    if reason is None:
        return sandbox
    if name is None and constants_only:
        return Unsandboxed()
    wanted = "no sandbox for code that a model writes" if name is None else f"--sandbox {name}"
    raise CannotRunHere(f"{wanted}: {reason}")


def required(name: Level | None) -> Sandbox:
    """The sandbox for a project of the user's own: bubblewrap, as nothing else keeps its real folder out of reach.

    Raises:
        InputError: the user asked for none.
        CannotRunHere: bubblewrap does not work here, with the remedy.
    """
    if name == "none":
        raise InputError("--sandbox none: a self-reported task needs bwrap, which alone keeps your project's own files")
    return choose("bwrap", constants_only=False)


def probe() -> str | None:
    """None if bubblewrap works here, else a sentence with the remedy."""
    return Bubblewrap().probe()


def facts(sandbox: Sandbox) -> dict[str, Any]:
    """The level and what it enforced, for ``run.json``."""
    return {"level": sandbox.level, "enforced": sandbox.enforced()}
