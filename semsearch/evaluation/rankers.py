"""Systems that rank a collection: an index searched in each of its ways, and runs from a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol, Self

from semsearch.arguments import check_texts
from semsearch.datasets import RetrievalSet
from semsearch.encoders import (
    CROSS_ENCODER_PREFIX,
    EncodesSentences,
    load_encoder,
    load_reranker,
)
from semsearch.encoders.specs import Precision, computed_precision
from semsearch.errors import CombinationError, DatasetError
from semsearch.evaluation.trec import Run, read_run
from semsearch.index import Index
from semsearch.protocols import Encoder, Matrix, Reranker, TokenSpans
from semsearch.records import Chunk, Document, Hit, Hits, SearchMode
from semsearch.retriever import Retriever
from semsearch.search import HYBRID_DEPTH
from semsearch.search.queries import RERANK_DEPTH, Fusion
from semsearch.search.reranking import reranked

#: How many documents a ranking holds, as usual in TREC.
DEPTH = 1000
#: Hybrid and reranked rankings are asked for so many: up to there, what stands first does not
#: depend on how many are asked for.
FIRST = min(HYBRID_DEPTH, RERANK_DEPTH)

BM25 = "bm25"
HYBRID_PREFIX = "hybrid:"
RUN_PREFIX = "run:"

#: Cuts the passages that BM25 searches where no encoder takes part.
LEXICAL_ENCODER = "hashing"

#: More tokens than any document has, and not more than SQLite can count.
NO_LIMIT = 2**62


class Ranking(NamedTuple):
    """What a system answers to all queries of a set."""

    run: Run
    seconds: float  #: to index the documents and answer the queries; not the loading of the model


class Collection:
    """A retrieval set with the indexes in which its documents are searched.

    Args:
        retrieval: the documents, unless `index` has them; the queries and judgements.
        index: is searched as it stands. None makes a temporary index for each encoder.
        whole_documents: whether temporary indexes keep each document as one passage, of which an
            encoder reads the beginning, as in the published evaluations.
    """

    def __init__(
        self,
        retrieval: RetrievalSet,
        index: Index | None = None,
        *,
        whole_documents: bool = False,
    ) -> None:
        self.retrieval = retrieval
        self.whole_documents = whole_documents
        self._index = index
        self._made: dict[str, tuple[Index, float]] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def index(self, encoder: Encoder | None) -> tuple[Index, float]:
        """The index in which an encoder's vectors are, and the seconds that it took to make.

        Raises:
            ArgumentError: no index stands, and there is no encoder to make one.
        """
        if self._index is not None:
            return self._index, 0.0
        if encoder is None:
            raise CombinationError("the systems are those of an index; name it")
        if encoder.fingerprint not in self._made:
            started = time.perf_counter()
            index = self._new_index(encoder)
            self._made[encoder.fingerprint] = index, time.perf_counter() - started
        return self._made[encoder.fingerprint]

    def _new_index(self, encoder: Encoder) -> Index:
        folder = self._closing.enter_context(TemporaryDirectory(prefix="semsearch-eval-"))
        used = Uncut(encoder) if self.whole_documents else encoder
        index = self._closing.enter_context(Index.create(Path(folder) / "index", used))
        # By falling id: of equal scores an index finds first what came first, and trec_eval takes
        # the greater id first.
        documents = self.retrieval.documents
        index.add(
            Document(name, documents[name])
            for name in sorted(documents, reverse=True)
            if documents[name].strip()
        )
        return index


class Ranker(Protocol):
    """A system that ranks the documents of a collection for each of its queries."""

    @property
    def spec(self) -> str:
        """What it is called."""

    @property
    def precision(self) -> str | None:
        """In which numbers it computes; None for words and for runs from a file."""

    def rank(self, collection: Collection) -> Ranking:
        """Its best documents for each query, with scores."""


class System(NamedTuple):
    """What a system's name says: ``bm25``, ``NAME``, ``hybrid:NAME`` or ``run:FILE``, reranked."""

    mode: SearchMode
    name: str | None  #: of an encoder or an embedding space; None for words alone
    reranker: str | None
    run: Path | None = None  #: a file whose ranking it is

    @classmethod
    def parsed(cls, spec: str) -> Self:
        """The parts of a name.

        Raises:
            ArgumentError: a cross-encoder alone, which finds nothing by itself.
        """
        if spec.startswith(CROSS_ENCODER_PREFIX):
            raise CombinationError(f"a cross-encoder reranks what another finds: ENCODER+{spec}")
        first, _, model = spec.partition(f"+{CROSS_ENCODER_PREFIX}")
        reranker = model or None
        if first == BM25:
            return cls(SearchMode.BM25, None, reranker)
        if first.startswith(RUN_PREFIX):
            return cls(SearchMode.BM25, None, reranker, Path(first.removeprefix(RUN_PREFIX)))
        if first.startswith(HYBRID_PREFIX):
            return cls(SearchMode.HYBRID, first.removeprefix(HYBRID_PREFIX), reranker)
        return cls(SearchMode.SEMANTIC, first, reranker)


