"""Systems that rank a collection: encoders, BM25, both together, reranked, and runs from a file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy

from semsearch.arguments import check_texts
from semsearch.datasets import RetrievalSet
from semsearch.encoders import CROSS_ENCODER_PREFIX, load_encoder, load_reranker
from semsearch.encoders.precision import Precision, computed_precision
from semsearch.errors import ArgumentError, DatasetError
from semsearch.evaluation.trec import Run, read_run
from semsearch.fusion import reciprocal_rank_fusion
from semsearch.lexical import LexicalIndex
from semsearch.protocols import Encoder, Reranker

__all__ = ["Ranker", "Ranking", "load_rankers"]

#: How many documents a ranking holds, as usual in TREC.
DEPTH = 1000
#: How many of them a cross-encoder reads again.
RERANKED = 100

HYBRID_PREFIX = "hybrid:"
RUN_PREFIX = "run:"


class Ranking(NamedTuple):
    """What a system answers to all queries of a set."""

    run: Run
    seconds: float  #: to index the documents and answer the queries; not the loading of the model


class Ranker(Protocol):
    """A system that ranks the documents of a set for each of its queries."""

    @property
    def spec(self) -> str:
        """What it is called."""

    @property
    def precision(self) -> str | None:
        """In which numbers it computes; None for words and for runs from a file."""

    def rank(self, retrieval: RetrievalSet) -> Ranking:
        """Its best documents for each query, with scores."""


class DenseRanker:
    """A bi-encoder, by exact search: the cosine of whole documents, cut where it stops reading."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @property
    def spec(self) -> str:
        """The encoder's."""
        return self.encoder.spec

    @property
    def precision(self) -> str | None:
        """The encoder's, which for ``int8`` is that of documents."""
        return computed_precision(self.encoder)

    def rank(self, retrieval: RetrievalSet) -> Ranking:
        """The documents nearest to each query."""
        started = time.perf_counter()
        ids = _in_order(retrieval)
        documents = self.encoder.encode_documents([retrieval.documents[name] for name in ids])
        queries = self.encoder.encode_queries(list(retrieval.queries.values()))
        run = {}
        for name, query in zip(retrieval.queries, queries, strict=True):
            scores = documents @ query
            best = numpy.argsort(-scores, kind="stable")[:DEPTH]
            run[name] = {ids[place]: float(scores[place]) for place in best}
        return Ranking(run, time.perf_counter() - started)


class LexicalRanker:
    """BM25 over whole documents."""

    spec = "bm25"
    precision = None

    def rank(self, retrieval: RetrievalSet) -> Ranking:
        """The documents that share the most telling words with each query."""
        started = time.perf_counter()
        ids = _in_order(retrieval)
        with LexicalIndex(retrieval.documents[name] for name in ids) as index:
            run = {
                name: {ids[hit.place]: hit.score for hit in index.search(query, DEPTH)}
                for name, query in retrieval.queries.items()
            }
        return Ranking(run, time.perf_counter() - started)


class HybridRanker:
    """Two rankings fused by reciprocal ranks."""

    def __init__(self, spec: str, rankers: Sequence[Ranker]) -> None:
        self.spec = spec
        self.precision = _together(ranker.precision for ranker in rankers)
        self._rankers = rankers

    def rank(self, retrieval: RetrievalSet) -> Ranking:
        """The documents that stand high in both."""
        rankings = [ranker.rank(retrieval) for ranker in self._rankers]
        started = time.perf_counter()
        ids = _in_order(retrieval)
        place = {name: number for number, name in enumerate(ids)}
        run = {}
        for query in retrieval.queries:
            ranked = [[place[name] for name in ranking.run[query]] for ranking in rankings]
            fused = reciprocal_rank_fusion(ranked)[:DEPTH]
            run[query] = {ids[number]: score for number, score in fused}
        seconds = sum(ranking.seconds for ranking in rankings)
        return Ranking(run, seconds + time.perf_counter() - started)


