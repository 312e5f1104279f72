"""Embedding the codes of a run: how much the cache of windows saves, in windows, in tokens and in seconds.

    python benchmarks/embedding.py [--model FOLDER] [--snapshots 101] [--no-timing]

Needs the extra `embed`. A run is 101 snapshots of the first 300 lines of a module of the standard library, each an edit
of the one before (chain) or of the best so far, of which 15 % are accepted (climb); the byte-pair vocabulary is learnt
from the standard library. Without --model the weights are random, of the size of graphcodebert-base: good for
measuring speed and that both ways give the same vectors, and for nothing else. With a model's folder the command also
shows what its summed and its averaged vectors measure.

It exits 1 if a cached vector differs from the plain loop's by more than 1e-4, or the averaged variant saves less than
five times the tokens on edits of five lines.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from labcoat.embedding.cache import Cache
from labcoat.embedding.graphcodebert import GraphCodeBERT
from labcoat.embedding.windows import Pool, Windowed, windows
from labcoat.scoring import measures

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
MODULES = ("calendar", "fractions", "heapq", "statistics", "tokenize")
LINES = 300
STEPS = 100
ACCEPTED = 0.15
Edit = Callable[[list[str], random.Random], list[str]]


def _numbers(lines: list[str], rng: random.Random, count: int, apart: bool = False) -> list[str]:
    """Other digits in ``count`` lines that have some, neighbours or anywhere."""
    found = list(lines)
    places = [place for place, line in enumerate(lines) if re.search(r"\d", line)]
    start = rng.randrange(len(places) - count + 1)
    for place in rng.sample(places, count) if apart else places[start : start + count]:
        found[place] = re.sub(r"\d", lambda _: str(rng.randrange(10)), found[place])
    return found


def _replaced(lines: list[str], rng: random.Random, gone: int, fresh: int) -> list[str]:
    """``gone`` lines make place for ``fresh`` lines of the same file, some names in them changed."""
    start, other = rng.randrange(len(lines) - gone), rng.randrange(len(lines) - fresh)
    new = [re.sub(r"\b([a-z_]{3,})\b", rf"\1_{rng.randrange(99)}", line) for line in lines[other : other + fresh]]
    return [*lines[:start], *new, *lines[start + gone :]]


EDITS: dict[str, Edit] = {
    "one constant": lambda lines, rng: _numbers(lines, rng, 1),
    "numbers in 5 lines": lambda lines, rng: _numbers(lines, rng, 5),
    "5 lines for 5 others": lambda lines, rng: _replaced(lines, rng, 5, 5),
    "3 lines for 5 others": lambda lines, rng: _replaced(lines, rng, 3, 5),
    "5 lines more": lambda lines, rng: _replaced(lines, rng, 0, 5),
    "numbers far apart": lambda lines, rng: _numbers(lines, rng, 5, apart=True),
}
WALKS = {"chain": 1.0, "climb": ACCEPTED}


def snapshots(module: str, edit: Edit, accepted: float, seed: int, steps: int = STEPS) -> list[str]:
    """The codes of a run: the module, and edits of what was accepted last."""
    rng = random.Random(f"{module} {seed}")
    best = (LIBRARY / f"{module}.py").read_text(encoding="utf-8").splitlines()[:LINES]
    found = ["\n".join(best)]
    for _ in range(steps):
        code = edit(best, rng)
        found.append("\n".join(code))
        if rng.random() < accepted:
            best = code
    return found


def counts(embedder: Windowed, texts: Sequence[str]) -> tuple[int, int, int]:
    """Windows and tokens of a run, and tokens of its distinct windows."""
    cut = [window for text in texts for window in embedder.cut(text)]
    return len(cut), sum(map(len, cut)), sum(map(len, set(cut)))


def savings(model: GraphCodeBERT, cache: Cache) -> float:
    """Print how much a cache of a whole run saves; the least saving of the averaged variant on edits of five lines."""
    least = float("inf")
    print("| edits | walk | fixed windows: of a code | saved | cut at lines: of a code | tokens of one | saved |")
    print("|---|---|---|---|---|---|---|")
    for name, edit in EDITS.items():
        for walk, accepted in WALKS.items():
            row: list[str] = []
            runs = [snapshots(module, edit, accepted, 0) for module in MODULES]
            plain = 0
            for pool in ("sum", "mean"):
                embedder = Windowed("counted", model, pool, cache)
                number, tokens, fresh = map(sum, zip(*(counts(embedder, run) for run in runs), strict=True))
                plain = plain or tokens  # of both: what the plain loop with fixed windows has to read
                row.append(f"{number / len(runs) / (STEPS + 1):.1f}")
                row += [f"{tokens / number:.0f}"] if pool == "mean" else []
                row.append(f"{plain / fresh:.1f}x")
                if pool == "mean" and "5 lines" in name:
                    least = min(least, plain / fresh)
            print(f"| {name} | {walk} | {' | '.join(row)} |", flush=True)
    return least


def plain_loop(model: GraphCodeBERT, texts: Sequence[str]) -> np.ndarray:
    """The released recipe as it is written: each text, each window, one after the other."""
    found = []
    for text in texts:
        tokens = model.tokens(text)
        cut = [tokens[start : start + 510] for start in range(0, len(tokens), 510)]
        found.append(sum(model.encode([window], "sum")[0] for window in cut))
    return np.array(found)


def timing(model: GraphCodeBERT, cache: Cache, count: int) -> float:
    """Print seconds for a plain loop and for the cache on the same snapshots; the largest difference of vectors."""
    texts = snapshots("csv", EDITS["3 lines for 5 others"], ACCEPTED, 0, count - 1)
    model.encode([(1,) * 510], "sum")  # the first call takes its own time

    def taken(what: str, embed: Callable[[Sequence[str]], object], base: float | None) -> tuple[float, np.ndarray]:
        begin = time.perf_counter()
        vectors = np.array(embed(texts))
        seconds = time.perf_counter() - begin
        print(f"{what:44} {seconds:7.2f} s {(base or seconds) / seconds:9.1f}x", flush=True)
        return seconds, vectors

    def cached(pool: Pool) -> Windowed:
        return Windowed("timed", model, pool, cache)

    base, plain = taken(f"{count} codes, the plain loop", lambda t: plain_loop(model, t), None)
    _, summed = taken("summed, with the cache", cached("sum").embed, base)
    taken("the same again", cached("sum").embed, base)
    taken("averaged, with the cache", cached("mean").embed, base)
    taken("the same again", cached("mean").embed, base)
    differ = float(np.abs(plain - summed).max())
    print(f"largest difference of a summed vector from the plain loop's: {differ:.1g}", flush=True)
    return differ


def meaning(model: GraphCodeBERT, cache: Cache) -> None:
    """Print what share of a run's spread is there only because its codes have more windows or fewer.

    In each code up to 40 lines of the module make place for up to 40 others, so what a code says does not go along with
    its length. The share is the R² of a line from the number of windows to the vectors.
    """

    def edit(lines: list[str], rng: random.Random) -> list[str]:
        return _replaced(lines, rng, rng.randrange(41), rng.randrange(41))

    runs = [snapshots(module, edit, 0.0, 0, 50) for module in MODULES]
    print("| vectors | share of spread that the number of windows explains | Exploration Spread | Effective dim |")
    print("|---|---|---|---|")
    for pool in ("sum", "mean"):
        rows = []
        for run in runs:
            vectors = np.array(Windowed("meaning", model, pool, cache).embed(run))
            number = [len(windows(model.tokens(text))) for text in run]
            rows.append((explained(number, vectors), measures.spread(vectors), measures.effective_dimension(vectors)))
        share, spread, dimension = np.mean(rows, axis=0)
        print(f"| {pool} | {share:.0%} | {spread:.3g} | {dimension:.1f} |", flush=True)


def explained(number: Sequence[int], vectors: np.ndarray) -> float:
    """Share of the variance of ``vectors`` (n, d) that a line over ``number`` (n) explains; 0 where it is constant."""
    x = np.array(number) - np.mean(number)
    centred = vectors - vectors.mean(axis=0)
    line = np.outer(x, x @ centred / (x @ x)) if x.any() else np.zeros_like(centred)
    return float((line**2).sum() / (centred**2).sum())


def random_model(folder: Path) -> Path:
    """A RoBERTa of the paper's size with random weights, and byte-pair tokens of the standard library."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokens = ByteLevelBPETokenizer()
    tokens.train_from_iterator(_library(), vocab_size=50265, special_tokens=special, show_progress=False)
    RobertaTokenizerFast(tokenizer_object=tokens._tokenizer).save_pretrained(folder)
    torch.manual_seed(0)
    config = RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, pad_token_id=1)
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def _library() -> Iterator[str]:
    for path in sorted(LIBRARY.glob("[a-m]*.py")):
        yield path.read_text(encoding="utf-8")


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder of a model to use in place of random weights")
    parser.add_argument("--snapshots", type=int, default=101, help="codes that the plain loop embeds")
    parser.add_argument("--no-timing", action="store_true", help="count windows only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.model or random_model(Path(scratch))
        model, cache = GraphCodeBERT(str(folder)), Cache(Path(scratch) / "windows.sqlite")
        least = savings(model, cache)
        differ = 0.0 if options.no_timing else timing(model, cache, options.snapshots)
        if options.model:
            meaning(model, cache)
    return int(differ > 1e-4 or least < 5)


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}")
    sys.exit(main())