class IndexRanker:
    """An index searched in one of its ways, by the retriever that `semsearch query` uses.

    Args:
        spec: what it is called.
        mode: by meaning, by words, or both.
        encoder: that of the space; None for words in an index that stands.
        space: the name of the embedding space of an index that stands; None takes the first.
        reranker: scores the first documents again; the ranking ends behind them.
        fusion: how hybrid search makes one ranking of two.
    """

    def __init__(
        self,
        spec: str,
        mode: SearchMode,
        encoder: Encoder | None,
        *,
        space: str | None = None,
        reranker: Reranker | None = None,
        fusion: Fusion | str = Fusion.ZSCORES,
    ) -> None:
        self.spec = spec
        self._fusion = fusion
        self._mode = mode
        self._encoder = encoder
        self._space = space
        self._reranker = reranker

    @property
    def precision(self) -> str | None:
        """That of the encoder and of the reranker, each once: ``fp32``, or ``int8+bf16``."""
        found = []
        if self._encoder is not None and self._mode is not SearchMode.BM25:
            found.append(computed_precision(self._encoder))
        if self._reranker is not None:
            found.append(self._reranker.precision)
        return "+".join(dict.fromkeys(filter(None, found))) or None

    def rank(self, collection: Collection) -> Ranking:
        """The first documents that the index finds for each query."""
        index, seconds = collection.index(self._encoder)
        queries = collection.retrieval.queries
        is_whole = self._mode is not SearchMode.HYBRID and self._reranker is None
        started = time.perf_counter()
        answers = Retriever(index, self._space).search_many(
            list(queries.values()),
            DEPTH if is_whole else FIRST,
            mode=self._mode,
            fusion=self._fusion,
            rerank=self._reranker,
        )
        run = {
            name: {hit.document_id: hit.score for hit in hits}
            for name, hits in zip(queries, answers, strict=True)
        }
        return Ranking(run, seconds + time.perf_counter() - started)


class RecordedRanker:
    """A run that some system has written in TREC's format, as it is or reranked."""

    def __init__(self, spec: str, file: Path, reranker: Reranker | None = None) -> None:
        self.spec = spec
        self.precision = None if reranker is None else reranker.precision
        self._file = file
        self._reranker = reranker

    def rank(self, collection: Collection) -> Ranking:
        """What the file says of the set's queries; a query that it lacks has found nothing."""
        retrieval = collection.retrieval
        recorded = read_run(self._file)
        if not recorded.keys() & retrieval.queries.keys():
            raise DatasetError(f"{self._file}: none of its queries is in {retrieval.name}")
        run = {name: recorded.get(name, {}) for name in retrieval.queries}
        if self._reranker is None:
            return Ranking(run, float("nan"))
        if not retrieval.documents:
            raise CombinationError(f"{self.spec}: a run is reranked where --data has the documents")
        started = time.perf_counter()
        for name, query in retrieval.queries.items():
            hits = _hits(query, run[name], retrieval.documents)
            hits = reranked(hits, self._reranker, RERANK_DEPTH)
            run[name] = {hit.document_id: hit.score for hit in hits}
        return Ranking(run, time.perf_counter() - started)