class RerankedRanker:
    """The first documents of another ranker, in the order that a cross-encoder gives them."""

    def __init__(self, spec: str, ranker: Ranker, reranker: Reranker) -> None:
        self.spec = spec
        self.precision = _together((ranker.precision, reranker.precision))
        self._ranker = ranker
        self._reranker = reranker

    def rank(self, retrieval: RetrievalSet) -> Ranking:
        """The first documents by the cross-encoder, and no others."""
        ranking = self._ranker.rank(retrieval)
        started = time.perf_counter()
        run = {}
        for query, found in ranking.run.items():
            # A recorded run may hold documents that the set has not: nobody can read these.
            known = [name for name in found if name in retrieval.documents]
            names = sorted(known[:RERANKED], reverse=True)
            texts = [retrieval.documents[name] for name in names]
            scores = self._reranker.score(retrieval.queries[query], texts)
            best = numpy.argsort(-scores, kind="stable")
            run[query] = {names[place]: float(scores[place]) for place in best}
        return Ranking(run, ranking.seconds + time.perf_counter() - started)


class RecordedRanker:
    """A run that some system has written in TREC's format."""

    precision = None

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self._path = Path(spec.removeprefix(RUN_PREFIX))

    def rank(self, retrieval: RetrievalSet) -> Ranking:
        """What the file says of the set's queries; a query that it lacks has found nothing."""
        recorded = read_run(self._path)
        if not recorded.keys() & retrieval.queries.keys():
            raise DatasetError(f"{self._path}: none of its queries is in {retrieval.name}")
        run = {name: recorded.get(name, {}) for name in retrieval.queries}
        return Ranking(run, float("nan"))


class RememberedRanker:
    """A ranker that others build on: it ranks a set once."""

    def __init__(self, ranker: Ranker) -> None:
        self.spec = ranker.spec
        self.precision = ranker.precision
        self._ranker = ranker
        self._last: tuple[RetrievalSet, Ranking] | None = None

    def rank(self, retrieval: RetrievalSet) -> Ranking:
        """What it has said of the set, if that was the last one."""
        if self._last is None or self._last[0] is not retrieval:
            self._last = retrieval, self._ranker.rank(retrieval)
        return self._last[1]


def load_rankers(
    specs: Sequence[str],
    encoders: dict[str, Encoder] | None = None,
    precision: Precision | str = Precision.FP32,
) -> list[Ranker]:
    """The systems of those names; what several build on is loaded and computed once.

    Args:
        specs: any encoder; ``bm25``; ``hybrid:ENCODER`` (it and BM25);
            ``SYSTEM+cross-encoder:MODEL`` (the first 100 of SYSTEM reranked); ``run:FILE``.
        encoders: those at hand, by spec; those that are loaded are added.
        precision: in which numbers those that are loaded compute: ``auto``, ``fp32``, ``bf16`` or
            ``int8``.

    Raises:
        ArgumentError: a cross-encoder alone, which ranks nothing by itself.
        EncoderError: a model cannot be loaded.
    """
    specs = check_texts("specs", specs)
    at_hand = {} if encoders is None else encoders

    @cache
    def ranker(spec: str) -> Ranker:
        base, mark, model = spec.partition(f"+{CROSS_ENCODER_PREFIX}")
        if mark:
            reranker = load_reranker(model, precision=precision)
            return RememberedRanker(RerankedRanker(spec, ranker(base), reranker))
        if spec.startswith(CROSS_ENCODER_PREFIX):
            raise ArgumentError(f"a cross-encoder reranks what another finds: ENCODER+{spec}")
        if spec.startswith(HYBRID_PREFIX):
            parts = [ranker(spec.removeprefix(HYBRID_PREFIX)), ranker("bm25")]
            return RememberedRanker(HybridRanker(spec, parts))
        if spec.startswith(RUN_PREFIX):
            return RecordedRanker(spec)
        if spec == "bm25":
            return RememberedRanker(LexicalRanker())
        if spec not in at_hand:
            at_hand[spec] = load_encoder(spec, precision=precision)
        return RememberedRanker(DenseRanker(at_hand[spec]))

    return [ranker(spec) for spec in specs]


def _together(precisions: Iterable[str | None]) -> str | None:
    """Those of a system's parts, each once: ``fp32``, or ``int8+bf16``."""
    return "+".join(dict.fromkeys(filter(None, precisions))) or None


def _in_order(retrieval: RetrievalSet) -> list[str]:
    """The documents' ids, falling: of equal scores trec_eval takes the greater id first."""
    return sorted(retrieval.documents, reverse=True)
