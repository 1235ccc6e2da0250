"""One batch of documents: compared with the index, cut, encoded, and written in one transaction."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import NamedTuple

import numpy

from semsearch.corpus.chunking import chunk_spans, fitting_spans
from semsearch.errors import BadRowError
from semsearch.index.plan import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    Change,
    Planned,
    next_documents,
    plan_batch,
)
from semsearch.protocols import Encoder
from semsearch.records import Document
from semsearch.stores.protocol import NewDocument, NewPassage, StoreWriter, TextVectors, text_hash
from semsearch.stores.space import Space, warn_of_cut_passages
from semsearch.vectors import encode_usable

#: The first batch, taken while nobody knows how long encoding takes; so is the second one, which
#: may be twice as large, but not in characters.
FIRST_BATCH_DOCUMENTS, FIRST_BATCH_CHARACTERS = 256, 100_000
#: What is lost when a run is killed, and how long progress stands still.
BATCH_SECONDS = 2.0

NO_TOKENS = numpy.empty((0, 2), numpy.int64)


class BatchResult(NamedTuple):
    """What a batch was to the index, and what was done for it."""

    changes: Counter[Change]
    chunks: int  # written
    encoded: int  # texts that went through an encoder


class _Prepared(NamedTuple):
    """A batch that has been compared with the index."""

    plans: list[Planned]
    passages: dict[str, list[NewPassage]]  # by external id
    texts: dict[str, str]  # by hash
    stored: TextVectors


class _Encoded(NamedTuple):
    """All vectors of a batch's texts."""

    vectors: TextVectors
    refused: dict[str, str]  # by hash: the spec of the encoder that has no vector for the text
    texts: int  # that went through an encoder
    seconds: float


class BatchWriter:
    """Writes batches of documents.

    Args:
        writer: of the store.
        spaces: the index's spaces with their encoders; the first one's tokens are counted.
        max_tokens: how long a passage may be.
        on_bad_row: called with the error of each document that cannot be used.
    """

    def __init__(
        self,
        writer: StoreWriter,
        spaces: Sequence[tuple[Space, Encoder]],
        max_tokens: int,
        on_bad_row: Callable[[BadRowError], None],
    ) -> None:
        self._writer = writer
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
        with self._writer.state() as state:
            plans = plan_batch(state, batch, self._on_bad_row)
            passages = {
                plan.external_id: self._cut(plan.document.text)
                for plan in plans
                if plan.change in (Change.ADDED, Change.CHANGED)
            }
            texts = {
                passage.text_hash: passage.text for cut in passages.values() for passage in cut
            }
            return _Prepared(plans, passages, texts, state.vectors_of(list(texts)))

    def _apply(self, prepared: _Prepared, encoded: _Encoded) -> BatchResult:
        """Write a batch in one transaction."""
        if encoded.refused:
            prepared = self._usable(prepared, encoded.refused)
        changes = Counter(plan.change for plan in prepared.plans)
        new = [
            NewDocument(
                plan.external_id,
                plan.document.text,
                plan.document.title,
                plan.metadata,
                plan.text_hash,
                prepared.passages.get(plan.external_id),
            )
            for plan in prepared.plans
            if plan.change is not Change.UNCHANGED
        ]
        if new:
            self._writer.put(new, encoded.vectors)
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

    def _cut(self, document: str) -> list[NewPassage]:
        # A token is at least a byte: a text of so few need not be tokenised to be left whole.
        if len(document.encode()) <= self._passage_tokens:
            spans = chunk_spans(document, NO_TOKENS, self._passage_tokens)
        else:
            spans = fitting_spans(document, self._tokenizer.token_spans, self._passage_tokens)
        return [
            NewPassage(start, end, document[start:end], text_hash(document[start:end]))
            for start, end in spans
        ]

    @cached_property
    def _passage_tokens(self) -> int:
        """How long a passage may be here: indexes made before prompts were counted say too much."""
        warn_of_cut_passages(self._tokenizer, self._max_tokens)
        return min(self._max_tokens, self._tokenizer.max_document_tokens)

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
            for digest, vector in zip(usable, matrix, strict=True):
                found[space.id, digest] = vector
            refused |= dict.fromkeys(set(lacking).difference(usable), encoder.spec)
        return _Encoded(found, refused, len(encoded), time.perf_counter() - started)


def _in_time(batch: _Prepared, encoded: _Encoded) -> int:
    """How many documents are encoded in `BATCH_SECONDS`, if they are as those of this batch."""
    documents = max(len(batch.plans), FIRST_BATCH_DOCUMENTS)
    return int(documents * BATCH_SECONDS / max(encoded.seconds, 1e-3))
