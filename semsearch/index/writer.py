"""Writing an index: documents in, one transaction a batch, each text encoded once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, literal, select, text
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from semsearch.corpus.chunking import chunk_spans
from semsearch.errors import ArgumentError, BadRowError, refuse
from semsearch.index.folding import fold
from semsearch.index.plan import Change, Planned, forget_seen, plan_batch, seen, text_hash
from semsearch.index.schema import chunks, chunks_fts, documents, fields, vectors
from semsearch.index.search import where_clause
from semsearch.index.spaces import Space
from semsearch.index.store import get_setting, put_setting
from semsearch.index.values import values
from semsearch.protocols import Encoder
from semsearch.records import Document

__all__ = ["IndexWriter", "Summary"]

BATCH_DOCUMENTS = 256
BATCH_CHARACTERS = 1_000_000

#: The highest id that a chunk ever had, deleted ones included.
LAST_CHUNK_ID = text("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run has done and committed."""

    added: int = 0
    changed: int = 0
    metadata_changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0  #: passages written
    encoded: int = 0  #: texts that went through an encoder
    seconds: float = 0.0

    @property
    def documents(self) -> int:
        """How many documents of the corpus are in the index now."""
        return self.added + self.changed + self.metadata_changed + self.unchanged


class _Passage(NamedTuple):
    start: int
    end: int
    text: str
    text_hash: str


#: A stored vector by space and text.
_Vectors = dict[tuple[int, str], bytes]


