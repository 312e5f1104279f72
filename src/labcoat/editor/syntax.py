"""Syntax: the check that the final text of a file is well-formed, by its type. Types without a parser pass."""

from __future__ import annotations

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Callable
from pathlib import PurePosixPath

_SHOWN = 200  # characters of a line


def problem(path: str, content: bytes) -> str:
    """What is wrong with the file, in one sentence that shows the line; "" if nothing is."""
    check = _CHECKS.get(PurePosixPath(path).suffix)
    if check is None:
        return ""
    try:
        check(content)
    except SyntaxError as error:
        return _sentence(path, content, error.msg, error.lineno)
    except json.JSONDecodeError as error:
        return _sentence(path, content, error.msg, error.lineno)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        return _sentence(path, content, str(error), int(place[1]) if place else None)
    except (ValueError, RecursionError, MemoryError) as error:
        # Null bytes, bytes that are no UTF-8, numbers too long to convert, nesting too deep for the parser.
        return f"{path}: {error or 'nested too deeply'}."
    return ""


def definitions(content: bytes) -> set[str]:
    """Names of the functions and classes that a Python file defines at its top level; none if it cannot be parsed."""
    try:
        tree = _python(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


def _python(content: bytes) -> ast.Module:
    # Bytes, so that a coding line counts as it will when Python reads the file. Warnings about the candidate's code,
    # such as an invalid escape, are not ours: neither for our stderr nor, under -W error, a reason to reject.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(content)


def _json(content: bytes) -> object:
    return json.loads(content)


def _toml(content: bytes) -> object:
    return tomllib.loads(content.decode())


_CHECKS: dict[str, Callable[[bytes], object]] = {".py": _python, ".pyi": _python, ".json": _json, ".toml": _toml}


def _sentence(path: str, content: bytes, message: str, number: int | None) -> str:
    lines = content.decode(errors="replace").split("\n")
    if not number or number > len(lines):
        return f"{path}: {message}."
    return f"{path}, line {number}: {message}: {lines[number - 1].strip()[:_SHOWN]}"
