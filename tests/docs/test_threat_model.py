"""The threat model names real tests, and all adversaries with what becomes of them."""

from __future__ import annotations

import re

from labcoat.bench.suite import suite
from tests.docs.test_docs import DOCS, ROOT, names_of_tests

PAGE = (DOCS / "threat-model.md").read_text(encoding="utf-8")


def test_tests_that_are_named_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 40
    assert [f"{path}::{name}" for path, name in named if name not in names_of_tests(ROOT / path)] == []


def test_every_claim_names_a_test() -> None:
    for heading in ("What is defended", "A project of your own", "Where it runs"):
        _, _, section = PAGE.partition(f"## {heading}\n")
        rows = re.findall(r"^\| (?!claim|situation|---).*$", section.partition("\n## ")[0], re.MULTILINE)
        assert len(rows) > 3 and [row for row in rows if "`tests/" not in row] == []


def test_every_adversary_is_listed_with_what_it_attempts_and_what_becomes_of_it() -> None:
    for kind in ("inert", "refused"):
        _, _, section = PAGE.partition(f"### {kind.capitalize()}\n")
        rows = re.findall(r"^\| `\w+` \|.*\|$", section.partition("\n### ")[0], re.MULTILINE)
        expected = []
        for a in suite():
            if a.kind == kind:
                cells = [f"`{a.name}`", a.attempts.replace("``", "`").removesuffix(".")]
                cells += [" or ".join(f"`{status}`" for status in a.expected)] if kind == "refused" else []
                expected.append(f"| {' | '.join([*cells, 'yes' if a.sandbox_only else ''])} |")
        assert rows == expected