class IndexWriter:
    """Puts documents into an index and takes them out. `Index.writer` makes one.

    Args:
        connection: its transactions begin with the write lock.
        directory: where snapshots go.
        spaces: the index's spaces with their encoders; the first one's decides how texts are cut.
        on_bad_row: told of each document that cannot be used; the default raises.
        on_batch: told after each commit what the run has done so far.
    """

    def __init__(
        self,
        connection: Connection,
        directory: Path,
        spaces: Sequence[tuple[Space, Encoder]],
        *,
        on_bad_row: Callable[[BadRowError], None] = refuse,
        on_batch: Callable[[Summary], None] = lambda summary: None,
    ) -> None:
        self._connection = connection
        self._directory = directory
        self._spaces = spaces
        self._on_bad_row = on_bad_row
        self._on_batch = on_batch
        self._tokenizer = spaces[0][1]
        with connection.begin():
            self._max_tokens = int(get_setting(connection, "chunk_max_tokens"))

    def upsert(self, corpus: Iterable[Document]) -> Summary:
        """Add new documents, renew changed ones, leave the others that the index has.

        Each batch is committed whole; what was committed stays, whatever happens next.
        """
        started = time.perf_counter()
        summary = Summary()
        with self._connection.begin():
            forget_seen(self._connection)
        for batch in _batches(corpus):
            summary = self._write(batch, summary)
            summary = replace(summary, seconds=time.perf_counter() - started)
            self._on_batch(summary)
        for space, _ in self._spaces:
            fold(self._connection, self._directory, space)
        return replace(summary, seconds=time.perf_counter() - started)

    def sync(self, corpus: Iterable[Document]) -> Summary:
        """Make the index equal to the corpus: `upsert`, then remove what the corpus lacks."""
        started = time.perf_counter()
        summary = self.upsert(corpus)
        vanished = documents.c.external_id.not_in(select(seen.c.external_id))
        with self._connection.begin():
            removed = self._remove(vanished)
        return replace(summary, removed=removed, seconds=time.perf_counter() - started)

    def delete(self, ids: Sequence[str] | None = None, where: str | None = None) -> int:
        """Remove documents by their ids, by a filter, or by both at once.

        Returns:
            How many were removed.

        Raises:
            ArgumentError: neither is given, or the index has no document of such an id; then
                nothing is removed.
            FilterError: the filter cannot be used.
        """
        if ids is None and where is None:
            raise ArgumentError("say what to delete: ids or a filter")
        with self._connection.begin():
            conditions = []
            if ids is not None:
                conditions.append(self._all_present(ids))
            if where is not None:
                conditions.append(where_clause(self._connection, where))
            return self._remove(and_(*conditions))

    def _all_present(self, ids: Sequence[str]) -> ColumnElement[bool]:
        named = documents.c.external_id.in_(values(ids))
        present = self._connection.scalars(select(documents.c.external_id).where(named))
        missing = sorted(set(ids).difference(present))
        if missing:
            shown = ", ".join(f"'{name}'" for name in missing[:5])
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise ArgumentError(f"no document {shown}{more} in this index; nothing was deleted")
        return named

    def _remove(self, condition: ColumnElement[bool]) -> int:
        """Take documents out; chunks and vectors go with them."""
        self._remove_words(condition)
        removed = self._connection.execute(delete(documents).where(condition)).rowcount
        if removed:
            self._next_revision()
        return removed

    def _remove_words(self, condition: ColumnElement[bool]) -> None:
        """Take the words of documents out of BM25, which has to be told what they were."""
        old = (
            select(literal("delete"), chunks.c.chunk_id, chunks.c.text)
            .join(documents, documents.c.document_id == chunks.c.document_id)
            .where(condition)
        )
        self._connection.execute(
            insert(chunks_fts).from_select(["chunks_fts", "rowid", "text"], old)
        )

    def _write(self, batch: list[Document], summary: Summary) -> Summary:
        with self._connection.begin():
            plans = plan_batch(self._connection, batch, self._on_bad_row)
            passages = {
                plan.external_id: self._cut(plan.document.text)
                for plan in plans
                if plan.change in (Change.ADDED, Change.CHANGED)
            }
            texts = {
                passage.text_hash: passage.text for cut in passages.values() for passage in cut
            }
            stored = self._stored_vectors(texts)
        encoded = self._encode(texts, stored)
        with self._connection.begin():
            self._put_documents(plans)
            self._put_passages(plans, passages, stored)
            self._next_revision()
        counts = Counter(plan.change for plan in plans)
        return replace(
            summary,
            added=summary.added + counts[Change.ADDED],
            changed=summary.changed + counts[Change.CHANGED],
            metadata_changed=summary.metadata_changed + counts[Change.METADATA_CHANGED],
            unchanged=summary.unchanged + counts[Change.UNCHANGED],
            chunks=summary.chunks + sum(map(len, passages.values())),
            encoded=summary.encoded + encoded,
        )

    def _cut(self, document: str) -> list[_Passage]:
        # A token is at least a byte: a text of so few need not be tokenised to be left whole.
        short = len(document.encode()) <= self._max_tokens
        tokens = self._tokenizer.token_spans("" if short else document)
        cut = []
        for start, end in chunk_spans(document, tokens, self._max_tokens):
            passage = document[start:end]
            cut.append(_Passage(start, end, passage, text_hash(passage)))
        return cut

    def _stored_vectors(self, texts: Mapping[str, str]) -> _Vectors:
        """The vectors that the index has for these texts already, under whatever document."""
        rows = self._connection.execute(
            select(vectors.c.space_id, chunks.c.text_hash, vectors.c.vector)
            .join(chunks, chunks.c.chunk_id == vectors.c.chunk_id)
            .where(chunks.c.text_hash.in_(values(texts)))
        )
        return {(space_id, digest): vector for space_id, digest, vector in rows}

    def _encode(self, texts: Mapping[str, str], stored: _Vectors) -> int:
        """Add to `stored` what it lacks; returns how many texts were encoded."""
        encoded: set[str] = set()
        for space, encoder in self._spaces:
            lacking = [digest for digest in texts if (space.id, digest) not in stored]
            if lacking:
                matrix = encoder.encode_documents([texts[digest] for digest in lacking])
                for digest, vector in zip(lacking, matrix, strict=True):
                    stored[space.id, digest] = space.to_bytes(vector)
                encoded.update(lacking)
        return len(encoded)

    def _put_documents(self, plans: Sequence[Planned]) -> None:
        rows = [
            {
                "document_id": plan.document_id,
                "external_id": plan.external_id,
                "title": plan.document.title,
                "metadata": plan.metadata,
                "text_hash": plan.text_hash,
            }
            for plan in plans
            if plan.change is not Change.UNCHANGED
        ]
        if not rows:
            return
        statement = sqlite_insert(documents)
        renewed = {name: statement.excluded[name] for name in ("title", "metadata", "text_hash")}
        self._connection.execute(
            statement.on_conflict_do_update(index_elements=["external_id"], set_=renewed), rows
        )
        names = {name for plan in plans for name in plan.document.metadata}
        if names:
            self._connection.execute(
                sqlite_insert(fields).on_conflict_do_nothing(), [{"name": name} for name in names]
            )

    def _put_passages(
        self, plans: Sequence[Planned], passages: Mapping[str, list[_Passage]], stored: _Vectors
    ) -> None:
        changed = values(plan.document_id for plan in plans if plan.change is Change.CHANGED)
        self._remove_words(documents.c.document_id.in_(changed))
        self._connection.execute(delete(chunks).where(chunks.c.document_id.in_(changed)))
        rows = self._connection.execute(
            select(documents.c.external_id, documents.c.document_id).where(
                documents.c.external_id.in_(values(passages))
            )
        )
        owners = {row.external_id: row.document_id for row in rows}
        first = 1 + (self._connection.scalar(LAST_CHUNK_ID) or 0)
        chunk_rows = [
            {"document_id": owners[external_id], **passage._asdict()}
            for external_id, cut in passages.items()
            for passage in cut
        ]
        for chunk_id, row in enumerate(chunk_rows, start=first):
            row["chunk_id"] = chunk_id
        if not chunk_rows:
            return
        self._connection.execute(insert(chunks), chunk_rows)
        self._connection.execute(
            insert(chunks_fts),
            [{"rowid": row["chunk_id"], "text": row["text"]} for row in chunk_rows],
        )
        self._connection.execute(
            insert(vectors),
            [
                {
                    "chunk_id": row["chunk_id"],
                    "space_id": space.id,
                    "vector": stored[space.id, row["text_hash"]],
                }
                for space, _ in self._spaces
                for row in chunk_rows
            ],
        )

    def _next_revision(self) -> None:
        """Tell readers that what they have loaded is of the past."""
        put_setting(self._connection, "revision", get_setting(self._connection, "revision", 0) + 1)


def _batches(corpus: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    characters = 0
    for document in corpus:
        batch.append(document)
        characters += len(document.text)
        if len(batch) == BATCH_DOCUMENTS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
