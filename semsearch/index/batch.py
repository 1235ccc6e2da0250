"""One batch of documents: compared with the index, cut, encoded, and written in one transaction."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import NamedTuple

import numpy
from sqlalchemy import Connection, delete, select, text
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from semsearch.analysis import searchable
from semsearch.corpus.chunking import chunk_spans, fitting_spans
from semsearch.corpus.documents import (
    FIRST_BATCH_CHARACTERS,
    FIRST_BATCH_DOCUMENTS,
    next_documents,
)
from semsearch.errors import BadRowError
from semsearch.index.kinds import add_kinds, subtract_kinds
from semsearch.index.plan import Change, Planned, plan_batch, text_hash
from semsearch.index.removal import next_revision, remove_words
from semsearch.index.schema import chunks, chunks_fts, documents, vectors
from semsearch.index.spaces import Space, warn_of_cut_passages
from semsearch.index.stored import DamageError, StoredInteger
from semsearch.index.values import insert_rows, values
from semsearch.protocols import Encoder
from semsearch.records import Document
from semsearch.vectors import encode_usable

__all__ = ["BatchResult", "BatchWriter"]

#: Where a batch's size ends. While the first one is encoded, and nobody knows how long that takes,
#: the second is taken: it may be twice as large, but not in characters.
BATCH_DOCUMENTS = 4096
BATCH_CHARACTERS = 1_000_000
#: What is lost when a run is killed, and how long progress stands still.
BATCH_SECONDS = 2.0

NO_TOKENS = numpy.empty((0, 2), numpy.int64)

#: The highest id that a chunk ever had, deleted ones included.
LAST_CHUNK_ID = text("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'").columns(
    seq=StoredInteger
)


class BatchResult(NamedTuple):
    """What a batch was to the index, and what was done for it."""

    changes: Counter[Change]
    chunks: int  # written
    encoded: int  # texts that went through an encoder


class _Passage(NamedTuple):
    start: int
    end: int
    text: str
    text_hash: str
    analysed: str | None  # what BM25 reads, where it is not the text itself


#: A stored vector by space and text.
_Vectors = dict[tuple[int, str], bytes]


class _Prepared(NamedTuple):
    """A batch that has been compared with the index."""

    plans: list[Planned]
    passages: dict[str, list[_Passage]]  # by external id
    texts: dict[str, str]  # by hash
    stored: _Vectors


class _Encoded(NamedTuple):
    """All vectors of a batch's texts."""

    vectors: _Vectors
    refused: dict[str, str]  # by hash: the spec of the encoder that has no vector for the text
    texts: int  # that went through an encoder
    seconds: float


