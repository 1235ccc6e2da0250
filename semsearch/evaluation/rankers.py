"""Systems that rank the documents of a collection: indexes, and runs from a file."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol, Self

from semsearch.encoders import CROSS_ENCODER_PREFIX, EncodesSentences, load_encoder, load_reranker
from semsearch.encoders.specs import Precision, computed_precision
from semsearch.errors import ArgumentError, DatasetError, check_texts
from semsearch.evaluation.datasets import RetrievalSet
from semsearch.evaluation.pair_scorers import OnProgress
from semsearch.evaluation.trec import Run, read_run
from semsearch.index import Index
from semsearch.protocols import Encoder, Matrix, Reranker, TokenSpans
from semsearch.records import Document, SearchMode
from semsearch.search.options import RERANK_DEPTH
from semsearch.search.retrieval import HYBRID_DEPTH

logger = logging.getLogger(__name__)

#: The length of a ranking, as usual in TREC.
DEPTH = 1000
#: The length of hybrid and reranked rankings: up to this depth, they do not depend on `k`.
FIRST = min(HYBRID_DEPTH, RERANK_DEPTH)
#: Queries searched between two reports of progress.
QUERIES_AT_ONCE = 32

BM25 = "bm25"
HYBRID_PREFIX = "hybrid:"
RUN_PREFIX = "run:"

#: The vectors of BM25's index, and its passages if no encoder is evaluated.
LEXICAL_ENCODER = "hashing"


class Ranking(NamedTuple):
    """The rankings of a system for all queries of a set."""

    run: Run
    seconds: float  #: for indexing and all queries, without loading the model


class Collection:
    """A retrieval set with the indexes of its documents.

    Args:
        retrieval: queries, judgements and, unless `index` contains them, documents.
        index: an existing index of the documents. None creates a temporary index per encoder.
        whole_documents: whether temporary indexes store each document as one passage, truncated by
            the encoder, as in published evaluations.
        on_progress: for rankers to call: with their name, "documents" or "queries", how many are
            done, and of how many.
    """

    def __init__(
        self,
        retrieval: RetrievalSet,
        index: Index | None = None,
        *,
        whole_documents: bool = False,
        on_progress: OnProgress = lambda system, items, done, total: None,
    ) -> None:
        self.retrieval = retrieval
        self.whole_documents = whole_documents
        self.on_progress = on_progress
        self._index = index
        self._created: dict[str, tuple[Index, float]] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def index(self, encoder: Encoder | None, system: str) -> tuple[Index, float]:
        """The index with an encoder's vectors, and the seconds its creation took.

        Args:
            encoder: the encoder; None for an existing index.
            system: the name of the ranker that needs the index, for the progress.

        Raises:
            ArgumentError: there is neither an index nor an encoder to create one.
        """
        if self._index is not None:
            return self._index, 0.0
        if encoder is None:
            raise ArgumentError("these systems search an existing index; pass it as index")
        if encoder.fingerprint not in self._created:
            started = time.perf_counter()
            index = self._new_index(encoder, system)
            self._created[encoder.fingerprint] = index, time.perf_counter() - started
        return self._created[encoder.fingerprint]

    def _new_index(self, encoder: Encoder, system: str) -> Index:
        folder = self._closing.enter_context(TemporaryDirectory(prefix="semsearch-eval-"))
        if self.whole_documents:
            encoder = Passages(encoder)
        elif isinstance(encoder, Passages) and encoder.other is not None:
            logger.warning(
                "bm25 searches the passages of %s; its values depend on the first encoder named",
                encoder.other.spec,
            )
        index = self._closing.enter_context(Index.create(Path(folder) / "index", encoder))
        # In descending order of ids: an index orders equal scores by insertion, trec_eval by
        # descending id.
        texts = self.retrieval.documents
        names = sorted((name for name, text in texts.items() if text.strip()), reverse=True)
        on_progress = partial(self.on_progress, system, "documents")
        on_progress(0, len(names))
        index.add(
            (Document(name, texts[name]) for name in names),
            on_batch=lambda summary: on_progress(summary.documents, len(names)),
        )
        return index


class Ranker(Protocol):
    """Protocol of systems that rank the documents of a collection for each of its queries."""

    @property
    def spec(self) -> str:
        """The name of the system."""

    @property
    def precision(self) -> str | None:
        """The number format of its computations; None for BM25 and for runs from a file."""

    def rank(self, collection: Collection) -> Ranking:
        """The best documents for each query, with scores."""


class System(NamedTuple):
    """A parsed system: ``bm25``, ``NAME`` or ``hybrid:NAME``, optionally reranked; ``run:FILE``."""

    mode: SearchMode
    name: str | None  #: of an encoder or an embedding space; None for BM25 and runs
    reranker: str | None
    run: Path | None = None  #: a file with rankings

    @classmethod
    def parsed(cls, spec: str) -> Self:
        """Parse the name of a system.

        Raises:
            ArgumentError: a system is only a cross-encoder, which can only rerank another one.
        """
        if spec.startswith(RUN_PREFIX):
            file = Path(spec.removeprefix(RUN_PREFIX)).expanduser()
            return cls(SearchMode.BM25, None, None, file)
        first, is_reranked, model = spec.partition("+" + CROSS_ENCODER_PREFIX)
        reranker = model if is_reranked else None
        if first.startswith(CROSS_ENCODER_PREFIX):
            raise ArgumentError(f"a cross-encoder can only rerank another system: ENCODER+{spec}")
        if first == BM25:
            return cls(SearchMode.BM25, None, reranker)
        if first.startswith(HYBRID_PREFIX):
            return cls(SearchMode.HYBRID, first.removeprefix(HYBRID_PREFIX), reranker)
        return cls(SearchMode.SEMANTIC, first, reranker)


@dataclass(frozen=True)
class IndexRanker:
    """Searches an index in one mode, as `semsearch query` does.

    Args:
        spec: the name of the system.
        mode: semantic, BM25 or hybrid.
        encoder: the encoder of the space; None for BM25 in an existing index.
        space: the name of the embedding space in an existing index; None for the first.
        reranker: reranks the first documents; the others are dropped.
    """

    spec: str
    mode: SearchMode
    encoder: Encoder | None
    space: str | None = None
    reranker: Reranker | None = None

    @property
    def precision(self) -> str | None:
        """The distinct precisions of encoder and reranker: ``fp32``, or ``int8+bf16``."""
        found = []
        if self.encoder is not None and self.mode is not SearchMode.BM25:
            found.append(computed_precision(self.encoder))
        if self.reranker is not None:
            found.append(self.reranker.precision)
        return "+".join(dict.fromkeys(filter(None, found))) or None

    @property
    def reads_operators(self) -> bool:
        """Whether quotes and minus signs in queries are operators, as in all search by words."""
        return self.mode is not SearchMode.SEMANTIC

    def rank(self, collection: Collection) -> Ranking:
        """Search the index for each query; `evaluate_retrieval` says which have operators."""
        index, seconds = collection.index(self.encoder, self.spec)
        queries = collection.retrieval.queries
        is_whole = self.mode is not SearchMode.HYBRID and self.reranker is None
        started = time.perf_counter()
        run: Run = {}
        on_progress = partial(collection.on_progress, self.spec, "queries")
        on_progress(0, len(queries))
        names = list(queries)
        for start in range(0, len(names), QUERIES_AT_ONCE):
            block = names[start : start + QUERIES_AT_ONCE]
            answers = index.search_many(
                [queries[name] for name in block],
                DEPTH if is_whole else FIRST,
                space=self.space,
                mode=self.mode,
                rerank=self.reranker,
            )
            for name, hits in zip(block, answers, strict=True):
                run[name] = {hit.document_id: hit.score for hit in hits}
            on_progress(len(run), len(names))
        return Ranking(run, seconds + time.perf_counter() - started)


@dataclass(frozen=True)
class RecordedRanker:
    """A run in TREC format."""

    spec: str
    file: Path
    precision: None = None

    def rank(self, collection: Collection) -> Ranking:
        """The rankings in the file; queries missing from it have empty rankings."""
        retrieval = collection.retrieval
        recorded = read_run(self.file)
        if not recorded.keys() & retrieval.queries.keys():
            raise DatasetError(f"{self.file} has no query of {retrieval.name}")
        run = {name: recorded.get(name, {}) for name in retrieval.queries}
        if missing := sum(not found for found in run.values()):
            logger.warning(
                "%s has no results for %s of the %s queries of %s; their values are 0",
                self.file,
                f"{missing:,}",
                f"{len(run):,}",
                retrieval.name,
            )
        return Ranking(run, float("nan"))


class Passages(EncodesSentences):
    """An encoder whose index has other passages.

    Args:
        encoder: computes the vectors, and truncates long passages.
        other: splits documents into passages; None stores each document as one passage.
    """

    def __init__(self, encoder: Encoder, other: Encoder | None = None) -> None:
        self._encoder = encoder
        self.other = other
        self.spec = encoder.spec
        self.fingerprint = encoder.fingerprint
        self.dimension = encoder.dimension
        self.max_document_tokens = sys.maxsize if other is None else other.max_document_tokens
        if other is not None:
            self.fingerprint += f"+{other.fingerprint}"

    def description(self) -> Mapping[str, Any]:
        """The description of the encoder."""
        return self._encoder.description()

    def token_spans(self, text: str) -> TokenSpans:
        """The token spans that limit a passage."""
        return (self.other or self._encoder).token_spans(text)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """The vectors of the encoder."""
        return self._encoder.encode_queries(texts)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """The vectors of the encoder."""
        return self._encoder.encode_documents(texts)


def load_rankers(
    specs: Sequence[str],
    encoders: dict[str, Encoder] | None = None,
    precision: Precision | str = Precision.FP32,
) -> list[Ranker]:
    """Load systems by name; their indexes are created during the evaluation.

    BM25 searches the passages of the first encoder, in an index of its own.

    Args:
        specs: any encoder; ``bm25``; ``hybrid:ENCODER`` (fused with BM25);
            ``SYSTEM+cross-encoder:MODEL`` (reranks the first 100 of SYSTEM); ``run:FILE``.
        encoders: loaded encoders by spec; newly loaded ones are added.
        precision: of newly loaded models: ``auto``, ``fp32``, ``bf16`` or ``int8``.

    Raises:
        ArgumentError: a system is only a cross-encoder, which can only rerank.
        EncoderError: a model cannot be loaded.
    """
    loaded = {} if encoders is None else encoders
    systems = {spec: System.parsed(spec) for spec in check_texts("specs", specs)}
    searching = [system for system in systems.values() if system.run is None]
    for system in searching:
        if system.name is not None and system.name not in loaded:
            loaded[system.name] = load_encoder(system.name, precision=precision)
    named = [loaded[system.name] for system in searching if system.name is not None]
    lexical = load_encoder(LEXICAL_ENCODER)
    if named and named[0].fingerprint != lexical.fingerprint:
        lexical = Passages(lexical, named[0])
    rerankers = _rerankers(systems.values(), precision)
    rankers: list[Ranker] = []
    for spec, system in systems.items():
        if system.run is not None:
            rankers.append(RecordedRanker(spec, system.run))
            continue
        encoder = lexical if system.name is None else loaded[system.name]
        reranker = rerankers[system.reranker]
        rankers.append(IndexRanker(spec, system.mode, encoder, reranker=reranker))
    return rankers


def index_rankers(
    index: Index, specs: Sequence[str] = (), precision: Precision | str = Precision.FP32
) -> list[Ranker]:
    """The systems of an existing index.

    Args:
        index: the index.
        specs: ``SPACE`` (the name of an embedding space), ``bm25``, ``hybrid:SPACE``,
            ``SYSTEM+cross-encoder:MODEL`` or ``run:FILE``; by default all spaces, and ``bm25`` if
            the index has it.
        precision: of cross-encoders.

    Raises:
        ArgumentError: a system is only a cross-encoder, which can only rerank.
        SpaceError: the space does not exist, or is not complete yet.
        EncoderError: a model cannot be loaded.
    """
    names = check_texts("specs", specs) or index.info().systems
    systems = {name: System.parsed(name) for name in names}
    rerankers = _rerankers(systems.values(), precision)
    rankers: list[Ranker] = []
    for spec, system in systems.items():
        if system.run is not None:
            rankers.append(RecordedRanker(spec, system.run))
            continue
        space = index.space(system.name, complete=True)
        encoder = None if system.name is None else index.encoder(space)
        reranker = rerankers[system.reranker]
        rankers.append(IndexRanker(spec, system.mode, encoder, system.name, reranker))
    return rankers


def _rerankers(
    systems: Iterable[System], precision: Precision | str
) -> dict[str | None, Reranker | None]:
    """The cross-encoders of systems by name, each loaded once; None for None."""
    names = {system.reranker for system in systems if system.reranker is not None}
    return {None: None} | {name: load_reranker(name, precision=precision) for name in names}
