"""``offline:mutate``: the model that is no model. It changes constants, at random, in the code that it is shown.

It is the demo's default and the control arm of a study: what does a language model add over random mutation of
constants? It answers every purpose with a valid reply: an *idea* names one change of a literal, an *edit* carries it
out as a search/replace block, a schema is filled in. Its choices depend on the call's seed alone, so a run with it
can be repeated exactly.
"""

from __future__ import annotations

import ast
import json
import math
import random
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

from labcoat.models.chat import ROOM, Call, Prompt, Reply
from labcoat.models.structured import read

ALTERNATIVES: tuple[tuple[str, ...], ...] = (
    ("relu", "gelu", "tanh", "elu", "silu", "leaky_relu", "sigmoid"),
    ("adam", "adamw", "sgd", "rmsprop", "adagrad"),
    ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"),
    ("l1", "l2", "elasticnet"),
    ("constant", "linear", "cosine", "step", "exponential"),
    ("mean", "median", "most_frequent"),
    ("uniform", "distance"),
    ("gini", "entropy", "log_loss"),
    ("sqrt", "log2"),
    ("rbf", "poly", "linear", "sigmoid"),
)
STRUCTURAL = {"axis", "dim", "ndim", "random_state", "seed", "dtype", "verbose", "n_jobs"}
"""Keyword arguments whose numbers are no quantities."""
SPREAD = math.log(4)
"""A number moves by a factor between 1/4 and 4, log-uniformly; one between 0 and 1 moves so in its odds."""

_IDEA = re.compile(r"Change `(?P<old>[^`]+)` to `(?P<new>[^`]+)` at (?P<path>\S+):(?P<line>\d+):(?P<column>\d+)\b")


@dataclass(frozen=True)
class Literal:
    """A literal in a file: where it stands and what it is."""

    path: str
    line: int  # from 1
    column: int  # characters from 0
    source: str
    value: float | int | bool | str

    @property
    def place(self) -> tuple[str, int, int]:
        """File, line, column."""
        return self.path, self.line, self.column


@dataclass(frozen=True)
class Change:
    """One literal and what to put in its place."""

    literal: Literal
    new: str

    def idea(self, text: str) -> str:
        """The change in words that :data:`_IDEA` reads again."""
        at = self.literal
        line = text.split("\n")[at.line - 1].strip()
        return f"Change `{at.source}` to `{self.new}` at {at.path}:{at.line}:{at.column}, in the line `{line}`."

    def patch(self, text: str) -> str:
        """The change as a search/replace block whose search text is unique in the file."""
        lines = text.removesuffix("\n").split("\n")
        at, row = self.literal, self.literal.line - 1
        old = lines[row]
        new = old[: at.column] + self.new + old[at.column + len(at.source) :]
        first = last = row
        while occurrences(lines, lines[first : last + 1]) > 1:
            first, last = max(0, first - 1), min(len(lines) - 1, last + 1)
        search = lines[first : last + 1]
        replace = [*lines[first:row], new, *lines[row + 1 : last + 1]]
        return "\n".join([f"### FILE: {at.path}", "<<<<<<< SEARCH", *search, "=======", *replace, ">>>>>>> REPLACE"])


def occurrences(lines: list[str], window: list[str]) -> int:
    """At how many places ``window`` stands in ``lines``, overlapping ones included."""
    return sum(lines[at : at + len(window)] == window for at in range(len(lines) - len(window) + 1))


class OfflineMutator:
    """The model. Needs no key and no network, and can write nothing but literals."""

    name = "offline:mutate"
    constants_only = True

    def room(self, purpose: str) -> int:
        """What holds where nothing is known."""
        return ROOM

    def chat(self, prompt: Prompt, call: Call) -> Reply:
        """Answer with an idea, an edit, or an instance of the schema."""
        rng = random.Random(call.seed)
        files = prompt.files
        if call.schema is not None:
            value = instance(call.schema, rng, self._idea(files, rng))
            return read(Reply(json.dumps(value, ensure_ascii=False), cost=0.0), call.schema)
        if call.purpose != "edit":
            return Reply(self._idea(files, rng), cost=0.0)
        change = self._carry_out(prompt, files, rng)
        return Reply(
            change.patch(files[change.literal.path]) if change else "There is no constant to change.", cost=0.0
        )

    def _idea(self, files: dict[str, str], rng: random.Random) -> str:
        change = draw(literals(files), rng)
        return change.idea(files[change.literal.path]) if change else "There is no constant to change."

    def _carry_out(self, prompt: Prompt, files: dict[str, str], rng: random.Random) -> Change | None:
        """The change that the instruction names; where it was tried and failed, another value in its place."""
        found = literals(files)
        wanted = _IDEA.search(prompt.get("instruction"))
        if wanted:
            place = wanted["path"], int(wanted["line"]), int(wanted["column"])
            for literal in found:
                if literal.place == place and literal.source == wanted["old"]:
                    return Change(literal, wanted["new"])
                if literal.place == place and literal.source == wanted["new"]:
                    return draw([literal], rng)
        return draw(found, rng)


