"""A retrieval test: how well an encoder finds the passages that answer questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.evaluation.statistics import Values
from semsearch.protocols import Encoder

#: Number of top passages that count.
DEPTH = 10
#: How many questions are compared with all passages at once.
BLOCK = 512


class Asked(NamedTuple):
    """Questions of one kind."""

    kind: str  #: for messages, in the plural
    queries: list[str]
    judged: list[dict[str, int]]  #: for each query, relevance by passage id


class SearchTest(NamedTuple):
    """Passages, and questions about some of them."""

    passages: dict[str, str]  #: by id
    asked: list[Asked]

    def values(self, encoder: Encoder) -> list[Values]:
        """NDCG@10 of each question, by kind.

        Args:
            encoder: the bi-encoder.
        """
        names = numpy.array(list(self.passages))
        vectors = encoder.encode_documents(list(self.passages.values()))
        found = []
        for asked in self.asked:
            queries = encoder.encode_queries(asked.queries)
            ranked = [names[rows].tolist() for rows in _best(queries, vectors)]
            found.append(ndcg(ranked, asked.judged))
        return found


def ndcg(rankings: Sequence[Sequence[str]], judged: Sequence[Mapping[str, int]]) -> Values:
    """NDCG@10 of each ranking, by ir-measures; shape (n,).

    Args:
        rankings: ids, best first.
        judged: relevance by id, for each ranking.
    """
    from ir_measures import nDCG

    run = {
        str(number): {name: -float(rank) for rank, name in enumerate(names)}
        for number, names in enumerate(rankings)
    }
    qrels = {str(number): dict(relevance) for number, relevance in enumerate(judged)}
    found = {one.query_id: one.value for one in (nDCG @ DEPTH).iter_calc(qrels, run)}
    return numpy.array([found.get(str(number), 0.0) for number in range(len(rankings))])


def _best(
    queries: NDArray[numpy.float32], vectors: NDArray[numpy.float32]
) -> Iterator[NDArray[numpy.int64]]:
    """The rows of the nearest vectors of each query, best first."""
    for start in range(0, len(queries), BLOCK):
        scores = queries[start : start + BLOCK] @ vectors.T
        yield from numpy.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
