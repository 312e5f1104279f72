"""Arms: what is compared. A strategy with its parameters, models and budgets; runs of one differ in task and seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from labcoat.tree import sha256

MOST_SHOWN = 3
"""Fields that an arm's name tells; with more it has a short hash."""

Spec = Mapping[str, Any]


def arm_of(spec: Spec) -> dict[str, Any]:
    """What of a run's identity is the arm's. Of a fork: that it is one, and from which step on."""
    arm = {name: value for name, value in spec.items() if name not in ("task", "seed")}
    return arm | ({"fork": {"step": spec["fork"]["step"]}} if "fork" in spec else {})


def key_of(spec: Spec) -> str:
    """A short hash of the arm."""
    return sha256(json.dumps(arm_of(spec), sort_keys=True).encode())[:8]


def names(specs: Iterable[Spec]) -> dict[str, str]:
    """What each arm is called, by its key: its strategy, and where several arms have the same one, what differs.

    >>> def spec(steps): return {"strategy": {"name": "aide", "params": {}}, "models": {"*": "m"}, "steps": steps}
    >>> sorted(names([spec(5), spec(9)]).values())
    ['aide[steps=5]', 'aide[steps=9]']
    """
    arms = {key_of(spec): _flat(arm_of(spec)) for spec in specs}
    by_strategy: dict[str, dict[str, dict[str, str]]] = {}
    for key, arm in arms.items():
        by_strategy.setdefault(arm["strategy.name"], {})[key] = arm
    found = {}
    for strategy, variants in by_strategy.items():
        fields = {field for arm in variants.values() for field in arm}
        differ = sorted(field for field in fields if len({arm.get(field) for arm in variants.values()}) > 1)
        for key, arm in variants.items():
            told = ", ".join(f"{_short(field)}={arm.get(field, '-')}" for field in differ)
            plain = len(differ) <= MOST_SHOWN and "strategy.source" not in differ
            found[key] = strategy if not differ else f"{strategy}[{told}]" if plain else f"{strategy}-{key}"
    return found


def _short(field: str) -> str:
    return "model" if field == "models.*" else field.removeprefix("strategy.params.")


def _flat(value: Any, path: str = "") -> dict[str, str]:
    """Nested data as text by dotted names."""
    if isinstance(value, Mapping) and value:
        return {k: v for key, sub in value.items() for k, v in _flat(sub, f"{path}.{key}" if path else key).items()}
    return {path: value if isinstance(value, str) else json.dumps(value)}
