"""The page about the paper shows what the command prints, and says nothing that its tables do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from labcoat.paper import data
from tests.docs.test_docs import check, perform, read

PAGE = (Path(__file__).parents[2] / "docs" / "paper-check.md").read_text(encoding="utf-8")
BEGIN, END = "<!-- tables: written by labcoat paper-check --markdown -->", "<!-- end of tables -->"


def test_the_tables_of_the_page_are_those_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = perform(["paper-check", "--markdown"], monkeypatch, capsys)
    assert code == 0
    assert PAGE.partition(BEGIN)[2].partition(END)[0].strip() == text.strip()


def test_every_check_is_printed_for_people_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = perform(["paper-check"], monkeypatch, capsys)
    assert code == 0
    lines = text.splitlines()
    for found in data()["checks"]:
        assert any(line.startswith(found["verdict"]) and found["claim"] in line for line in lines), found["claim"]


def test_the_json_is_as_documented(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = read(["paper-check"], monkeypatch, capsys)
    check(found, "PaperCheck")
    for row in found["checks"]:
        check(row, "Check")
        if row["estimate"]:
            check(row["estimate"], "Estimate")
    for pair in found["pairs"]:
        check(pair, "Pair")
        check(pair["lead"], "Estimate")
    assert sum(found["verdicts"].values()) == len(found["checks"])


def test_every_figure_that_comes_out_otherwise_is_named_above_the_tables() -> None:
    differ = [found for found in data()["checks"] if found["verdict"] == "differs"]
    named = PAGE.partition("## What comes out otherwise")[2].partition("\n## ")[0]
    assert len(re.findall(r"^- ", named, re.MULTILINE)) == len(differ)


def test_the_numbers_above_the_tables_are_those_of_the_tables() -> None:
    claims = {found["claim"]: found for found in data()["checks"]}
    pairs = {(pair["arm"], pair["other"]): pair for pair in data()["pairs"]}
    assert round(pairs["TAS v2", "AutoR"]["lead"]["value"], 3) == 0.001
    assert len(pairs["TAS v2", "AutoR"]["flips"]) == 5
    for other in ("AIDE", "OEvolve"):
        for leader in ("TAS v2", "AutoR"):
            assert claims[f"{leader} is well above {other}"]["verdict"] == "not supported"
    for last in ("TAS v1", "AIRA"):
        lead = claims[f"TAS v2 is well above {last}"]
        assert lead["estimate"]["low"] > 0 and lead["verdict"] == "not supported"
    assert claims["AutoR is behind TAS v1 on the sparse half"]["estimate"]["value"] > 0
    for other in ("TAS v1", "TAS v2", "AIDE", "AIRA", "OEvolve"):
        assert claims[f"AutoR is ahead of {other} on the dense half"]["estimate"]["low"] > 0
        assert claims[f"AutoR is behind {other} on the sparse half"]["estimate"]["high"] > 0
    assert "which wins 30 at most" in claims["Adaptive beats TAS v2 run by run"]["found"]
    assert "which wins 27 at most" in claims["Adaptive beats AutoR run by run"]["found"]
