"""Which documents answer: by vectors, by words, under a filter, each by its best chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    bindparam,
    literal_column,
    select,
    table,
)

from semsearch.index.schema import chunks, documents
from semsearch.index.snapshot import Ids
from semsearch.index.stored import DamageError, StoredFloat, stored_json
from semsearch.index.values import values_later
from semsearch.index.view import SpaceView
from semsearch.lexical import match_expression
from semsearch.protocols import Matrix
from semsearch.records import Chunk, Hit, Hits

__all__ = [
    "Candidate",
    "fetch_hits",
    "matching",
    "search_vectors",
    "search_words",
]

# Built once: building a statement takes SQLAlchemy longer than running it.
_OWNERS = select(chunks.c.chunk_id, chunks.c.document_id).where(
    chunks.c.chunk_id.in_(values_later("chunk_ids"))
)
_PASSAGES = (
    select(
        chunks.c.chunk_id,
        chunks.c.start,
        chunks.c.end,
        chunks.c.text,
        documents.c.external_id,
        documents.c.title,
        documents.c.metadata,
    )
    .join(documents, documents.c.document_id == chunks.c.document_id)
    .where(chunks.c.chunk_id.in_(values_later("chunk_ids")))
)


class Candidate(NamedTuple):
    """A document, by its best chunk."""

    document_id: int
    chunk_id: int
    score: float


def matching(connection: Connection, clause: ColumnElement[bool]) -> Ids:
    """The sorted ids of all chunks whose document meets a condition."""
    query = (
        select(chunks.c.chunk_id)
        .join(documents, documents.c.document_id == chunks.c.document_id)
        .where(clause)
        .order_by(chunks.c.chunk_id)
    )
    return numpy.array(connection.scalars(query).all(), numpy.int64)


def search_vectors(
    connection: Connection,
    view: SpaceView,
    queries: Matrix,
    k: int,
    clause: ColumnElement[bool] | None = None,
) -> list[list[Candidate]]:
    """The `k` best documents of each query (fewer only when fewer match), best first."""
    allowed = None if clause is None else matching(connection, clause)
    found: list[list[Candidate]] = [[] for _ in queries]
    open_queries = numpy.arange(len(queries))
    reach = len(view) if allowed is None else len(allowed)
    n = min(2 * k + 8, reach)
    while len(open_queries) and n:
        scores, ids = view.search(queries[open_queries], n, allowed)
        owners = _owners(connection, numpy.unique(ids))
        for query, row_scores, row_ids in zip(open_queries, scores, ids, strict=True):
            found[query] = _best_by_document(row_scores[:n], row_ids[:n], owners)[:k]
        if n == reach:
            break
        # Several chunks of one document, or deleted ones, took places: look further.
        open_queries = numpy.array([query for query in open_queries if len(found[query]) < k])
        n = min(4 * n, reach)
    return found


def search_words(
    connection: Connection, text: str, k: int, clause: ColumnElement[bool] | None = None
) -> list[Candidate]:
    """The `k` best documents by BM25 over the words of their chunks, best first.

    The score is SQLite's `bm25` with its sign turned, so that higher is better (k1 = 1.2,
    b = 0.75; Robertson & Zaragoza 2009).
    """
    match = match_expression(text)
    if match is None:
        return []
    index = table("chunks_fts")
    hits = (
        select(
            literal_column("rowid", Integer).label("chunk_id"),
            (-literal_column("rank", StoredFloat)).label("score"),
        )
        .select_from(index)
        .where(literal_column("chunks_fts").op("MATCH")(bindparam("match", match)))
        .subquery()
    )
    query = (
        select(chunks.c.document_id, hits.c.chunk_id, hits.c.score)
        .join(chunks, chunks.c.chunk_id == hits.c.chunk_id)
        .order_by(hits.c.score.desc(), hits.c.chunk_id)
    )
    if clause is not None:
        query = query.join(documents, documents.c.document_id == chunks.c.document_id).where(clause)
    best: dict[int, Candidate] = {}
    for row in connection.execute(query):
        best.setdefault(row.document_id, Candidate(*row))
        if len(best) == k:
            break
    return list(best.values())


def fetch_hits(connection: Connection, query: str, candidates: Sequence[Candidate]) -> Hits:
    """The candidates with their passages and metadata."""
    chunk_ids = [candidate.chunk_id for candidate in candidates]
    rows = connection.execute(_PASSAGES, {"chunk_ids": chunk_ids})
    by_chunk = {row.chunk_id: row for row in rows}
    hits = Hits(query)
    for rank, candidate in enumerate(candidates, start=1):
        row = by_chunk.get(candidate.chunk_id)
        if row is None:
            raise DamageError(f"passage {candidate.chunk_id} has no document")
        chunk = Chunk(row.chunk_id, row.external_id, row.start, row.end, row.text)
        metadata = stored_json(row.metadata, dict)
        hits.append(
            Hit(rank, candidate.score, row.external_id, chunk, row.text, metadata, row.title)
        )
    return hits


def _owners(connection: Connection, chunk_ids: Ids) -> dict[int, int]:
    """The document of each chunk that the database still has."""
    rows = connection.execute(_OWNERS, {"chunk_ids": chunk_ids.tolist()})
    return {row.chunk_id: row.document_id for row in rows}


def _best_by_document(scores: Matrix, ids: Ids, owners: dict[int, int]) -> list[Candidate]:
    best: dict[int, Candidate] = {}
    for score, chunk_id in zip(scores.tolist(), ids.tolist(), strict=True):
        document_id = owners.get(chunk_id)
        if document_id is not None and document_id not in best:
            best[document_id] = Candidate(document_id, chunk_id, score)
    return list(best.values())
