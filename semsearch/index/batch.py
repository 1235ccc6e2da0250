"""One batch of documents: compared with the index, cut, encoded, and written in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy

from semsearch.corpus.chunking import chunk_spans
from semsearch.errors import BadRowError, NoVectorError, quoted
from semsearch.index.plan import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    Change,
    Planned,
    Prepared,
    next_documents,
    plan_batch,
)
from semsearch.index.workers import Encoded, Spaces, Spans, Workers, begun_ahead
from semsearch.protocols import Encoder
from semsearch.records import Document
from semsearch.stores.protocol import (
    NewDocument,
    NewPassage,
    Space,
    StoreWriter,
    TextVectors,
    misfits,
    text_hash,
    warn_of_cut_passages,
)
from semsearch.texts import quantity

#: The size of the first two batches, before the speed of encoding is known; the second one may have
#: twice as many documents, but not more characters.
FIRST_BATCH_DOCUMENTS, FIRST_BATCH_CHARACTERS = 256, 100_000
#: The target duration of a batch: the work lost if a run is killed, and the progress interval.
BATCH_SECONDS = 2.0

NO_TOKENS = numpy.empty((0, 2), numpy.int64)


class BatchResult(NamedTuple):
    """The changes that a batch made to the index, and the work for it."""

    changes: Counter[Change]
    chunks: int  # passages written
    encoded: int  # texts encoded
    nodes: Counter[str]  # texts encoded by each node of a cluster, counted once per space


class _Lacking(NamedTuple):
    """Texts of a batch for which a space had no vector."""

    space: Space
    encoder: Encoder
    lacking: list[str]  # hashes
    encoded: Encoded


@dataclass(slots=True)
class Batch:
    """A batch that is being processed."""

    plans: list[Planned]
    passages: dict[str, list[NewPassage]]  # by external id
    texts: dict[str, str] = field(default_factory=dict)  # by hash
    vectors: TextVectors = field(default_factory=dict)
    #: By hash: the earlier batch in which the same text is being encoded.
    lenders: dict[str, Batch] = field(default_factory=dict)
    #: By hash: the spec of the encoder that returns no vector for the text.
    refused: dict[str, str] = field(default_factory=dict)

    def new_documents(self) -> list[NewDocument]:
        """Its documents that differ from the index."""
        return [
            NewDocument(
                plan.external_id,
                plan.document.text,
                plan.document.title,
                plan.document.metadata,
                plan.document.text_hash,
                self.passages.get(plan.external_id),
            )
            for plan in self.plans
            if plan.change is not Change.UNCHANGED
        ]

    def result(self, encoded: int, nodes: Counter[str]) -> BatchResult:
        """The changes that it made, once it is written."""
        changes = Counter(plan.change for plan in self.plans)
        return BatchResult(changes, sum(map(len, self.passages.values())), encoded, nodes)


class BatchWriter:
    """Writes batches of documents.

    Args:
        writer: the writer of the store.
        spaces: the spaces of the index with their encoders; the first encoder counts tokens.
        workers: cut documents and encode passages for these spaces.
        max_tokens: the maximum length of a passage.
        on_bad_row: called with the error of each document that cannot be indexed.
        before_adding: called before the first new document is written.
    """

    def __init__(
        self,
        writer: StoreWriter,
        spaces: Spaces,
        workers: Workers,
        max_tokens: int,
        on_bad_row: Callable[[BadRowError], None],
        before_adding: Callable[[], None] = lambda: None,
    ) -> None:
        self._writer = writer
        self._spaces = spaces
        self._workers = workers
        self._tokenizer = spaces[0][1]
        self._max_tokens = max_tokens  # as the index has it
        self._on_bad_row = on_bad_row
        self._before_adding: Callable[[], None] | None = before_adding
        self._documents, self._characters = FIRST_BATCH_DOCUMENTS, FIRST_BATCH_CHARACTERS
        self._in_time = 2 * FIRST_BATCH_DOCUMENTS
        self._encoding: dict[str, Batch] = {}  # by hash: where a text is being encoded

    def write_all(
        self, corpus: Iterable[Document | Prepared]
    ) -> Generator[BatchResult, None, None]:
        """Write a corpus to the index, batch by batch in its order, each in one transaction.

        While batches are cut and encoded, later ones are read and compared, and earlier ones are
        written. Batches grow to the size that is encoded in about `BATCH_SECONDS`. If reading the
        corpus fails, the batches read before are still written.
        """
        workers = self._workers
        planned = self._planned(iter(corpus))
        cut = begun_ahead(planned, self._begin_cutting, lambda: workers.cutting_ahead)
        compared = (self._compared(plans, spans) for plans, spans in cut)
        encoded = begun_ahead(compared, self._begin_encoding, lambda: workers.encoding_ahead)
        for batch, found in encoded:
            if self._before_adding and any(plan.change is Change.ADDED for plan in batch.plans):
                self._before_adding()
                self._before_adding = None
            yield self._apply(batch, found)

    def _planned(self, documents: Iterator[Document | Prepared]) -> Iterator[list[Planned]]:
        """Read batches and compare them with the index."""
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

    def _compared(self, plans: list[Planned], spans: Sequence[Spans]) -> Batch:
        """A batch with its passages and the vectors that the index has for their texts."""
        batch = self._fitting(plans, spans)
        batch.texts = {one.text_hash: one.text for cut in batch.passages.values() for one in cut}
        batch.lenders = {
            digest: self._encoding[digest] for digest in batch.texts if digest in self._encoding
        }
        with self._writer.state() as state:
            batch.vectors = state.vectors_of(
                [digest for digest in batch.texts if digest not in batch.lenders]
            )
        return batch

    def _fitting(self, plans: list[Planned], spans: Sequence[Spans]) -> Batch:
        """A batch with the passages of those documents that the store can hold."""
        batch = Batch(plans, self._cut(plans, spans))
        self._leave_out(batch, misfits(self._writer, batch.new_documents()))
        return batch

    def _cut(self, plans: Sequence[Planned], spans: Sequence[Spans]) -> dict[str, list[NewPassage]]:
        """The passages of new texts, by external id."""
        of_long = iter(spans)
        return {
            plan.external_id: _passages(
                plan.document.text,
                chunk_spans(plan.document.text, NO_TOKENS, self._passage_tokens)
                if self._is_short(plan)
                else next(of_long),
            )
            for plan in plans
            if _is_new(plan)
        }

    def _begin_encoding(self, batch: Batch) -> Callable[[], Any]:
        """Start to encode the texts of a batch that have no vector in the index."""
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

    def _apply(self, batch: Batch, found: Any) -> BatchResult:
        """Write a batch in one transaction.

        Args:
            batch: the batch.
            found: the result of `_begin_encoding`, a list of `_Lacking`.
        """
        parts: list[_Lacking] = found
        encoded = self._complete(batch, parts)
        self._grow(batch, sum(part.encoded.seconds for part in parts))
        if batch.refused:
            self._leave_out_refused(batch)
        if new := batch.new_documents():
            self._writer.put(new, batch.vectors)
        nodes = Counter[str]()
        for part in parts:
            if part.encoded.node:
                nodes[part.encoded.node] += len(part.lacking)
        return batch.result(len(encoded), nodes)

    def _grow(self, batch: Batch, seconds: float) -> None:
        """Let later batches take about `BATCH_SECONDS`."""
        documents = max(len(batch.plans), FIRST_BATCH_DOCUMENTS)
        self._in_time = int(documents * BATCH_SECONDS / max(seconds, 1e-3))
        self._characters = BATCH_CHARACTERS

    def _complete(self, batch: Batch, found: Sequence[_Lacking]) -> set[str]:
        """Add encoded vectors to a batch; returns the hashes of their texts."""
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
        batch.lenders.clear()  # this batch needs them no longer
        return encoded

    def _leave_out_refused(self, batch: Batch) -> None:
        """Remove documents that have a passage without a vector."""
        specs = {
            external_id: batch.refused[passage.text_hash]
            for external_id, cut in batch.passages.items()
            for passage in cut
            if passage.text_hash in batch.refused
        }
        reason = "encoder '{}' returns no unit vector for its text (NaN, zero or not normalised)"
        self._leave_out(batch, {name: reason.format(spec) for name, spec in specs.items()})

    def _leave_out(self, batch: Batch, reasons: Mapping[str, str]) -> None:
        """Remove documents, which are bad rows, by their external ids."""
        for plan in batch.plans:
            if plan.external_id in reasons:
                source = plan.document.source or f"document '{plan.external_id}'"
                self._on_bad_row(BadRowError(source, reasons[plan.external_id]))
        batch.plans = [plan for plan in batch.plans if plan.external_id not in reasons]
        batch.passages = {name: cut for name, cut in batch.passages.items() if name not in reasons}

    def _is_short(self, plan: Planned) -> bool:
        # A token is at least a byte, so shorter texts need not be tokenised to be kept whole.
        return len(plan.document.text.encode()) <= self._passage_tokens

    @cached_property
    def _passage_tokens(self) -> int:
        """The maximum length of a passage; older indexes stored it without counting prompts."""
        warn_of_cut_passages(self._tokenizer, self._max_tokens)
        return min(self._max_tokens, self._tokenizer.max_document_tokens)


def _is_new(plan: Planned) -> bool:
    """Whether the text of a document has to be cut and encoded."""
    return plan.change in (Change.ADDED, Change.CHANGED)


def _passages(text: str, spans: Spans) -> list[NewPassage]:
    return [
        NewPassage(start, end, text[start:end], text_hash(text[start:end])) for start, end in spans
    ]


BATCH_CHUNKS = 256
#: Documents named in a message.
SHOWN = 5


def complete_space(
    writer: StoreWriter,
    space: Space,
    workers: Workers,
    on_batch: Callable[[Counter[str]], None] = lambda encoded: None,
) -> int:
    """Encode the stored passages that have no vector in a space, one transaction per batch.

    Args:
        writer: the writer of the store.
        space: the space to complete.
        workers: encode passages for it.
        on_batch: called after each commit with the number of passages encoded so far, by the node
            of a cluster.

    Returns:
        The number of passages encoded.

    Raises:
        NoVectorError: the encoder returns no vector for some passages; all others were written.
    """
    nodes = Counter[str]()
    refused = 0
    unusable: dict[str, None] = {}
    encoded = begun_ahead(
        _lacking(writer, space),
        lambda batch: workers.encode(space, [text for _, text, _ in batch]),
        lambda: workers.encoding_ahead,
    )
    for batch, (matrix, places, _, node) in encoded:
        writer.put_vectors(space, [batch[place][0] for place in places], matrix)
        usable = set(places)
        unusable |= {
            document_id: None
            for place, (_, _, document_id) in enumerate(batch)
            if place not in usable
        }
        refused += len(batch) - len(places)
        nodes[node] += len(places)
        on_batch(nodes.copy())
    if refused:
        raise NoVectorError(space.spec, [], _no_vectors(space, refused, list(unusable)))
    writer.mark_complete(space)
    return nodes.total()


def _lacking(writer: StoreWriter, space: Space) -> Iterator[list[tuple[int, str, str]]]:
    """Batches of passages without a vector: chunk id, text and document id."""
    last = 0
    while True:
        with writer.state() as state:
            batch = state.lacking(space, last, BATCH_CHUNKS)
        if not batch:
            return
        last = batch[-1][0]
        yield batch


def _no_vectors(space: Space, count: int, documents: list[str]) -> str:
    """The message about documents that have no vector."""
    return (
        f"encoder '{space.spec}' returns no unit vector (NaN, zero or not normalised) for "
        f"{quantity(count, 'passage')}, of "
        f"{', '.join(documents[:SHOWN])}{' …' if len(documents) > SHOWN else ''}; delete them "
        f"with: semsearch delete {quoted(documents[0])}, then run: "
        f"semsearch index --add-space {quoted(space.spec)}"
    )
