"""What the rows say: who is how good, where, and whether that depends on how dense the opportunities are.

Everything rests on landscapes: what was measured on one of them is averaged over its seeds first, and the intervals
come from a bootstrap over landscapes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from labcoat.scoring.comparison import ranks, spearman, win_shares
from labcoat.scoring.intervals import Estimate, bootstrap
from labcoat.sim.rows import Row

CONTROL = "random"
GREEDY = "autoresearch"
READINGS = {
    "phi_opp": "the paper's: its formula over runs of all strategies, measured once with other seeds",
    "control": f"the paper's formula over the runs of `{CONTROL}`, all of whose steps are single edits of the baseline",
    "share": f"how often a single edit of the baseline improves it: the share of such steps of `{CONTROL}`",
}
"""What density can mean: the paper's formula over two sets of runs, and the frequency that its text speaks of."""


@dataclass(frozen=True)
class Place:
    """A landscape with the means over its seeds, by strategy."""

    landscape: str
    seeds: int
    density: Mapping[str, float]
    """By reading, see :data:`READINGS`."""
    improvement: Mapping[str, float]
    position: Mapping[str, float]
    wins: Mapping[str, float]

    def ahead(self, strategy: str, other: str | None = None) -> float:
        """How far a strategy is ahead of another, or of the mean of all."""
        return self.improvement[strategy] - (
            fmean(self.improvement.values()) if other is None else self.improvement[other]
        )


def places(rows: Sequence[Row]) -> list[Place]:
    """The landscapes, each with the seeds for which every strategy has a finished run; without any it is left out."""
    by_cell = {(row.landscape, row.seed, row.strategy): row for row in rows}
    strategies = list(dict.fromkeys(row.strategy for row in rows))
    found = []
    for landscape in dict.fromkeys(row.landscape for row in rows):
        seeds = sorted({seed for at, seed, _ in by_cell if at == landscape})
        full = [seed for seed in seeds if all((landscape, seed, strategy) in by_cell for strategy in strategies)]
        if full:
            own = {strategy: [by_cell[landscape, seed, strategy] for seed in full] for strategy in strategies}
            found.append(_place(landscape, own))
    return found


def _place(landscape: str, rows: Mapping[str, Sequence[Row]]) -> Place:
    every = [row for own in rows.values() for row in own]
    density = {} if every[0].phi_opp is None else {"phi_opp": every[0].phi_opp}
    if CONTROL in rows:
        density["control"] = fmean(row.density for row in rows[CONTROL])
        density["share"] = fmean(row.improving / row.steps for row in rows[CONTROL])
    # With one seed the baseline is the same for all, so the position orders them as the raw test value does.
    wins = win_shares({name: {row.seed: row.position for row in own} for name, own in rows.items()})
    return Place(
        landscape,
        len(every) // len(rows),
        density,
        improvement={name: fmean(row.improvement for row in own) for name, own in rows.items()},
        position={name: fmean(row.position for row in own) for name, own in rows.items()},
        wins={name: fmean(shares.values()) for name, shares in wins.items()},
    )


def tables(rows: Sequence[Row]) -> dict[str, Any]:
    """All tables as plain data; docs/json.md describes them."""
    found = places(rows)
    strategies = list(found[0].improvement) if found else []
    return {
        "strategies": sorted((_strategy(found, name) for name in strategies), key=_best_first),
        "landscapes": sorted((_landscape(place) for place in found), key=lambda row: -(row["density"]["phi_opp"] or 0)),
        "density": [_split(found, strategies, reading) for reading in READINGS if _has(found, reading)],
    }


def _has(found: Sequence[Place], reading: str) -> bool:
    """Whether the landscapes can be split by a reading."""
    return len({place.density.get(reading) for place in found} - {None}) > 1 and all(
        reading in place.density for place in found
    )


def _estimate(found: Sequence[Place], of: Callable[[Place], float]) -> dict[str, float | None]:
    """A mean over landscapes with its interval."""
    return asdict(bootstrap([of(place) for place in found], fmean))


def _improvement(found: Sequence[Place], name: str) -> dict[str, float | None]:
    return _estimate(found, lambda place: place.improvement[name])


def _best_first(row: dict[str, Any]) -> float:
    value: float = row["improvement"]["value"]
    return -value


def _strategy(found: Sequence[Place], name: str) -> dict[str, Any]:
    compared = name != CONTROL and CONTROL in found[0].improvement
    return {
        "strategy": name,
        "runs": sum(place.seeds for place in found),
        "improvement": _improvement(found, name),
        "position": _estimate(found, lambda place: place.position[name]),
        "win_rate": _estimate(found, lambda place: place.wins[name]),
        "over_control": _estimate(found, lambda place: place.ahead(name, CONTROL)) if compared else None,
    }


def _landscape(place: Place) -> dict[str, Any]:
    return {
        "landscape": place.landscape,
        "density": {reading: place.density.get(reading) for reading in READINGS},
        "improvement": dict(place.improvement),
        "win_rate": dict(place.wins),
    }


def _split(found: Sequence[Place], strategies: Sequence[str], reading: str) -> dict[str, Any]:
    """Who is ahead where the density is above its median, and where it is not."""
    median = statistics.median(place.density[reading] for place in found)
    dense = [place for place in found if place.density[reading] > median]
    sparse = [place for place in found if place.density[reading] <= median]
    rank = {}
    for half, of in (("dense", dense), ("sparse", sparse)):
        values = ranks([-fmean(place.improvement[name] for place in of) for name in strategies])
        rank[half] = dict(zip(strategies, values, strict=True))
    return {
        "by": reading,
        "median": median,
        "dense": [place.landscape for place in dense],
        "sparse": [place.landscape for place in sparse],
        "strategies": [
            {
                "strategy": name,
                "dense": _improvement(dense, name),
                "dense_rank": rank["dense"][name],
                "sparse": _improvement(sparse, name),
                "sparse_rank": rank["sparse"][name],
                "correlation": _correlation(found, name, reading),
            }
            for name in strategies
        ],
        "crossover": [
            _crossover(dense, sparse, name) for name in strategies if name != GREEDY and GREEDY in strategies
        ],
    }


def _correlation(found: Sequence[Place], name: str, reading: str) -> dict[str, float | None]:
    """Rank correlation of the density with how far the strategy is ahead of the mean of all."""

    def statistic(sample: Sequence[Place]) -> float | None:
        return spearman([place.density[reading] for place in sample], [place.ahead(name) for place in sample])

    return asdict(bootstrap(found, statistic))


def _crossover(dense: Sequence[Place], sparse: Sequence[Place], other: str) -> dict[str, Any]:
    """How far the greedy strategy is ahead of another in each half.

    The crossover is ``shown`` where the intervals of both halves leave out 0 on the sides that the paper says,
    ``in sign`` where only the means lie there, else ``absent``.
    """
    ahead = Estimate(**_estimate(dense, lambda place: place.ahead(GREEDY, other)))
    behind = Estimate(**_estimate(sparse, lambda place: place.ahead(GREEDY, other)))
    in_sign = (ahead.value or 0.0) > 0 > (behind.value or 0.0)
    shown = in_sign and (ahead.low or 0.0) > 0 > (behind.high or 0.0)
    return {
        "other": other,
        "dense": asdict(ahead),
        "sparse": asdict(behind),
        "crossover": "shown" if shown else "in sign" if in_sign else "absent",
    }
