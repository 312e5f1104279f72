"""Parameters of a strategy: from a preset, a file, and by hand. The later wins, and an error names its place."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from labcoat.errors import InputError, of_field
from labcoat.lab import Params, Strategy


def resolve(
    strategy: Strategy, preset: Mapping[str, Any], file: Path | None = None, given: Mapping[str, Any] | None = None
) -> Params:
    """The parameters that hold: defaults, over them the preset, the file, and what is given by hand.

    Raises:
        InputError: naming each parameter that is unknown or out of range, and the file that it stands in.
    """
    in_file, by_hand = read(file) if file else {}, given or {}
    try:
        return strategy.params.model_validate({**preset, **in_file, **by_hand})
    except ValidationError as error:
        lines = []
        for wrong in error.errors():
            field = ".".join(map(str, wrong["loc"]))
            place = f"{file}: " if field.partition(".")[0] in {*in_file} - {*by_hand} else ""
            lines.append(f"  {place}{field}: {_said(strategy, wrong)}")
        known = ", ".join(strategy.params.model_fields) or "none"
        head = f"parameters of strategy {strategy.name} (it has: {known}; `labcoat strategy show` explains them):\n"
        raise InputError(head + "\n".join(lines)) from None


def read(file: Path) -> dict[str, Any]:
    """The values in a TOML file of parameters, by name.

    Raises:
        InputError: it is not there or no TOML, naming the line.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"parameter file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"parameter file {file}: not valid TOML (a line is NAME = VALUE): {error}") from None


def _said(strategy: Strategy, wrong: Mapping[str, Any]) -> str:
    if wrong["type"] != "extra_forbidden":
        return of_field(wrong)
    near = difflib.get_close_matches(str(wrong["loc"][-1]), strategy.params.model_fields, n=1)
    return "no such parameter" + (f"; did you mean {near[0]}?" if near else "")