class Uncut(EncodesSentences):
    """An encoder in whose index each document is one passage."""

    max_document_tokens = NO_LIMIT

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.spec = encoder.spec
        self.fingerprint = encoder.fingerprint
        self.dimension = encoder.dimension
        self.max_query_tokens = encoder.max_query_tokens

    def description(self) -> Mapping[str, Any]:
        """The encoder's."""
        return self._encoder.description()

    def token_spans(self, text: str) -> TokenSpans:
        """The encoder's."""
        return self._encoder.token_spans(text)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """The encoder's vectors."""
        return self._encoder.encode_queries(texts)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """The encoder's vectors, of as much of each text as it reads."""
        return self._encoder.encode_documents(texts)


def load_rankers(
    specs: Sequence[str],
    encoders: dict[str, Encoder] | None = None,
    precision: Precision | str = Precision.FP32,
) -> list[Ranker]:
    """The systems of those names, each on an index that is made for the evaluation.

    BM25 searches the passages of the first encoder's index.

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
    at_hand = {} if encoders is None else encoders
    systems = _parsed(specs)
    searching = [system for system in systems.values() if system.run is None]
    for system in searching:
        if system.name is not None and system.name not in at_hand:
            at_hand[system.name] = load_encoder(system.name, precision=precision)
    named = [at_hand[system.name] for system in searching if system.name is not None]
    if searching and not named:
        named = [load_encoder(LEXICAL_ENCODER)]

    def searched(spec: str, system: System, reranker: Reranker | None) -> Ranker:
        encoder = named[0] if system.name is None else at_hand[system.name]
        return IndexRanker(spec, system.mode, encoder, reranker=reranker)

    return _rankers(systems, precision, searched)


def index_rankers(
    index: Index, specs: Sequence[str] = (), precision: Precision | str = Precision.FP32
) -> list[Ranker]:
    """The ways in which an index that stands is searched.

    Args:
        index: what is searched.
        specs: ``SPACE`` (the name of an embedding space), ``bm25``, ``hybrid:SPACE``,
            ``SYSTEM+cross-encoder:MODEL`` or ``run:FILE``; none means all spaces, and
            ``bm25`` where the index has it.
        precision: in which numbers cross-encoders compute.

    Raises:
        ArgumentError: a cross-encoder alone, which ranks nothing by itself.
        SpaceError: the index has no such space, or it is not complete yet.
        EncoderError: a model cannot be loaded.
    """
    listed = check_texts("specs", specs) or index.systems()

    def searched(spec: str, system: System, reranker: Reranker | None) -> Ranker:
        space = index.complete_space(system.name)
        encoder = None if system.name is None else index.encoder(space)
        return IndexRanker(spec, system.mode, encoder, space=system.name, reranker=reranker)

    return _rankers(_parsed(listed), precision, searched)


def _parsed(specs: Sequence[str]) -> dict[str, System]:
    return {spec: System.parsed(spec) for spec in check_texts("specs", specs)}


def _rankers(
    systems: Mapping[str, System],
    precision: Precision | str,
    searched: Callable[[str, System, Reranker | None], Ranker],
) -> list[Ranker]:
    """The systems with their cross-encoders, each of which is loaded once."""
    names = dict.fromkeys(system.reranker for system in systems.values())
    rerankers = {
        name: None if name is None else load_reranker(name, precision=precision) for name in names
    }
    return [
        searched(spec, system, rerankers[system.reranker])
        if system.run is None
        else RecordedRanker(spec, system.run, rerankers[system.reranker])
        for spec, system in systems.items()
    ]


def _hits(query: str, found: Mapping[str, float], documents: Mapping[str, str]) -> Hits:
    """The first documents of a run, whole; those that the set lacks cannot be read by anybody."""
    known = [name for name in found if name in documents][:RERANK_DEPTH]
    hits = Hits(query)
    for rank, name in enumerate(known, start=1):
        text = documents[name]
        hits.append(Hit(rank, found[name], name, Chunk(rank, name, 0, len(text), text), text, {}))
    return hits