def draw(found: list[Literal], rng: random.Random) -> Change | None:
    """A literal at random and another value for it; None if there is no literal."""
    if not found:
        return None
    literal = rng.choice(found)
    return Change(literal, mutate(literal.value, rng))


def mutate(value: float | int | bool | str, rng: random.Random) -> str:
    """Source of another value in the place of ``value``: never the same one."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, str):
        family = next(family for family in ALTERNATIVES if value in family)
        return repr(rng.choice([other for other in family if other != value]))
    factor = math.exp(rng.uniform(-SPREAD, SPREAD))
    if isinstance(value, int):
        moved = round(value * factor)
        return repr(moved if moved != value else value + (1 if factor > 1 or value == 1 else -1))
    if value == 0:
        return f"{10 ** rng.uniform(-4, -1):.3g}"
    if 0 < value < 1:
        odds = value / (1 - value) * factor
        moved_float = float(f"{odds / (1 + odds):.3g}")
    else:
        moved_float = float(f"{value * factor:.3g}")
    if moved_float == value or (0 < value < 1 and not 0 < moved_float < 1):
        moved_float = value / 2
    return repr(moved_float)


def literals(files: dict[str, str]) -> list[Literal]:
    """The literals of the files that are quantities, switches or known alternatives, in order of files and places."""
    return [
        literal for path, text in sorted(files.items()) if path.endswith(".py") for literal in _literals(path, text)
    ]


@lru_cache(maxsize=64)  # an idea and its edit read the same files
def _literals(path: str, text: str) -> tuple[Literal, ...]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    if "\r" in text.replace("\r\n", "\n"):  # the parser ends a line there, we do not
        return ()
    structural = _structural(tree)
    lines = text.split("\n")
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in structural or node.lineno != node.end_lineno:
            continue
        if _mutable(node.value):
            line = lines[node.lineno - 1].encode()  # columns of the syntax tree count bytes
            source = line[node.col_offset : node.end_col_offset].decode()
            found.append(Literal(path, node.lineno, len(line[: node.col_offset].decode()), source, node.value))
    return tuple(sorted(found, key=lambda literal: literal.place))


def _mutable(value: object) -> TypeGuard[float | int | bool | str]:
    if isinstance(value, str):
        return any(value in family for family in ALTERNATIVES)
    if isinstance(value, float):
        return abs(value) < 1e300  # also after it was moved it is a number
    return isinstance(value, int) and (isinstance(value, bool) or 0 < abs(value) < 2**53)


def _structural(tree: ast.AST) -> set[int]:
    """Constants that are no quantities: indices, `-1`, arguments such as ``axis``, parts of f-strings."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        inner: list[ast.AST] = []
        if isinstance(node, ast.Subscript):
            inner = [node.slice]
        elif isinstance(node, ast.keyword) and node.arg in STRUCTURAL:
            inner = [node.value]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant) and node.operand.value == 1:
            inner = [node.operand]
        elif isinstance(node, ast.JoinedStr | ast.MatchValue):
            inner = [node]
        for root in inner:
            skipped.update(id(n) for n in ast.walk(root) if isinstance(n, ast.Constant))
    return skipped


def instance(schema: dict[str, Any], rng: random.Random, text: str) -> Any:
    """A value that a JSON schema allows; strings are ``text``."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    for union in ("anyOf", "oneOf", "allOf"):
        if schema.get(union):
            return instance(schema[union][0], rng, text)
    kind = schema.get("type", "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return {name: instance(sub, rng, text) for name, sub in schema.get("properties", {}).items()}
        case "array":
            return [instance(schema.get("items", {}), rng, text) for _ in range(max(1, schema.get("minItems", 1)))]
        case "integer":
            low = schema.get("minimum", 0)
            return rng.randint(low, schema.get("maximum", low + 10))
        case "number":
            low = schema.get("minimum", 0.0)
            return rng.uniform(low, schema.get("maximum", low + 1.0))
        case "boolean":
            return rng.random() < 0.5
        case "null":
            return None
        case _:
            return text
