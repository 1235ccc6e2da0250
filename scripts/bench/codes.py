"""How much of the exact result short codes of vectors preserve as a corpus grows.

Codes select candidates, whose exact vectors are then compared with the query. Measured is how many
candidates are needed for 98 % of the ten nearest passages to be among them, at 10,000 to 10,000,000
vectors, which are generated as in `scripts/bench/scale` and are never all in memory at once. Beyond
the measured sizes, this depth is extrapolated along a straight line on logarithmic scales; its
range is that of 200 bootstrap samples of the queries.

Codes are trained on 50,000 of the vectors and encode the vectors themselves; in an inverted file
they would encode residuals to the nearest centroid, which is never worse.
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
#: The number of queries.
MEASURED = 200
#: The most candidates considered: a code that needs more is of no use.
DEEPEST = 4000
LEARNT_FROM = 50_000
SAMPLES = 200

#: By FAISS's names. RaBitQ needs randomly rotated vectors.
CODES = ("SQ8", "SQ4", "PQ96x4fs", "PQ48x4fs", "RR384,RaBitQ")


@dataclass
class Best:
    """The best candidates of each query so far: scores and numbers of vectors, best first."""

    depth: int
    scores: Matrix = field(default_factory=lambda: numpy.empty((MEASURED, 0), numpy.float32))
    numbers: NDArray[numpy.int64] = field(
        default_factory=lambda: numpy.empty((MEASURED, 0), numpy.int64)
    )

    def add(self, scores: Matrix, numbers: NDArray[numpy.int64]) -> None:
        """Merge in more candidates."""
        scores = numpy.concatenate([self.scores, scores], axis=1)
        numbers = numpy.concatenate([self.numbers, numbers], axis=1)
        order = numpy.argsort(-scores, axis=1, kind="stable")[:, : self.depth]
        self.scores = numpy.take_along_axis(scores, order, axis=1)
        self.numbers = numpy.take_along_axis(numbers, order, axis=1)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench/codes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=SIZES)
    add("--folder", type=Path, help="that of scripts/bench/scale, which keeps the encoded vectors")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
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


Ranks = NDArray[numpy.int64]  #: ranks of the K nearest by a code, shape (MEASURED, K)


def measured(
    folder: Path, sizes: Sequence[int], data: Path
) -> dict[str, tuple[int, dict[int, Ranks]]]:
    """By code: the bytes per vector, and the ranks of the nearest at each size."""
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
            # For distances, smaller is nearer.
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
    """The rows in blocks, split so that no block crosses one of the sizes."""
    place = 0
    for rows in blocks:
        ends = [size - place for size in sizes if place < size < place + len(rows)]
        for start, end in zip([0, *ends], [*ends, len(rows)], strict=True):
            yield rows[start:end]
        place += len(rows)


def _ranks(numbers: NDArray[numpy.int64], nearest: NDArray[numpy.int64]) -> Ranks:
    """The ranks of the nearest among the candidates, from 0; DEEPEST if missing."""
    found = numpy.full(nearest.shape, DEEPEST, numpy.int64)
    for query, (candidates, wanted) in enumerate(zip(numbers, nearest, strict=True)):
        places = {number: rank for rank, number in enumerate(candidates.tolist())}
        found[query] = [places.get(number, DEEPEST) for number in wanted.tolist()]
    return found


def depth(ranks: Ranks) -> int:
    """The number of candidates needed for the recall; DEEPEST means that many or more."""
    least = int(numpy.ceil(RECALL * ranks.size))
    return min(DEEPEST, int(numpy.sort(ranks, axis=None)[least - 1]) + 1)


def ahead(by_count: dict[int, Ranks]) -> dict[int, tuple[float, float, float]]:
    """The depth extrapolated to larger sizes: median, and bounds of the 95 % interval."""
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
        f"candidates for a recall@{K} of {RECALL}; {DEEPEST:,} means that many or more",
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
