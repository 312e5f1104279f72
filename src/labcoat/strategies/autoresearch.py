"""Autoresearch: greedy hill climbing by one researcher who keeps what is better and drops the rest.

Source: FML-bench, section 4 and appendix B; the original is a written protocol (karpathy/autoresearch, program.md).
    1. ask for one idea, given the incumbent's code and the history of all ideas so far;
    2. edit the incumbent and run; if it fails, edit and run again, at most `attempts` runs for one idea;
    3. strictly better than the incumbent: keep it; equal or worse: discard it. Back to 1.

Ours differs from the released port, for these reasons:
    - a retry edits the code that failed, as in the original, and not the incumbent: the traceback is about that code
      (`debug_from="incumbent"` gives the port's rule);
    - the history shows each idea in full, oldest rows left out first where there is no room, and the port shows 60
      characters of each: the original's researcher remembers what it tried;
    - one row of history for an idea with all its attempts, not one for every attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from labcoat.lab import Brief, Lab, Params, Part, Prompt, Strategy, Template, Trial

IDEA = Template(__file__, "idea")
DEBUG = Template(__file__, "debug")


class Autoresearch(Params):
    """Parameters of Autoresearch."""

    attempts: int = Field(3, ge=1)
    """Runs for one idea: the first and its retries. Original: "a few"; released port: 3."""
    debug_from: Literal["crashed", "incumbent"] = "crashed"
    """Which code a retry edits. Original: crashed; released port: incumbent."""


@dataclass(frozen=True)
class Row:
    """One idea and how it ended."""

    idea: str
    last: Trial
    kept: bool
    runs: int


def history(rows: list[Row]) -> tuple[str, ...]:
    """A line for each idea, newest last."""
    lines = []
    for number, row in enumerate(rows, 1):
        verdict = "keep" if row.kept else "discard" if row.last.ok else f"failed after {row.runs} run(s)"
        result = row.last.line or row.last.status
        lines.append(f"{number}. [{verdict}] {result}\n   {' '.join(row.idea.split())}")
    return tuple(lines)


def idea_prompt(brief: Brief, best: Trial, rows: list[Row]) -> Prompt:
    """What the researcher sees before the next idea."""
    standing = f"Baseline: {brief.baseline.line}\nBest so far: {best.line}"
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("history", "Ideas so far:", items=history(rows)) if rows else None,
            Part("metric", standing),
            *brief.files(best.code),
            Part("instruction", IDEA()),
        ]
    )


async def search(lab: Lab, params: Autoresearch) -> None:
    """Greedy hill climbing: keep a strict improvement, discard the rest, a few tries for an idea that fails."""
    best = lab.brief.baseline
    rows: list[Row] = []
    while lab.left:
        idea = (await lab.ask("idea", idea_prompt(lab.brief, best, rows))).text
        base, instruction, error = best, idea, ""
        for run in range(1, params.attempts + 1):
            edit = await lab.edit(base, instruction, error)
            trial = await lab.trial(edit, action="improve" if run == 1 else "debug", idea=idea, attempt=run)
            if trial.ok or not lab.left:
                break
            base = trial if params.debug_from == "crashed" else best
            instruction, error = DEBUG(idea=idea), trial.error
        kept = lab.brief.better(trial, best)
        rows.append(Row(idea, trial, kept, run))
        best = trial if kept else best


STRATEGY = Strategy(
    "autoresearch",
    search,
    Autoresearch,
    purposes=("idea",),
    presets={"original": {}, "released": {"debug_from": "incumbent"}},
)
