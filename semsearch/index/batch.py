"""One batch of documents: compared with the index, cut, encoded, and written in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy

from semsearch.corpus.chunking import chunk_spans
from semsearch.errors import BadRowError
from semsearch.index.plan import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    Change,
    Planned,
    next_documents,
    plan_batch,
)
from semsearch.index.workers import Encoded, Spaces, Spans, Workers, begun_ahead
from semsearch.protocols import Encoder
from semsearch.records import Document
from semsearch.stores.protocol import NewDocument, NewPassage, StoreWriter, TextVectors, text_hash
from semsearch.stores.space import Space, warn_of_cut_passages

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
    nodes: Counter[str]  # the same by the node of a cluster, each text once for each space


class _Lacking(NamedTuple):
    """Texts of a batch of which a space had no vector."""

    space: Space
    encoder: Encoder
    lacking: list[str]  # hashes
    encoded: Encoded


@dataclass(slots=True)
class _Batch:
    """A batch on its way into the index."""

    plans: list[Planned]
    passages: dict[str, list[NewPassage]]  # by external id
    texts: dict[str, str]  # by hash
    vectors: TextVectors
    #: By hash: the batch on its way before this one that has the same text encoded.
    lenders: dict[str, _Batch]
    #: By hash: the spec of the encoder that has no vector for the text.
    refused: dict[str, str] = field(default_factory=dict)


class BatchWriter:
    """Writes batches of documents.

    Args:
        writer: of the store.
        spaces: the index's spaces with their encoders; the first one's tokens are counted.
        workers: cut and encode for these spaces.
        max_tokens: how long a passage may be.
        on_bad_row: called with the error of each document that cannot be used.
    """

    def __init__(
        self,
        writer: StoreWriter,
        spaces: Spaces,
        workers: Workers,
        max_tokens: int,
        on_bad_row: Callable[[BadRowError], None],
    ) -> None:
        self._writer = writer
        self._spaces = spaces
        self._workers = workers
        self._tokenizer = spaces[0][1]
        self._max_tokens = max_tokens  # as the index has it
        self._on_bad_row = on_bad_row
        self._documents, self._characters = FIRST_BATCH_DOCUMENTS, FIRST_BATCH_CHARACTERS
        self._in_time = 2 * FIRST_BATCH_DOCUMENTS
        self._encoding: dict[str, _Batch] = {}  # by hash: where a text is being encoded

    def write_all(self, corpus: Iterable[Document]) -> Generator[BatchResult, None, None]:
        """Put a corpus into the index, batch by batch in its order, each whole or not at all.

        While batches are cut and encoded, the next ones are read and compared, and those before
        are written. Batches grow to what is encoded in about `BATCH_SECONDS`. When the corpus
        breaks off, what came before is written all the same.
        """
        workers = self._workers
        planned = self._planned(iter(corpus))
        cut = begun_ahead(planned, self._begin_cutting, lambda: workers.cutting_ahead)
        compared = (self._compared(plans, spans) for plans, spans in cut)
        encoded = begun_ahead(compared, self._begin_encoding, lambda: workers.encoding_ahead)
        for batch, found in encoded:
            yield self._apply(batch, found)

    def _planned(self, documents: Iterator[Document]) -> Iterator[list[Planned]]:
        """Read batches, and compare them with the index."""
        while batch := next_documents(
            documents, min(self._documents, BATCH_DOCUMENTS), self._characters
        ):
            with self._writer.state() as state:
                plans = plan_batch(state, batch, self._on_bad_row)
            yield plans
            self._documents = max(1, min(2 * self._documents, self._in_time))

    def _begin_cutting(self, plans: Sequence[Planned]) -> Callable[[], list[Spans]]:
        texts = [plan.document.text for plan in plans if _is_new(plan) and not self._is_short(plan)]
        return self._workers.cut(texts, self._passage_tokens) if texts else list

    def _compared(self, plans: list[Planned], spans: Sequence[Spans]) -> _Batch:
        """A batch with its passages, and the vectors that the index has of their texts."""
        of_long = iter(spans)
        passages = {
            plan.external_id: _passages(
                plan.document.text,
                chunk_spans(plan.document.text, NO_TOKENS, self._passage_tokens)
                if self._is_short(plan)
                else next(of_long),
            )
            for plan in plans
            if _is_new(plan)
        }
        texts = {passage.text_hash: passage.text for cut in passages.values() for passage in cut}
        lenders = {digest: self._encoding[digest] for digest in texts if digest in self._encoding}
        with self._writer.state() as state:
            stored = state.vectors_of([digest for digest in texts if digest not in lenders])
        return _Batch(plans, passages, texts, stored, lenders)

    def _begin_encoding(self, batch: _Batch) -> Callable[[], list[_Lacking]]:
        """Encode the texts of a batch of which the index has no vector."""
        begun = []
        for space, encoder in self._spaces:
            lacking = [
                digest
                for digest in batch.texts
                if digest not in batch.lenders and (space.id, digest) not in batch.vectors
            ]
            if lacking:
                self._encoding |= dict.fromkeys(lacking, batch)
                texts = [batch.texts[digest] for digest in lacking]
                begun.append((space, encoder, lacking, self._workers.encode(space, texts)))
        return lambda: [
            _Lacking(space, encoder, lacking, result()) for space, encoder, lacking, result in begun
        ]

    def _apply(self, batch: _Batch, found: Sequence[_Lacking]) -> BatchResult:
        """Write a batch in one transaction."""
        encoded = self._complete(batch, found)
        self._in_time = _in_time(batch, sum(part.encoded.seconds for part in found))
        self._characters = BATCH_CHARACTERS
        if batch.refused:
            self._leave_out_refused(batch)
        changes = Counter(plan.change for plan in batch.plans)
        new = [
            NewDocument(
                plan.external_id,
                plan.document.text,
                plan.document.title,
                plan.metadata,
                plan.text_hash,
                batch.passages.get(plan.external_id),
            )
            for plan in batch.plans
            if plan.change is not Change.UNCHANGED
        ]
        if new:
            self._writer.put(new, batch.vectors)
        chunks_written = sum(map(len, batch.passages.values()))
        nodes = Counter[str]()
        for part in found:
            if part.encoded.node:
                nodes[part.encoded.node] += len(part.lacking)
        return BatchResult(changes, chunks_written, len(encoded), nodes)

    def _complete(self, batch: _Batch, found: Sequence[_Lacking]) -> set[str]:
        """Add the vectors that were encoded to a batch; returns the hashes of their texts."""
        encoded: set[str] = set()
        for space, encoder, lacking, (vectors, places, *_) in found:
            usable = [lacking[place] for place in places]
            for digest, vector in zip(usable, vectors, strict=True):
                batch.vectors[space.id, digest] = vector
            batch.refused |= dict.fromkeys(set(lacking).difference(usable), encoder.spec)
            encoded.update(lacking)
        for digest in encoded:
            self._encoding.pop(digest, None)
        for digest, lender in batch.lenders.items():
            for space, _ in self._spaces:
                if digest in lender.refused:
                    batch.refused[digest] = lender.refused[digest]
                else:
                    batch.vectors[space.id, digest] = lender.vectors[space.id, digest]
        batch.lenders.clear()  # they need not be kept for this one
        return encoded

    def _leave_out_refused(self, batch: _Batch) -> None:
        """Take the documents out that have a passage without a vector: bad rows."""
        specs = {
            external_id: batch.refused[passage.text_hash]
            for external_id, cut in batch.passages.items()
            for passage in cut
            if passage.text_hash in batch.refused
        }
        for plan in batch.plans:
            if plan.external_id in specs:
                source = plan.document.source or f"document '{plan.external_id}'"
                spec = specs[plan.external_id]
                reason = f"encoder '{spec}' returns no vector for its text (NaN or zero)"
                self._on_bad_row(BadRowError(source, reason))
        batch.plans = [plan for plan in batch.plans if plan.external_id not in specs]
        batch.passages = {name: cut for name, cut in batch.passages.items() if name not in specs}

    def _is_short(self, plan: Planned) -> bool:
        # A token is at least a byte: a text of so few need not be tokenised to be left whole.
        return len(plan.document.text.encode()) <= self._passage_tokens

    @cached_property
    def _passage_tokens(self) -> int:
        """How long a passage may be here: indexes made before prompts were counted say too much."""
        warn_of_cut_passages(self._tokenizer, self._max_tokens)
        return min(self._max_tokens, self._tokenizer.max_document_tokens)


def _is_new(plan: Planned) -> bool:
    """Whether the text of a document is to be cut and encoded."""
    return plan.change in (Change.ADDED, Change.CHANGED)


def _passages(text: str, spans: Spans) -> list[NewPassage]:
    return [
        NewPassage(start, end, text[start:end], text_hash(text[start:end])) for start, end in spans
    ]


def _in_time(batch: _Batch, seconds: float) -> int:
    """How many documents are encoded in `BATCH_SECONDS`, if they are as those of this batch."""
    documents = max(len(batch.plans), FIRST_BATCH_DOCUMENTS)
    return int(documents * BATCH_SECONDS / max(seconds, 1e-3))
