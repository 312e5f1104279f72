"""All that was checked, as data and as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from labcoat.paper import headline, opportunity, process, results
from labcoat.paper.check import VERDICTS, Check, interval

TITLE = "FML-bench: A Controlled Study of AI Research Agent Strategies from the Perspective of Search Dynamics"
URL = "https://arxiv.org/abs/2605.17373v2"


@cache
def sections() -> dict[str, list[Check]]:
    """All checks by section."""
    return {
        "Results: tables 2 and 3": results.checks(),
        "Opportunity density: table 5 and appendix G": opportunity.checks(),
        "Process metrics: table 4 and section 5": process.checks(),
        "Headline: who leads": headline.checks(),
    }


def data() -> dict[str, Any]:
    """As plain data; docs/json.md describes it."""
    return {
        "paper": {"title": TITLE, "url": URL},
        "verdicts": _counts(),
        "checks": [{"section": name, **asdict(check)} for name, own in sections().items() for check in own],
        "pairs": [pair.to_json() for pair in headline.pairs()],
    }


def _counts() -> dict[str, int]:
    found: Counter[str] = Counter(check.verdict for own in sections().values() for check in own)
    return {verdict: found[verdict] for verdict in VERDICTS}


@dataclass(frozen=True)
class Table:
    """Text in rows."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1
    """How many columns name the row."""


def tables() -> list[Table]:
    """How often each verdict was given, the checks of each section, and all pairs of agents."""
    verdicts = [[verdict, str(count), VERDICTS[verdict]] for verdict, count in _counts().items()]
    checks = [
        Table(
            name,
            ["verdict", "where", "claim", "published", "from the published tables"],
            [[check.verdict, check.where, check.claim, check.published, check.found] for check in own],
            keys=3,
        )
        for name, own in sections().items()
    ]
    pairs = Table(
        "Pairs: what three rounds on 18 tasks can tell apart",
        ["pair", "lead", "ahead, behind, ties", "sign p", "p", "Holm", "BH", "rounds here", "rounds", "tasks"],
        [
            [
                f"{pair.arm} – {pair.other}",
                interval(pair.lead),
                f"{pair.signs.ahead}, {pair.signs.behind}, {pair.signs.ties}",
                *(f"{p:.2g}" for p in (pair.signs.p, pair.p, pair.holm, pair.benjamini_hochberg)),
                *(
                    f"{count:,}" if count else "–"
                    for count in (pair.needed.rounds_here, pair.needed.rounds, pair.needed.tasks)
                ),
            ]
            for pair in headline.pairs()
        ],
    )
    return [Table("Verdicts", ["verdict", "checks", "what came out"], verdicts), *checks, pairs]


def markdown() -> str:
    """The tables for a page."""
    return "\n\n".join(
        "\n".join(
            [
                f"### {table.title}\n",
                _line(table.head),
                "|" + "---|" * len(table.head),
                *map(_line, table.rows),
            ]
        )
        for table in tables()
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
