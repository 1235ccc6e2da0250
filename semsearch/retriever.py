"""Searching an index: text in, hits out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from sqlalchemy import Connection

from semsearch.errors import ArgumentError
from semsearch.fusion import reciprocal_rank_fusion
from semsearch.index import Index
from semsearch.index.search import (
    Candidate,
    fetch_hits,
    search_vectors,
    search_words,
    where_clause,
)
from semsearch.index.store import closed_on_error, get_setting
from semsearch.index.view import SpaceView
from semsearch.protocols import Encoder, Matrix, Reranker
from semsearch.records import Hits, SearchMode

__all__ = ["Retriever"]

#: How many documents each side of a hybrid search brings, for each one that is asked for.
HYBRID_DEPTH = 10

#: How many documents a cross-encoder reads again, or as many as are asked for.
RERANK_DEPTH = 100

#: What Python makes of bytes that it cannot decode.
_SURROGATE = re.compile("[\ud800-\udfff]")


class Retriever:
    """Searches one embedding space of an index. The model is loaded at the first semantic query.

    Several threads may search with one retriever; each search sees one committed state.

    Args:
        index: where to search.
        space: the name of the embedding space; None takes the first.

    Raises:
        SpaceError: there is no such space, or it is not complete yet.
    """

    def __init__(self, index: Index, space: str | None = None) -> None:
        self.index = index
        self.space = index.complete_space(space)
        self._view: tuple[int, SpaceView] | None = None

    @classmethod
    def open(
        cls, path: str | Path, space: str | None = None, encoders: Iterable[Encoder] = ()
    ) -> Self:
        """A retriever on the index in a directory.

        Args:
            path: the index.
            space: the name of the embedding space; None takes the first.
            encoders: encoders at hand, used instead of loading the same ones again.

        Raises:
            IndexNotFoundError: there is no index.
            SpaceError: it has no such space.
        """
        index = Index.open(path, encoders)
        with closed_on_error(index):
            return cls(index, space)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the index."""
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
            ArgumentError: the text is empty or `k` is below 1.
            FilterError: the filter cannot be parsed or names an unknown field.
        """
        return self.search_many([text], k, where=where, mode=mode, rerank=rerank)[0]

    def search_many(
        self,
        texts: Sequence[str],
        k: int = 10,
        *,
        where: str | None = None,
        mode: SearchMode | str = SearchMode.SEMANTIC,
        rerank: Reranker | None = None,
    ) -> list[Hits]:
        """The answers to several texts, in their order, encoded together. See `search`."""
        mode = _mode(mode)
        _check(texts, k)
        by_meaning = mode is not SearchMode.BM25 and bool(texts)
        if where is not None or self._view is None:
            self._look_ahead(where, by_meaning=by_meaning)
        vectors = None
        if by_meaning:
            vectors = self.index.encoder(self.space).encode_queries(texts)
        found = k if rerank is None else max(k, RERANK_DEPTH)
        try:
            answers = self._answers(texts, vectors, found, where, mode)
        except FileNotFoundError:  # a newer snapshot has replaced that of the state just read
            answers = self._answers(texts, vectors, found, where, mode, must_have=True)
        return answers if rerank is None else [_reranked(hits, rerank, k) for hits in answers]

    def _look_ahead(self, where: str | None, *, by_meaning: bool) -> None:
        """Tell of a wrong filter before a model is loaded; read vectors while one is loading."""
        with self.index.read() as connection:
            if where is not None:
                where_clause(connection, where)
            if by_meaning:
                with suppress(FileNotFoundError):
                    self._current_view(connection, must_have=False)

    def _answers(
        self,
        texts: Sequence[str],
        vectors: Matrix | None,
        k: int,
        where: str | None,
        mode: SearchMode,
        *,
        must_have: bool = False,
    ) -> list[Hits]:
        """The answers of one committed state."""
        with self.index.read() as connection:
            clause = None if where is None else where_clause(connection, where)
            depth = k * HYBRID_DEPTH if mode is SearchMode.HYBRID else k
            rankings = []
            if vectors is not None:
                view = self._current_view(connection, must_have=must_have)
                rankings.append(search_vectors(connection, view, vectors, depth, clause))
            if mode is not SearchMode.SEMANTIC:
                rankings.append([search_words(connection, text, depth, clause) for text in texts])
            answers = zip(texts, *rankings, strict=True)
            return [fetch_hits(connection, text, _fused(ranked)[:k]) for text, *ranked in answers]

    def _current_view(self, connection: Connection, *, must_have: bool) -> SpaceView:
        """The vectors as they are in the state that `connection` reads, kept until it changes."""
        revision = get_setting(connection, "revision", 0)
        current = self._view
        if current is None or current[0] != revision:
            view = SpaceView.load(connection, self.index.path, self.space, must_have=must_have)
            current = self._view = (revision, view)
        return current[1]


def _fused(rankings: Sequence[Sequence[Candidate]]) -> Sequence[Candidate]:
    if len(rankings) == 1:
        return rankings[0]
    chunk = {item.document_id: item.chunk_id for ranking in reversed(rankings) for item in ranking}
    fused = reciprocal_rank_fusion([[item.document_id for item in one] for one in rankings])
    return [Candidate(document, chunk[document], score) for document, score in fused]


def _reranked(hits: Hits, reranker: Reranker, k: int) -> Hits:
    """The `k` best by another score; of equal ones, the one that stood first."""
    scores = reranker.score(hits.query, [hit.text for hit in hits]).tolist()
    scored = sorted(zip(scores, hits, strict=True), key=lambda pair: -pair[0])[:k]
    ranked = enumerate(scored, start=1)
    return Hits(hits.query, (hit._replace(rank=n, score=score) for n, (score, hit) in ranked))


def _mode(mode: SearchMode | str) -> SearchMode:
    try:
        return SearchMode(mode)
    except ValueError:
        choices = ", ".join(choice.value for choice in SearchMode)
        raise ArgumentError(f"no search mode '{mode}' (modes: {choices})") from None


def _check(texts: Sequence[str], k: int) -> None:
    if k < 1:
        raise ArgumentError(f"k must be at least 1, not {k}")
    if isinstance(texts, str):
        raise ArgumentError("search_many takes a list of texts; for one text there is search")
    for text in texts:
        if not text.strip():
            raise ArgumentError("the query is empty")
        if _SURROGATE.search(text):
            raise ArgumentError("the query holds a byte that is not UTF-8, or half a character")
