"""The passages of an index with their vectors, for whoever looks at a collection as a whole."""

from __future__ import annotations

from typing import NamedTuple

import numpy
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, select

from semsearch.index.schema import chunks, documents
from semsearch.index.spaces import Space
from semsearch.index.stored import DamageError
from semsearch.index.view import vector_blocks
from semsearch.protocols import Matrix

__all__ = ["Passages", "read_passages"]


class Passages(NamedTuple):
    """Passages as columns, in the order in which they came into the index."""

    document_ids: list[str]  #: what the corpus calls their documents
    documents: NDArray[numpy.int64]  #: the same as numbers
    texts: list[str]
    vectors: Matrix


def read_passages(
    connection: Connection, space: Space, clause: ColumnElement[bool] | None = None
) -> Passages:
    """The passages whose documents meet a condition; all without one."""
    query = (
        select(chunks.c.chunk_id, chunks.c.document_id, documents.c.external_id, chunks.c.text)
        .join(documents, documents.c.document_id == chunks.c.document_id)
        .order_by(chunks.c.chunk_id)
    )
    if clause is not None:
        query = query.where(clause)
    rows = connection.execute(query).all()
    chunk_ids = numpy.array([row.chunk_id for row in rows], numpy.int64)
    vectors = numpy.empty((len(rows), space.dimension), numpy.float32)
    filled = 0
    for ids, block in vector_blocks(connection, space):
        if clause is not None:
            wanted = numpy.isin(ids, chunk_ids)
            ids, block = ids[wanted], block[wanted]
        if not numpy.array_equal(ids, chunk_ids[filled : filled + len(ids)]):
            break
        vectors[filled : filled + len(ids)] = block
        filled += len(ids)
    if filled != len(rows):
        raise DamageError("the passages and their vectors are not the same")
    return Passages(
        [row.external_id for row in rows],
        numpy.array([row.document_id for row in rows], numpy.int64),
        [row.text for row in rows],
        vectors,
    )
