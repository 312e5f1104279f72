"""OpenEvolve: populations on islands, each a grid of cells by length and diversity with the best program of each cell.

Source: algorithmicsuperintelligence/openevolve 0.3.2, after AlphaEvolve (arXiv 2506.13131); its port in FML-bench,
section 4 and appendix B.
    1. the baseline is the first program of the first island;
    2. a generation: draw a parent for each island, then make and try a child of each. With probability
       `exploration_ratio` the parent is any program of the island; with `exploitation_ratio` one from the archive of
       the best, of this island if there is one; else one of the island by its fitness. An island that is still empty
       borrows from the first, or from the archive;
    3. a child gets its cell on its island if the cell is empty or its program is worse, which then is removed;
       otherwise it lives on without a cell. It enters the archive while there is room, or in the place of a worse one;
    4. every `migration_interval` generations the best of each island are copied to the two neighbours in the ring,
       unless the same code is there already. Back to 2.
A child is proposed in sight of other programs: the best of the island, and inspirations, which are the island's best,
its elite, and programs from cells near that of the parent.

Ours differs from the original and from the released port, for these reasons:
    - the grid decides who lives, as in the original. The port writes it and never reads it, so that who was displaced
      stays a parent;
    - the baseline never migrates and is on one island only, and what came from elsewhere is not sent on. The port puts
      the baseline on every island and sends copies of copies, until most of the archive is the untouched baseline;
    - a failed trial has a fitness below all numbers. In the original it has 0, and beats every negative score;
    - the draw by fitness weighs how far a program is above the worst of the island, so that neither the unit nor the
      sign of the metric matters. The original weighs the bare number, all alike if it is negative;
    - failed programs are kept out of the archive, as in the port (`archive_failures` gives the original's rule);
    - a rejected edit costs a trial and gives no program, as in the original; the port takes the unchanged parent for
      a new one;
    - all containers are ordered; the original's are sets, with another order in each process;
    - diversity is a distance to a few fixed references, as in the original: the port compares all programs pair by
      pair after each step. Where the original would draw references at random, ours are the oldest;
    - who proposes sees what other programs change and how they did, and for each of the latest children of the island
      its idea and its metric; the port shows neither code nor ideas. A parent that failed is shown with its error; the
      port has a rule of its own for these, which takes one step in a hundred;
    - our numbers are the port's, which suit 100 trials: the original's first migration comes after 250. But the
      population is bounded, by a tenth of the original's bound, so that no step takes longer than the hundredth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial

from pydantic import Field

from labcoat.lab import Brief, Lab, Part, Prompt, Strategy, Template, Trial, diff
from labcoat.strategies.openevolve_rules import FITNESS, Database, Draw, Program, Sizes, program_of

EVOLVE = Template(__file__, "evolve")
MEND = Template(__file__, "mend")
REPAIR = Template(__file__, "repair")


class OpenEvolve(Sizes):
    """Parameters of OpenEvolve."""

    num_islands: int = Field(3, ge=1)
    """Populations side by side. Original: 5; released port: 3."""
    feature_bins: int = Field(5, ge=1)
    """Cells along each axis; more if the archive is larger than such a grid. Original: 10; released port: 5."""
    archive_size: int = Field(30, ge=1)
    """Programs in the archive. Original: 100; released port: 30."""
    archive_failures: bool = False
    """Whether a failed program enters the archive while there is room. Original: yes; released port: no."""
    population_size: int = Field(100, ge=1)
    """Programs on all islands; above it the worst are removed. Original: 1000; released port: no bound."""
    exploration_ratio: float = Field(0.2, ge=0, le=1)
    """Probability of a parent drawn from all of the island. Original: 0.2; released port: 0.2."""
    exploitation_ratio: float = Field(0.7, ge=0, le=1)
    """Probability of a parent drawn from the archive. Original: 0.7; released port: 0.7."""
    elite_selection_ratio: float = Field(0.1, ge=0, le=1)
    """Share of the inspirations that are the best of the island, at least one. Original: 0.1; released port: 0.1."""
    num_inspirations: int = Field(3, ge=0)
    """Inspirations that a child is proposed with. Original: 2; released port: 3."""
    num_top_programs: int = Field(3, ge=0)
    """Best programs of the island that it is proposed with. Original: 3; released port: 3."""
    migration_interval: int = Field(10, ge=1)
    """Generations between two migrations. Original: 50; released port: 10."""
    migration_rate: float = Field(0.1, ge=0, le=1)
    """Share of an island that migrates, at least one program. Original: 0.1; released port: 0.1."""
    diversity_reference_size: int = Field(10, ge=1)
    """Programs that diversity is a distance to. Original: 20; released port: 10."""
    num_recent: int = Field(8, ge=0)
    """Latest children of the island that it is proposed with. Original: 0; released port: 8."""


def recent(brief: Brief, trial: Trial, parent: Trial) -> str:
    """What those who come next are told of a child."""
    verdict = "better than its parent" if brief.better(trial, parent) else "no better" if trial.ok else "failed"
    return f"- [{verdict}] {trial.result}\n  {' '.join(trial.facts['idea'].split())}"


def idea_prompt(brief: Brief, draw: Draw, top: Sequence[Program], latest: Iterable[str]) -> Prompt:
    """What the model sees before it proposes a child."""
    parent = draw.parent.trial
    others = dict.fromkeys(
        program.trial
        for program in sorted([*draw.inspirations, *top], key=FITNESS)
        if program.trial.code != parent.code
    )
    seen = tuple(f"- {trial.result}\n{diff(parent.code, trial.code)}" for trial in others)
    rows = tuple(latest)
    programs = "Other programs, as changes of the files below, the best last:"
    return Prompt.of(
        [
            Part("task", brief.prompt),
            Part("history", "Latest children on this island, of one program or another:", items=rows) if rows else None,
            Part("programs", programs, items=seen) if seen else None,
            Part("metric", f"Baseline: {brief.baseline.result}\nThese files: {parent.result}"),
            *brief.files(parent.code),
            Part("error", parent.error),
            Part("instruction", EVOLVE() if parent.ok else MEND(idea=parent.facts["idea"])),
        ]
    )


async def evolve(lab: Lab, island: int, draw: Draw, top: Sequence[Program], latest: Iterable[str]) -> Trial:
    """A child for an island."""
    parent = draw.parent.trial
    idea = (await lab.ask("idea", idea_prompt(lab.brief, draw, top, latest))).text
    instruction = idea if parent.ok else REPAIR(idea=parent.facts["idea"], repair=idea)
    edit = await lab.edit(parent, instruction, parent.error)
    action = "evolve" if parent.ok else "repair"
    return await lab.trial(edit, action=action, idea=idea, island=island, mode=draw.mode)


async def search(lab: Lab, params: OpenEvolve) -> None:
    """Populations on islands, kept diverse by a grid, bred from any, the best and the fitter, mixed by migration."""
    brief, database = lab.brief, Database(params)
    database.add(program_of(brief, brief.baseline, 0))
    latest = [deque[str](maxlen=params.num_recent) for _ in range(params.num_islands)]
    while lab.left:
        draws = [database.draw(island, lab.rng) for island in range(min(params.num_islands, lab.left))]
        jobs = [
            partial(evolve, island=island, draw=draw, top=database.top(draw.parent.island), latest=latest[island])
            for island, draw in enumerate(draws)
        ]
        for island, trial in enumerate(await lab.parallel(jobs)):
            latest[island].append(recent(brief, trial, draws[island].parent.trial))
            if trial.status != "edit_failed":
                database.add(program_of(brief, trial, island))
                database.count(island)


STRATEGY = Strategy(
    "openevolve",
    search,
    OpenEvolve,
    purposes=("idea",),
    presets={
        "original": {
            "num_islands": 5,
            "feature_bins": 10,
            "archive_size": 100,
            "archive_failures": True,
            "population_size": 1000,
            "num_inspirations": 2,
            "num_recent": 0,
            "migration_interval": 50,
            "diversity_reference_size": 20,
        },
        "released": {"population_size": 1_000_000},
    },
)
