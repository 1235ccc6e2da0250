"""The quality gate of quantised models: the loss against fp32, measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.text_model import TextModel
from semsearch.protocols import Matrix

if TYPE_CHECKING:
    from semsearch.evaluation.datasets import RetrievalSet, ScoredPair

#: Limits: the loss of Spearman and nDCG × 100, and the minimum agreement on the 10 nearest.
STS_LOSS = 0.2
NDCG_LOSS = 0.5
AGREEMENT = 0.93

#: The depth of rankings, as for nDCG@10.
NEAREST = 10

Ranks = NDArray[numpy.int64]


class MixedPrecisionModel(NamedTuple):
    """A model as it is used, with different forms for queries and documents."""

    queries: TextModel
    documents: TextModel

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of queries, shape (len(texts), dimension)."""
        return self.queries.encode(texts, self.queries.facts.prompts.get("query", ""))

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of documents, shape (len(texts), dimension)."""
        return self.documents.encode(texts, self.documents.facts.prompts.get("document", ""))


class Parity(NamedTuple):
    """The quality of a model compared with fp32, on texts not used for calibration."""

    sts_fp32: float  #: Spearman × 100 on the test split of STS Benchmark
    sts: float
    ndcg_fp32: float  #: nDCG@10 × 100 on SciFact, 300 claims over 5,183 abstracts
    ndcg: float
    agreement: float  #: the share of the 10 nearest abstracts in common, over 1,105 claims

    def faults(self) -> list[str]:
        """The measures beyond the limits."""
        return [measure for measure, is_met in self._measures().items() if not is_met]

    def __str__(self) -> str:
        return ", ".join(self._measures())

    def _measures(self) -> dict[str, bool]:
        """The measures, and whether they are within the limits."""
        return {
            f"STS Benchmark {self.sts:.2f} (fp32 {self.sts_fp32:.2f})": (
                self.sts_fp32 - self.sts <= STS_LOSS
            ),
            f"SciFact nDCG@10 {self.ndcg:.2f} (fp32 {self.ndcg_fp32:.2f})": (
                self.ndcg_fp32 - self.ndcg <= NDCG_LOSS
            ),
            f"top {NEAREST} agreement {self.agreement:.3f}": self.agreement >= AGREEMENT,
        }


class HeldOut(NamedTuple):
    """The texts on which a model is measured, none of them used for calibration."""

    pairs: Sequence[ScoredPair]
    retrieval: RetrievalSet
    claims: Sequence[str]  #: queries for the agreement, which needs no judgements


def read_held_out() -> HeldOut:
    """The test split of STS Benchmark, and SciFact, with the claims of both its splits.

    Raises:
        DatasetNotFoundError: one of them is not available.
    """
    from semsearch.evaluation.datasets import read_scifact, read_stsbenchmark

    test, training = read_scifact("test"), read_scifact("train")
    claims = dict.fromkeys([*test.queries.values(), *training.queries.values()])
    return HeldOut(read_stsbenchmark("test"), test, list(claims))


def measure_parity(
    held_out: HeldOut, exact: MixedPrecisionModel, candidate: MixedPrecisionModel
) -> Parity:
    """Compare a model with its fp32 form."""
    pairs, retrieval, claims = held_out
    documents, queries = list(retrieval.documents.values()), list(retrieval.queries.values())
    rankings, nearest = [], []
    for encoder in (exact, candidate):
        matrix = encoder.encode_documents(documents)
        rankings.append(_ranking(encoder.encode_queries(queries), matrix))
        nearest.append(_ranking(encoder.encode_queries(claims), matrix))
    shared = _shared(*nearest)
    return Parity(
        sts_fp32=sts_score(exact, pairs),
        sts=sts_score(candidate, pairs),
        ndcg_fp32=_ndcg(rankings[0], retrieval),
        ndcg=_ndcg(rankings[1], retrieval),
        agreement=float(shared.mean()),
    )


def sts_score(encoder: MixedPrecisionModel, pairs: Sequence[ScoredPair]) -> float:
    """Spearman × 100 between the cosines of pairs and their gold scores."""
    from scipy.stats import spearmanr

    left = encoder.encode_documents([pair.left for pair in pairs])
    right = encoder.encode_documents([pair.right for pair in pairs])
    gold = numpy.array([pair.gold for pair in pairs])
    return 100 * float(spearmanr((left * right).sum(axis=1), gold).statistic)


def _ranking(queries: Matrix, documents: Matrix) -> Ranks:
    """The positions of each query's nearest documents, the nearest first."""
    return numpy.argsort(-(queries @ documents.T), axis=1, kind="stable")[:, :NEAREST]


def _ndcg(ranking: Ranks, retrieval: RetrievalSet) -> float:
    from ir_measures import calc_aggregate, nDCG

    ids = list(retrieval.documents)
    run = {
        query: {ids[place]: float(NEAREST - rank) for rank, place in enumerate(places)}
        for query, places in zip(retrieval.queries, ranking, strict=True)
    }
    measure = nDCG @ NEAREST
    return 100 * float(calc_aggregate([measure], retrieval.qrels, run)[measure])


def _shared(one: Ranks, other: Ranks) -> NDArray[numpy.float64]:
    """The share of each query's nearest documents that two rankings have in common."""
    counts = [len(set(a) & set(b)) for a, b in zip(one, other, strict=True)]
    return numpy.array(counts) / NEAREST
