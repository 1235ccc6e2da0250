"""Searching an index: text in, hits out."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, Self

import numpy

from semsearch.arguments import (
    check_choice,
    check_items,
    check_text,
    check_whole_number,
    shown,
)
from semsearch.closing import closed_on_error
from semsearch.errors import (
    ArgumentError,
    EncoderError,
    IndexChangedError,
    IndexClosedError,
    NoVectorError,
)
from semsearch.fusion import reciprocal_rank_fusion
from semsearch.index import Index
from semsearch.protocols import Encoder, Matrix, Reranker
from semsearch.records import Hit, Hits, SearchMode
from semsearch.stores.protocol import Candidate, StoreState
from semsearch.vectors import check_unit

__all__ = ["Retriever"]

logger = logging.getLogger(__name__)

#: How many documents each side of a hybrid search brings, for each one that is asked for.
HYBRID_DEPTH = 10

#: How many documents a cross-encoder reads again, or as many as are asked for.
RERANK_DEPTH = 100

#: What Python makes of bytes that it cannot decode.
_SURROGATE = re.compile("[\ud800-\udfff]")


class Retriever:
    """Searches one embedding space of an index. The model is loaded at the first semantic query.

    Several threads may search with one retriever; each search sees one committed state.

    Closing it closes the index only when `Retriever.open` opened that: who opened closes.

    Args:
        index: where to search; it stays its owner's to close.
        space: the name of the embedding space; None takes the first.

    Raises:
        ArgumentError: `index` is no Index.
        SpaceError: there is no such space, or it is not complete yet.
    """

    def __init__(self, index: Index, space: str | None = None) -> None:
        if not isinstance(index, Index):
            raise ArgumentError(
                f"a retriever takes an Index, not {shown(index)}; for a path: Retriever.open(path)"
            )
        self.index = index
        self.space = index.complete_space(space)
        self._is_prepared = False
        self._owns_index = False
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | Path,
        space: str | None = None,
        encoders: Encoder | Iterable[Encoder] = (),
    ) -> Self:
        """A retriever on the index in a directory; closing it closes that.

        Args:
            path: the index.
            space: the name of the embedding space; None takes the first.
            encoders: one or several at hand, used instead of loading the same ones again.

        Raises:
            ArgumentError: one of these is of another type.
            IndexNotFoundError: there is no index.
            SpaceError: it has no such space.
        """
        index = Index.open(path, encoders)
        with closed_on_error(index):
            retriever = cls(index, space)
        retriever._owns_index = True
        return retriever

    @property
    def closed(self) -> bool:
        """Whether it or its index was closed; then searching raises."""
        return self._closed or self.index.closed

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"<Retriever {str(self.index.path)!r}, space {self.space.name!r}{closed}>"

    def __reduce__(self) -> NoReturn:
        raise ArgumentError(
            "a retriever cannot be pickled or copied; open it where it is needed: "
            f"Retriever.open({str(self.index.path)!r})"
        )

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End its use, and that of the index if `Retriever.open` opened it."""
        self._closed = True
        if self._owns_index:
            self.index.close()

    def search(
        self,
        text: str,
        k: int = 10,
        *,
        where: str | None = None,
        mode: SearchMode | str = SearchMode.SEMANTIC,
        rerank: Reranker | None = None,
    ) -> Hits:
        """The `k` best documents for a text, each by its best passage, best first.

        Args:
            text: the query.
            k: how many documents; fewer come only when fewer match.
            where: a filter over metadata, such as ``year >= 1990 and genres = 'Drama'``.
            mode: by meaning, by words, or both.
            rerank: scores the passages of the first 100 documents again; the score of a hit is
                then its.

        Raises:
            ArgumentError: the text is empty, `k` is below 1, or one of these is of another type.
            FilterError: the filter cannot be parsed, names an unknown field, or compares a field
                with what it never holds.
            IndexClosedError: the retriever or its index was closed.
        """
        check_text("the query", text)
        return self.search_many([text], k, where=where, mode=mode, rerank=rerank)[0]

    def search_many(
        self,
        texts: Iterable[str],
        k: int = 10,
        *,
        where: str | None = None,
        mode: SearchMode | str = SearchMode.SEMANTIC,
        rerank: Reranker | None = None,
    ) -> list[Hits]:
        """The answers to several texts, in their order, encoded together. See `search`."""
        self._check_open()
        mode = check_choice("mode", SearchMode, mode)
        k = check_whole_number("k", k, 1)
        texts = _checked_texts(texts)
        if where is not None:
            check_text("where", where)
        if rerank is not None and not callable(getattr(rerank, "score", None)):
            raise ArgumentError(
                f"rerank must be a reranker (load_reranker returns one), not {shown(rerank)}"
            )
        by_meaning = mode is not SearchMode.BM25 and bool(texts)
        if where is not None or (by_meaning and not self._is_prepared):
            self._look_ahead(where, by_meaning=by_meaning)
        vectors = None
        if by_meaning:
            vectors = self._encoded(texts)
        found = k if rerank is None else max(k, RERANK_DEPTH)
        try:
            answers = self._answers(texts, vectors, found, where, mode)
        except IndexChangedError:  # written since; a new state is there
            answers = self._answers(texts, vectors, found, where, mode)
        return answers if rerank is None else [_reranked(hits, rerank, k) for hits in answers]

    def _check_open(self) -> None:
        if self.closed:
            raise IndexClosedError(
                f"the retriever of {self.index.path} is closed; open it again: Retriever.open(…)"
            )

    def _encoded(self, texts: Sequence[str]) -> Matrix:
        encoder = self.index.encoder(self.space)
        _warn_of_cut_queries(encoder, texts)
        try:
            return check_unit(encoder.encode_queries(texts), encoder.spec)
        except NoVectorError as error:
            query = texts[error.rows[0]]
            raise EncoderError(
                f"encoder '{encoder.spec}' returns no vector (but NaN or zero) for the query "
                f"{shown(query)}; --mode bm25 needs none"
            ) from error

    def _look_ahead(self, where: str | None, *, by_meaning: bool) -> None:
        """Tell of a wrong filter before a model is loaded; read vectors while one is loading."""
        with suppress(IndexChangedError), self.index.read() as state:
            if where is not None:
                self.index.filter(state, where)
            if by_meaning:
                state.prepare(self.space)
                self._is_prepared = True

    def _answers(
        self,
        texts: Sequence[str],
        vectors: Matrix | None,
        k: int,
        where: str | None,
        mode: SearchMode,
    ) -> list[Hits]:
        """The answers of one committed state."""
        with self.index.read() as state:
            condition = None if where is None else self.index.filter(state, where)
            depth = k * HYBRID_DEPTH if mode is SearchMode.HYBRID else k
            rankings = []
            if vectors is not None:
                rankings.append(state.search_vectors(self.space, vectors, depth, condition))
            if mode is not SearchMode.SEMANTIC:
                rankings.append([state.search_words(text, depth, condition) for text in texts])
            if condition is not None and not any(any(ranking) for ranking in rankings):
                self.index.explain_no_match(state, condition)
            answers = zip(texts, *rankings, strict=True)
            return [_hits(state, text, _fused(ranked)[:k]) for text, *ranked in answers]


