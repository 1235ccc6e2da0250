"""The recall of an index, measured against exact search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix
from semsearch.vector_indexes.protocol import VectorIndex

#: How many queries an index is asked, and for how many neighbours each.
QUERIES = 400
NEIGHBOURS = 10
#: How long a query's random part is, beside 1 for what lies between two vectors.
NOISE = numpy.float32(1.4)
#: Scores this near are equal; float32 adds up in any order.
ROUNDING = 1e-5


class RecallTest(NamedTuple):
    """Queries, each with the tenth best score that there is.

    What an index holds, it finds more easily than what people ask for: tuned to find 98 % of the
    neighbours of its own vectors, HNSW over 107,525 definitions found 88 % of those of sentences.
    So a query here lies between two vectors, and 1.4 times as far in a random direction, which
    makes its nearest vector somewhat farther from it than definitions are from sentences. Recalls
    of these queries and of sentences differ by at most 0.01 around 0.98, for IVF and HNSW, among
    107,525 vectors and among a million (`scripts/bench/scale`).

    A neighbour counts as found when its score is no worse than the tenth best of exact search, so
    that equal vectors may stand for each other.
    """

    queries: Matrix
    least: Matrix  #: of each query, shape (m,)

    @classmethod
    def of(cls, index: VectorIndex, seed: int = 0) -> RecallTest:
        """400 queries between the vectors of an index; other ones by another seed."""
        random = numpy.random.default_rng(seed)
        near, far = (index.vectors(random.choice(index.ids, QUERIES)) for _ in range(2))
        noise = random.standard_normal(near.shape).astype(numpy.float32)
        queries = _unit(_unit(near + far / 2) + NOISE * _unit(noise))
        scores, _ = index.exact_search(queries, min(NEIGHBOURS, len(index)))
        return cls(queries, scores[:, -1])

    def recall(self, index: VectorIndex) -> float:
        """The share of the 10 nearest that a search finds, between 0 and 1."""
        scores, found = index.search(self.queries, min(NEIGHBOURS, len(index)))
        near = (scores >= self.least[:, None] - ROUNDING) & (found >= 0)
        return float(near.mean())


def measured_recall(index: VectorIndex) -> float:
    """The share of the 10 nearest neighbours that a search finds, of 400 queries.

    They are not those that the search was tuned with.

    Returns:
        Between 0 and 1; 1 for an empty index.
    """
    return RecallTest.of(index, seed=1).recall(index) if len(index) else 1.0


def _unit(matrix: NDArray[Any]) -> Matrix:
    """Its rows at unit length; a zero row, of vectors that cancel each other out, stays."""
    norms = numpy.linalg.norm(matrix, axis=1, keepdims=True)
    norms[norms == 0] = 1
    found: Matrix = matrix / norms
    return found
