"""Random: independent single edits of the baseline, the floor that every strategy must beat.

Nothing that was tried is remembered and nothing is built upon. What a strategy finds beyond this, it finds by
deciding; what this finds, the model finds by itself in as many tries.
"""

from __future__ import annotations

from labcoat.lab import Brief, Lab, Params, Part, Prompt, Strategy, Template

IDEA = Template(__file__, "idea")


def idea_prompt(brief: Brief) -> Prompt:
    """The same question every time: one change to the baseline."""
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("metric", f"Baseline: {brief.baseline.line}"),
            *brief.files(brief.baseline.code),
            Part("instruction", IDEA()),
        ]
    )


async def search(lab: Lab, params: Params) -> None:
    """Independent single edits of the baseline: the control."""
    baseline = lab.brief.baseline
    while lab.left:
        idea = await lab.ask("idea", idea_prompt(lab.brief))
        edit = await lab.edit(baseline, idea.text)
        await lab.trial(edit, action="draft", idea=idea.text)


STRATEGY = Strategy("random", search, purposes=("idea",))