class BatchWriter:
    """Writes batches of documents.

    Args:
        connection: its transactions begin with the write lock.
        spaces: the index's spaces with their encoders; the first one's tokens are counted.
        max_tokens: how long a passage may be.
        on_bad_row: told of each document that cannot be used.
    """

    def __init__(
        self,
        connection: Connection,
        spaces: Sequence[tuple[Space, Encoder]],
        max_tokens: int,
        on_bad_row: Callable[[BadRowError], None],
    ) -> None:
        if max_tokens < 1:
            raise DamageError(f"passages of {max_tokens} tokens")
        self._connection = connection
        self._spaces = spaces
        self._tokenizer = spaces[0][1]
        self._max_tokens = max_tokens  # as the index has it
        self._on_bad_row = on_bad_row

    def write_all(self, corpus: Iterable[Document]) -> Generator[BatchResult, None, None]:
        """Put a corpus into the index, batch by batch, each whole or not at all.

        While one batch is encoded, the next one is read, compared and cut, and the one before it
        is written. Batches grow to what is encoded in about `BATCH_SECONDS`. When the corpus
        breaks off, what came before is written all the same.
        """
        documents = iter(corpus)
        size, in_time = FIRST_BATCH_DOCUMENTS, 2 * FIRST_BATCH_DOCUMENTS
        characters = FIRST_BATCH_CHARACTERS
        with ThreadPoolExecutor(1, "semsearch-encoding") as encoding:
            ahead: tuple[_Prepared, Future[_Encoded]] | None = None
            while True:
                try:
                    batch = next_documents(documents, min(size, BATCH_DOCUMENTS), characters)
                    prepared = self._prepare(batch) if batch else None
                except BaseException:
                    if ahead:
                        self._apply(ahead[0], ahead[1].result())
                    raise
                behind, ahead = ahead, None
                if prepared:
                    before = behind[1] if behind else None
                    ahead = prepared, encoding.submit(self._encode, prepared, before)
                if behind:
                    encoded = behind[1].result()
                    in_time = _in_time(behind[0], encoded)
                    characters = BATCH_CHARACTERS
                    yield self._apply(behind[0], encoded)
                if not ahead:
                    return
                size = max(1, min(2 * size, in_time))

    def _prepare(self, batch: Sequence[Document]) -> _Prepared:
        """Compare a batch with the index, and cut what is new in it."""
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
            return _Prepared(plans, passages, texts, self._stored_vectors(texts))

    def _apply(self, prepared: _Prepared, encoded: _Encoded) -> BatchResult:
        """Write a batch in one transaction."""
        if encoded.refused:
            prepared = self._usable(prepared, encoded.refused)
        changes = Counter(plan.change for plan in prepared.plans)
        if changes.total() > changes[Change.UNCHANGED]:
            with self._connection.begin():
                self._put_documents(prepared.plans)
                self._put_passages(prepared.plans, prepared.passages, encoded.vectors)
                next_revision(self._connection)
        chunks_written = sum(map(len, prepared.passages.values()))
        return BatchResult(changes, chunks_written, encoded.texts)

    def _usable(self, prepared: _Prepared, refused: Mapping[str, str]) -> _Prepared:
        """A batch without the documents that have a passage without a vector: bad rows."""
        specs = {
            external_id: refused[passage.text_hash]
            for external_id, cut in prepared.passages.items()
            for passage in cut
            if passage.text_hash in refused
        }
        for plan in prepared.plans:
            if plan.external_id in specs:
                source = plan.document.source or f"document '{plan.external_id}'"
                spec = specs[plan.external_id]
                reason = f"encoder '{spec}' returns no vector for its text (NaN or zero)"
                self._on_bad_row(BadRowError(source, reason))
        return prepared._replace(
            plans=[plan for plan in prepared.plans if plan.external_id not in specs],
            passages={name: cut for name, cut in prepared.passages.items() if name not in specs},
        )

    def _cut(self, document: str) -> list[_Passage]:
        # A token is at least a byte: a text of so few need not be tokenised to be left whole.
        if len(document.encode()) <= self._passage_tokens:
            spans = chunk_spans(document, NO_TOKENS, self._passage_tokens)
        else:
            spans = fitting_spans(document, self._tokenizer.token_spans, self._passage_tokens)
        cut = []
        for start, end in spans:
            passage = document[start:end]
            words = searchable(passage)
            analysed = None if words == passage else words
            cut.append(_Passage(start, end, passage, text_hash(passage), analysed))
        return cut

    @cached_property
    def _passage_tokens(self) -> int:
        """How long a passage may be here: indexes made before prompts were counted say too much."""
        warn_of_cut_passages(self._tokenizer, self._max_tokens)
        return min(self._max_tokens, self._tokenizer.max_document_tokens)

    def _stored_vectors(self, texts: Mapping[str, str]) -> _Vectors:
        """The vectors that the index has for these texts already, under whatever document."""
        rows = self._connection.execute(
            select(vectors.c.space_id, chunks.c.text_hash, vectors.c.vector)
            .join(chunks, chunks.c.chunk_id == vectors.c.chunk_id)
            .where(chunks.c.text_hash.in_(values(texts)))
        )
        found = {(space_id, digest): vector for space_id, digest, vector in rows}
        for space, _ in self._spaces:  # damaged ones are not passed on
            keys = [key for key in found if key[0] == space.id]
            for row in space.damaged([found[key] for key in keys]):
                del found[keys[row]]
        return found

    def _encode(self, prepared: _Prepared, before: Future[_Encoded] | None) -> _Encoded:
        """The vectors of a batch's texts.

        Args:
            prepared: the batch, with the vectors that the index had when it was compared.
            before: the batch ahead of it, which the index may not have had by then.
        """
        started = time.perf_counter()
        texts = prepared.texts
        known = before.result().vectors if before else {}
        found = prepared.stored | {key: known[key] for key in known if key[1] in texts}
        encoded: set[str] = set()
        refused: dict[str, str] = {}
        for space, encoder in self._spaces:
            lacking = [digest for digest in texts if (space.id, digest) not in found]
            encoded.update(lacking)
            matrix, rows = encode_usable(encoder, [texts[digest] for digest in lacking])
            usable = [lacking[row] for row in rows]
            for digest, vector in zip(usable, space.to_bytes(matrix), strict=True):
                found[space.id, digest] = vector
            refused |= dict.fromkeys(set(lacking).difference(usable), encoder.spec)
        return _Encoded(found, refused, len(encoded), time.perf_counter() - started)

    def _put_documents(self, plans: Sequence[Planned]) -> None:
        written = [plan for plan in plans if plan.change is not Change.UNCHANGED]
        rows = [
            {
                "document_id": plan.document_id,
                "external_id": plan.external_id,
                "title": plan.document.title,
                "metadata": plan.metadata,
                "text_hash": plan.text_hash,
            }
            for plan in written
        ]
        if not rows:
            return
        replaced = [plan.document_id for plan in written if plan.document_id is not None]
        if replaced:
            subtract_kinds(self._connection, documents.c.document_id.in_(values(replaced)))
        statement = sqlite_insert(documents)
        renewed = {name: statement.excluded[name] for name in ("title", "metadata", "text_hash")}
        self._connection.execute(
            statement.on_conflict_do_update(index_elements=["external_id"], set_=renewed), rows
        )
        new = values(plan.external_id for plan in written)
        add_kinds(self._connection, documents.c.external_id.in_(new))

    def _put_passages(
        self, plans: Sequence[Planned], passages: Mapping[str, list[_Passage]], stored: _Vectors
    ) -> None:
        changed = values(plan.document_id for plan in plans if plan.change is Change.CHANGED)
        remove_words(self._connection, documents.c.document_id.in_(changed))
        self._connection.execute(delete(chunks).where(chunks.c.document_id.in_(changed)))
        rows = self._connection.execute(
            select(documents.c.external_id, documents.c.document_id).where(
                documents.c.external_id.in_(values(passages))
            )
        )
        owners = {row.external_id: row.document_id for row in rows}
        first = 1 + (self._connection.scalar(LAST_CHUNK_ID) or 0)
        owned = [
            (owners[external_id], passage)
            for external_id, cut in passages.items()
            for passage in cut
        ]
        numbered = [(first + place, owner, passage) for place, (owner, passage) in enumerate(owned)]
        insert_rows(
            self._connection,
            chunks,
            ["chunk_id", "document_id", *_Passage._fields],
            [(chunk_id, owner, *passage) for chunk_id, owner, passage in numbered],
        )
        insert_rows(
            self._connection,
            chunks_fts,
            ["rowid", "words"],
            [
                (chunk_id, passage.text if passage.analysed is None else passage.analysed)
                for chunk_id, _, passage in numbered
            ],
        )
        insert_rows(
            self._connection,
            vectors,
            ["chunk_id", "space_id", "vector"],
            [
                (chunk_id, space.id, stored[space.id, passage.text_hash])
                for space, _ in self._spaces
                for chunk_id, _, passage in numbered
            ],
        )


def _in_time(batch: _Prepared, encoded: _Encoded) -> int:
    """How many documents are encoded in `BATCH_SECONDS`, if they are as those of this batch."""
    documents = max(len(batch.plans), FIRST_BATCH_DOCUMENTS)
    return int(documents * BATCH_SECONDS / max(encoded.seconds, 1e-3))
