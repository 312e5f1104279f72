"""A strategy whose module has a clock."""

from time import monotonic

from labcoat.lab import Lab, Params, Strategy


async def search(lab: Lab, params: Params) -> None:
    """Looks at the clock once it has no step left."""
    await lab.trial(await lab.edit(lab.brief.baseline, f"go {lab.left}"))
    while lab.left:
        await lab.trial(await lab.edit(lab.brief.baseline, "go"))
    monotonic()


STRATEGY = Strategy("timed", search)
