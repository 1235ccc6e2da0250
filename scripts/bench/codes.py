"""How much of the exact answer short codes of vectors keep as a corpus grows.

A code names candidates, and the exact vectors of these are compared with the query. Measured is how
many candidates it takes until 98 % of the ten nearest passages are among them: at 10,000 to
10,000,000 vectors, which are made as for `scripts/bench/scale` and are never held all at once.
Beyond the sizes that were measured, the depth is drawn out along a straight line on logarithmic
scales; its range is that of 200 bootstrap samples of the queries.

Codes are learnt from 50,000 of the vectors and stand for the vectors themselves; in an inverted
file they would stand for what is left behind the nearest centre, which is never worse.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import faiss
import numpy
from numpy.typing import NDArray
from rich.console import Console

from scripts.bench.report import number_text, plain_table
from scripts.bench.scale import RECALL, encode, made
from scripts.bench.systems import messages
from semsearch.protocols import Matrix

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
AHEAD = (100_000_000, 1_000_000_000)
K = 10
#: Queries.
MEASURED = 200
#: How many candidates are looked at: what needs more is not of use.
DEEPEST = 4000
LEARNT_FROM = 50_000
SAMPLES = 200

#: By FAISS's names. RaBitQ wants the vectors turned at random.
CODES = ("SQ8", "SQ4", "PQ96x4fs", "PQ48x4fs", "RR384,RaBitQ")


@dataclass
class Best:
    """The best so far of each query: scores and numbers of vectors, the best first."""

    depth: int
    scores: Matrix = field(default_factory=lambda: numpy.empty((MEASURED, 0), numpy.float32))
    numbers: NDArray[numpy.int64] = field(
        default_factory=lambda: numpy.empty((MEASURED, 0), numpy.int64)
    )

    def add(self, scores: Matrix, numbers: NDArray[numpy.int64]) -> None:
        """More of them."""
        scores = numpy.concatenate([self.scores, scores], axis=1)
        numbers = numpy.concatenate([self.numbers, numbers], axis=1)
        order = numpy.argsort(-scores, axis=1, kind="stable")[:, : self.depth]
        self.scores = numpy.take_along_axis(scores, order, axis=1)
        self.numbers = numpy.take_along_axis(numbers, order, axis=1)


def main() -> None:
    """Measure, and tell."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench/codes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=SIZES)
    add("--folder", type=Path, help="that of scripts/bench/scale: keeps what was encoded")
    add("--json", type=Path, metavar="FILE", help="where the figures go")
    arguments = parser.parse_args()
    data = Path(os.environ["SEMSEARCH_DATA"])
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        encode(folder, data)
        ranks = measured(folder, sorted(arguments.sizes), data)
    told = {
        code: {
            "bytes": size,
            "depth": {count: depth(found) for count, found in by_count.items()},
            "recall without": {
                count: float((found < K).mean()) for count, found in by_count.items()
            },
            "ahead": ahead(by_count),
        }
        for code, (size, by_count) in ranks.items()
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    show(told, Console())


Ranks = NDArray[numpy.int64]  #: of the K nearest in the order of a code, shape (MEASURED, K)


def measured(
    folder: Path, sizes: Sequence[int], data: Path
) -> dict[str, tuple[int, dict[int, Ranks]]]:
    """By code: how many bytes a vector has, and the ranks of the nearest at each size."""
    queries = numpy.load(folder / "queries.npy")[:MEASURED]
    sample = numpy.load(folder / "definitions.npy")
    sample = sample[numpy.random.default_rng(3).permutation(len(sample))[:LEARNT_FROM]]
    indexes = {code: _learnt(code, sample) for code in CODES}
    exact, best = Best(K), {code: Best(DEEPEST) for code in CODES}
    found: dict[str, tuple[int, dict[int, Ranks]]] = {
        code: (index.sa_code_size(), {}) for code, index in indexes.items()
    }
    place = 0
    for rows in _cut(made(folder, sizes[-1], data), sizes):
        scores, numbers = faiss.knn(queries, rows, K, metric=faiss.METRIC_INNER_PRODUCT)
        exact.add(scores, place + numbers)
        for code, index in indexes.items():
            index.reset()
            index.add(rows)
            some, numbers = index.search(queries, min(DEEPEST, len(rows)))
            # By distance, smaller is nearer.
            better = some if index.metric_type == faiss.METRIC_INNER_PRODUCT else -some
            better = numpy.where(numbers < 0, -numpy.inf, better).astype(numpy.float32)
            best[code].add(better, place + numbers)
        place += len(rows)
        if place in sizes:
            messages.print(f"{place:,}")
            for code in CODES:
                found[code][1][place] = _ranks(best[code].numbers, exact.numbers)
    return found


def _learnt(code: str, sample: Matrix) -> Any:
    index = faiss.index_factory(sample.shape[1], code, faiss.METRIC_INNER_PRODUCT)
    index.train(sample)
    return index


def _cut(blocks: Iterator[Matrix], sizes: Sequence[int]) -> Iterator[Matrix]:
    """The rows of blocks; none of them goes beyond one of the sizes."""
    place = 0
    for rows in blocks:
        ends = [size - place for size in sizes if place < size < place + len(rows)]
        for start, end in zip([0, *ends], [*ends, len(rows)], strict=True):
            yield rows[start:end]
        place += len(rows)


def _ranks(numbers: NDArray[numpy.int64], nearest: NDArray[numpy.int64]) -> Ranks:
    """Where the nearest stand among the candidates, 0 is the first; DEEPEST: not there."""
    found = numpy.full(nearest.shape, DEEPEST, numpy.int64)
    for query, (candidates, wanted) in enumerate(zip(numbers, nearest, strict=True)):
        places = {number: rank for rank, number in enumerate(candidates.tolist())}
        found[query] = [places.get(number, DEEPEST) for number in wanted.tolist()]
    return found


def depth(ranks: Ranks) -> int:
    """How many candidates hold so many of the nearest as is wanted; DEEPEST: that or more."""
    least = int(numpy.ceil(RECALL * ranks.size))
    return min(DEEPEST, int(numpy.sort(ranks, axis=None)[least - 1]) + 1)


def ahead(by_count: dict[int, Ranks]) -> dict[int, tuple[float, float, float]]:
    """The depth at larger sizes along a line through those measured: middle, low and high."""
    counts = [count for count in by_count if count >= 100_000] or list(by_count)
    random = numpy.random.default_rng(4)
    lines = []
    for _ in range(SAMPLES):
        chosen = random.integers(0, MEASURED, MEASURED)
        depths = [depth(by_count[count][chosen]) for count in counts]
        lines.append(
            numpy.polyfit(numpy.log10(counts), numpy.log10(depths), min(1, len(counts) - 1))
        )
    found = {}
    for count in AHEAD:
        drawn = [10 ** numpy.polyval(line, numpy.log10(count)) for line in lines]
        low, middle, high = numpy.percentile(drawn, [2.5, 50, 97.5])
        found[count] = (float(middle), float(low), float(high))
    return found


def show(told: dict[str, Any], console: Console) -> None:
    """Print a table."""
    counts = list(next(iter(told.values()))["depth"])
    table = plain_table(
        f"candidates for a recall@{K} of {RECALL}; {DEEPEST:,}: that or more",
        "code",
        "bytes",
        *(f"{count:,}" for count in counts),
        *(f"{count:.0e} drawn out" for count in AHEAD),
    )
    for code, one in told.items():
        table.add_row(
            code,
            str(one["bytes"]),
            *(f"{one['depth'][count]:,} ({one['recall without'][count]:.3f})" for count in counts),
            *(
                f"{number_text(middle)} ({number_text(low)}..{number_text(high)})"
                for middle, low, high in one["ahead"].values()
            ),
        )
    console.print(table)


if __name__ == "__main__":
    main()
