"""The texts of documents: their passages, and the characters between them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import groupby

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, select, update

from semsearch.records import Document
from semsearch.stores.local.schema import DamageError, chunks, documents, stored_json, values
from semsearch.stores.protocol import joined, text_hash

DOCUMENTS_AT_ONCE = 1024

_PASSAGES = (
    select(documents, chunks.c.start, chunks.c.end, chunks.c.text)
    .join(chunks, chunks.c.document_id == documents.c.document_id)
    .order_by(documents.c.document_id, chunks.c.chunk_id)
)
_SET_REST = (
    update(documents).where(documents.c.document_id == bindparam("id")).values(rest=bindparam("of"))
)

logger = logging.getLogger(__name__)


def spans_of(connection: Connection, ids: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """The character ranges of the passages of documents, by external id."""
    rows = connection.execute(
        select(documents.c.external_id, chunks.c.start, chunks.c.end)
        .join(chunks, chunks.c.document_id == documents.c.document_id)
        .where(documents.c.external_id.in_(values(ids)))
        .order_by(chunks.c.chunk_id)
    )
    spans: dict[str, list[tuple[int, int]]] = {}
    for external_id, start, end in rows:
        spans.setdefault(external_id, []).append((start, end))
    return spans


def whole_documents(connection: Connection, condition: ColumnElement[bool]) -> dict[int, Document]:
    """Documents as they were added, by number.

    For documents of older formats whose characters between passages are unknown, spaces are
    inserted, with a warning.

    Raises:
        DamageError: a text does not have the stored hash.
    """
    found: dict[int, Document] = {}
    unknown = 0
    for rows in _by_document(connection, _PASSAGES.where(condition)):
        first = rows[0]
        text = _text(rows, first.rest)
        if first.rest is None:
            unknown += 1
        elif text_hash(text) != first.text_hash:
            raise DamageError(f"the text of document '{first.external_id}'")
        metadata = stored_json(first.metadata, dict)
        found[first.document_id] = Document(first.external_id, text, first.title, metadata)
    if unknown:
        logger.warning(
            "the white space of %d document%s is unknown; index %s again",
            unknown,
            *(("s", "them") if unknown > 1 else ("", "it")),
        )
    return found


def wrong_texts(connection: Connection) -> Iterator[tuple[int, bool]]:
    """The documents whose text does not have the stored hash or whose passages are misplaced in it.

    Yields:
        The number of a document, and whether its text is right, but not the ranges of passages.
    """
    for rows in _by_document(connection, _PASSAGES.where(documents.c.rest.is_not(None))):
        text = _text(rows, rows[0].rest)
        if text_hash(text) != rows[0].text_hash:
            yield rows[0].document_id, False
        elif any(text[row.start : row.end] != row.text for row in rows):
            yield rows[0].document_id, True


def guess_rests(connection: Connection) -> None:
    """Restore the characters between passages if they are all spaces or all line breaks."""
    last = 0
    while True:
        numbers = (
            select(documents.c.document_id)
            .where(documents.c.document_id > last)
            .order_by(documents.c.document_id)
            .limit(DOCUMENTS_AT_ONCE)
        )
        found = []
        groups = list(
            _by_document(connection, _PASSAGES.where(documents.c.document_id.in_(numbers)))
        )
        for rows in groups:
            size = rows[-1].end - sum(row.end - row.start for row in rows)
            for rest in (" " * size, "\n" * size):
                if text_hash(_text(rows, rest)) == rows[0].text_hash:
                    found.append({"id": rows[0].document_id, "of": rest})
                    break
        if found:
            connection.execute(_SET_REST, found)
        if not groups:
            return
        last = groups[-1][0].document_id


def _by_document(
    connection: Connection, query: Select[tuple[object, ...]]
) -> Iterator[list[Row[tuple[object, ...]]]]:
    rows = connection.execute(query)
    return (list(group) for _, group in groupby(rows, key=lambda row: row.document_id))


def _text(rows: Sequence[Row[tuple[object, ...]]], rest: str | None) -> str:
    passages = [(row.start, row.end, row.text) for row in rows]
    if rest is None:
        rest = " " * (passages[-1][1] - sum(end - start for start, end, _ in passages))
    return joined(passages, rest)
