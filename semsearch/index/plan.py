"""What a batch of documents changes in an index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, delete, select
from sqlalchemy.dialects.sqlite import insert

from semsearch.errors import BadRowError
from semsearch.index.schema import documents
from semsearch.index.values import values
from semsearch.records import Document

__all__ = ["Change", "Planned", "forget_seen", "mark_seen", "plan_batch", "seen", "text_hash"]

#: The documents that this run has read so far. A temporary table, which spills to disk, because
#: a corpus can have more ids than fit in memory.
seen = Table(
    "seen",
    MetaData(),
    Column("external_id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("repeats", Integer, nullable=False),  # later documents named by the same content
    prefixes=["TEMPORARY"],
)


class Change(Enum):
    """What a document is to an index."""

    ADDED = "added"
    CHANGED = "changed"
    METADATA_CHANGED = "metadata changed"
    UNCHANGED = "unchanged"


class Planned(NamedTuple):
    """A document of the corpus and what has to be done for it."""

    change: Change
    external_id: str
    document: Document
    metadata: str
    text_hash: str
    document_id: int | None  # its row, when the index has it


def text_hash(text: str) -> str:
    """What texts are recognised by: 128 bits of BLAKE2b, as hex digits."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def forget_seen(connection: Connection) -> None:
    """Begin a run: nothing of its corpus has been seen."""
    seen.create(connection, checkfirst=True)
    connection.execute(delete(seen))


def mark_seen(connection: Connection, ids: Iterable[str]) -> None:
    """Count documents as seen though they could not be read."""
    rows = [{"external_id": name, "source": "", "repeats": 0} for name in ids]
    if rows:
        connection.execute(insert(seen).on_conflict_do_nothing(), rows)


def plan_batch(
    connection: Connection,
    batch: Sequence[Document],
    on_bad_row: Callable[[BadRowError], None],
) -> list[Planned]:
    """Compare a batch with the index, by id and content.

    A document whose id this run has seen before goes to `on_bad_row`. One without an id is named
    by its text, further ones of the same text by a number on top of it.
    """
    named = _named(connection, batch, on_bad_row)
    ids = values([external_id for external_id, _ in named])
    rows = connection.execute(select(documents).where(documents.c.external_id.in_(ids)))
    known = {row.external_id: row for row in rows}
    plans = []
    for external_id, document in named:
        try:
            metadata = _metadata_json(document)
        except (TypeError, ValueError) as error:
            reason = f"the metadata of '{external_id}' is no longer JSON: {error}"
            on_bad_row(BadRowError(document.source, reason, external_id))
            continue
        digest = text_hash(document.text)
        row = known.get(external_id)
        if row is None:
            change = Change.ADDED
        elif row.text_hash != digest:
            change = Change.CHANGED
        elif (row.title, row.metadata) != (document.title, metadata):
            change = Change.METADATA_CHANGED
        else:
            change = Change.UNCHANGED
        document_id = row.document_id if row else None
        plans.append(Planned(change, external_id, document, metadata, digest, document_id))
    return plans


def _metadata_json(document: Document) -> str:
    """Metadata as it is stored; a document has checked it, but the mapping can be changed since."""
    written = json.dumps(
        document.metadata, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    written.encode()  # half a surrogate pair has no place in a database
    return written


def _named(
    connection: Connection,
    batch: Sequence[Document],
    on_bad_row: Callable[[BadRowError], None],
) -> list[tuple[str, Document]]:
    """The usable documents with their ids, which are from now on seen."""
    wanted = [document.id or _content_id(document) for document in batch]
    rows = connection.execute(select(seen).where(seen.c.external_id.in_(values(wanted)))).all()
    sources = {row.external_id: row.source for row in rows}
    repeats = {row.external_id: row.repeats for row in rows}
    named = []
    for external_id, document in zip(wanted, batch, strict=True):
        if external_id in sources and document.id is not None:
            first = f" (first in {sources[external_id]})" if sources[external_id] else ""
            on_bad_row(BadRowError(document.source, f"duplicate id '{external_id}'{first}"))
            continue
        if external_id in sources:
            repeats[external_id] = repeats.get(external_id, 0) + 1
            external_id = f"{external_id}-{repeats[external_id] + 1}"
        sources[external_id] = document.source
        named.append((external_id, document))
    if sources:
        statement = insert(seen)
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=["external_id"], set_={"repeats": statement.excluded.repeats}
            ),
            [
                {"external_id": name, "source": source, "repeats": repeats.get(name, 0)}
                for name, source in sources.items()
            ],
        )
    return named


def _content_id(document: Document) -> str:
    return hashlib.sha256(document.text.encode()).hexdigest()[:16]