def _hits(state: StoreState, query: str, candidates: Sequence[Candidate]) -> Hits:
    """The candidates with their passages and metadata."""
    passages = state.fetch([candidate.chunk_id for candidate in candidates])
    hits = Hits(query)
    for rank, candidate in enumerate(candidates, start=1):
        chunk, metadata, title = passages[candidate.chunk_id]
        hits.append(
            Hit(rank, candidate.score, chunk.document_id, chunk, chunk.text, metadata, title)
        )
    return hits


def _fused(rankings: Sequence[Sequence[Candidate]]) -> Sequence[Candidate]:
    if len(rankings) == 1:
        return rankings[0]
    chunk = {item.document_id: item.chunk_id for ranking in reversed(rankings) for item in ranking}
    fused = reciprocal_rank_fusion([[item.document_id for item in one] for one in rankings])
    candidates = [Candidate(document, chunk[document], score) for document, score in fused]
    return sorted(candidates, key=lambda item: (-item.score, item.chunk_id))


def _reranked(hits: Hits, reranker: Reranker, k: int) -> Hits:
    """The `k` best by another score; of equal ones, the one that stood first."""
    found = numpy.asarray(reranker.score(hits.query, [hit.text for hit in hits]))
    if found.shape != (len(hits),) or found.dtype.kind not in "fiu" or numpy.isnan(found).any():
        raise ArgumentError(
            f"the reranker must return {len(hits)} numbers, one a passage, not {shown(found)}"
        )
    scored = sorted(zip(found.tolist(), hits, strict=True), key=lambda pair: -pair[0])[:k]
    ranked = enumerate(scored, start=1)
    return Hits(hits.query, (hit._replace(rank=n, score=score) for n, (score, hit) in ranked))


def _warn_of_cut_queries(encoder: Encoder, texts: Sequence[str]) -> None:
    """Report each query that the encoder does not read to its end."""
    limit = encoder.max_query_tokens
    if limit is None:
        return
    for text in texts:
        # A token is at least a byte: a query of so few need not be tokenised.
        if len(text) > limit // 4 and len(text.encode()) > limit:
            tokens = encoder.token_spans(text)
            if len(tokens) > limit:
                rest = text[tokens[limit][0] :]
                logger.warning(
                    "the query has %d tokens, of which %s reads the first %d; left out: %s",
                    len(tokens),
                    encoder.spec,
                    limit,
                    shown(rest),
                )


def _checked_texts(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise ArgumentError("search_many takes a list of texts; for one text there is search")
    listed = check_items("texts", texts, "strings")
    for text in listed:
        if not check_text("the query", text).strip():
            raise ArgumentError("the query is empty")
        if _SURROGATE.search(text):
            raise ArgumentError("the query holds a byte that is not UTF-8, or half a character")
    return listed
