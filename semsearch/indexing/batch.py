"""The loop of indexing: compare a batch, split it, submit its texts, write the batch before it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

from semsearch.corpus.splitting import fitting_spans
from semsearch.errors import BadRowError, NoVectorError, quantity, quoted
from semsearch.indexing.changes import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    Change,
    DocumentChange,
    SeenDocuments,
    compare,
    next_documents,
)
from semsearch.indexing.pool import Encoded, EncoderPool, Spaces, pipelined
from semsearch.protocols import Encoder
from semsearch.records import Document
from semsearch.storage.interface import NewDocument, NewPassage, TextVectors, Writer, text_hash
from semsearch.storage.spaces import Space

#: The size of the first two batches, before the speed of encoding is known; the second one may have
#: twice as many documents, but not more characters.
FIRST_BATCH_DOCUMENTS, FIRST_BATCH_CHARACTERS = 256, 100_000
#: The target duration of a batch: the work lost if a run is killed, and the progress interval.
BATCH_SECONDS = 2.0
#: The size of a batch of stored passages that are encoded into another space.
BATCH_PASSAGES = 256


@dataclass(frozen=True, slots=True)
class Summary:
    """The work that a run has committed.

    >>> from semsearch import Summary
    >>> (Summary(added=2) + Summary(unchanged=1)).documents
    3
    """

    added: int = 0
    changed: int = 0
    metadata_changed: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: int = 0  #: documents missing from the corpus that a skipped row may hold
    passages: int = 0  #: passages written
    encoded: int = 0  #: texts encoded
    seconds: float = 0.0
    nodes: Counter[str] = field(default_factory=Counter)  #: texts encoded by each cluster node

    @property
    def documents(self) -> int:
        """The number of documents of the corpus that are in the index."""
        return self.added + self.changed + self.metadata_changed + self.unchanged

    def __add__(self, other: Summary) -> Summary:
        names = [field.name for field in fields(self)]
        return Summary(**{name: getattr(self, name) + getattr(other, name) for name in names})


class _Encoding(NamedTuple):
    """Texts of a batch that are being encoded for a space."""

    space: Space
    hashes: list[str]
    result: Callable[[], Encoded]


@dataclass(slots=True)
class _Batch:
    """A batch on its way into the index."""

    changes: list[DocumentChange]
    passages: dict[str, list[NewPassage]]  # by document id
    vectors: TextVectors
    encodings: list[_Encoding]

    def new_documents(self) -> list[NewDocument]:
        """Its documents that differ from the index."""
        return [
            NewDocument(
                change.id,
                change.document.text,
                change.document.title,
                change.metadata,
                change.text_hash,
                self.passages.get(change.id),
            )
            for change in self.changes
            if change.change is not Change.UNCHANGED
        ]


#: Splits the texts of documents into passages; the result is by document id.
Split = Callable[[Sequence[DocumentChange]], dict[str, list[NewPassage]]]


def split_texts(
    encoder: Encoder, max_tokens: int, changes: Sequence[DocumentChange]
) -> dict[str, list[NewPassage]]:
    """Split texts into passages of at most `max_tokens`, which an encoder reads whole."""
    limit = min(max_tokens, encoder.max_document_tokens)
    passages = {}
    for change in changes:
        text = change.document.text
        spans = fitting_spans(text, encoder.token_spans, limit)
        passages[change.id] = [
            NewPassage(start, end, text[start:end], text_hash(text[start:end]))
            for start, end in spans
        ]
    return passages


@dataclass
class BatchWriter:
    """Writes documents in batches.

    Args:
        writer: the writer of the store.
        spaces: the spaces of the index with their encoders.
        split: splits documents.
        pool: encodes passages for these spaces.
        seen: the documents that the run has read.
        on_bad_row: called with the error of each document that cannot be indexed.
    """

    writer: Writer
    spaces: Spaces
    split: Split
    pool: EncoderPool
    seen: SeenDocuments
    on_bad_row: Callable[[BadRowError], None]

    def __post_init__(self) -> None:
        self._documents, self._characters = FIRST_BATCH_DOCUMENTS, FIRST_BATCH_CHARACTERS
        self._in_time = 2 * FIRST_BATCH_DOCUMENTS

    def write_all(self, corpus: Iterable[Document]) -> Generator[Summary, None, None]:
        """Write a corpus to the index, batch by batch in its order, each in one transaction.

        While a batch is encoded, the next one is read and the one before it is written. Batches
        grow to the size that is encoded in about `BATCH_SECONDS`. If reading the corpus fails, the
        batches read before are still written.
        """
        for batch in pipelined(self._begun(iter(corpus)), self.pool):
            yield self._write(batch)

    def _begun(self, documents: Iterator[Document]) -> Iterator[_Batch]:
        """Read batches, compare them with the index, split them and submit their texts."""
        while read := next_documents(
            documents, min(self._documents, BATCH_DOCUMENTS), self._characters
        ):
            with self.writer.read() as reader:
                changes = compare(reader, self.seen, read, self.on_bad_row)
            passages = self.split([change for change in changes if change.has_new_text])
            batch = _Batch(changes, passages, {}, [])
            self._leave_out(batch, self.writer.oversized_documents(batch.new_documents()))
            self._submit(batch)
            yield batch
            self._documents = max(1, min(2 * self._documents, self._in_time))

    def _submit(self, batch: _Batch) -> None:
        """Start to encode the texts that have no vector in the index."""
        texts = {
            passage.text_hash: passage.text
            for passages in batch.passages.values()
            for passage in passages
        }
        with self.writer.read() as reader:
            batch.vectors = reader.vectors_of_texts(list(texts))
        for space, _ in self.spaces:
            lacking = [digest for digest in texts if (space.id, digest) not in batch.vectors]
            if lacking:
                result = self.pool.submit(space, [texts[digest] for digest in lacking])
                batch.encodings.append(_Encoding(space, lacking, result))

    def _write(self, batch: _Batch) -> Summary:
        """Wait for the vectors of a batch, and write it in one transaction."""
        seconds = 0.0
        encoded: set[str] = set()
        nodes = Counter[str]()
        refused: dict[str, str] = {}  # the encoders without a vector for a text, by its hash
        for space, hashes, result in batch.encodings:
            vectors, places, spent, node = result()
            usable = [hashes[place] for place in places]
            for digest, vector in zip(usable, vectors, strict=True):
                batch.vectors[space.id, digest] = vector
            refused |= dict.fromkeys(set(hashes).difference(usable), space.spec)
            seconds += spent
            encoded.update(hashes)
            if node:
                nodes[node] += len(hashes)
        documents = max(len(batch.changes), FIRST_BATCH_DOCUMENTS)
        self._in_time = int(documents * BATCH_SECONDS / max(seconds, 1e-3))
        self._characters = BATCH_CHARACTERS
        self._leave_out(batch, _without_vector(batch, refused))
        changes = Counter(change.change for change in batch.changes)
        if new := batch.new_documents():
            self.writer.put(new, batch.vectors)
        return Summary(
            added=changes[Change.ADDED],
            changed=changes[Change.CHANGED],
            metadata_changed=changes[Change.METADATA_CHANGED],
            unchanged=changes[Change.UNCHANGED],
            passages=sum(map(len, batch.passages.values())),
            encoded=len(encoded),
            nodes=nodes,
        )

    def _leave_out(self, batch: _Batch, reasons: Mapping[str, str]) -> None:
        """Remove documents, which are bad rows, by their ids."""
        if not reasons:
            return
        for change in batch.changes:
            if change.id in reasons:
                source = change.document.source or f"document '{change.id}'"
                self.on_bad_row(BadRowError(source, reasons[change.id]))
        batch.changes = [change for change in batch.changes if change.id not in reasons]
        for name in reasons:
            batch.passages.pop(name, None)


def _without_vector(batch: _Batch, refused: Mapping[str, str]) -> dict[str, str]:
    """Why documents have a passage without a vector, by their ids."""
    reason = "encoder '{}' returns no unit vector for its text (NaN, zero or not normalised)"
    return {
        name: reason.format(refused[passage.text_hash])
        for name, passages in batch.passages.items()
        for passage in passages
        if passage.text_hash in refused
    }


def complete_space(writer: Writer, space: Space, pool: EncoderPool) -> Iterator[Summary]:
    """Encode the stored passages that have no vector in a space, one transaction per batch.

    Yields:
        After each commit, what was encoded so far.

    Raises:
        NoVectorError: the encoder returns no vector for some passages; all others were written.
    """
    started = time.perf_counter()
    encoded = Summary()
    refused: list[str] = []  # the ids of documents with a passage that has no vector
    submitted = (
        (passages, pool.submit(space, [text for _, text, _ in passages]))
        for passages in _passages_without_vector(writer, space)
    )
    for passages, result in pipelined(submitted, pool):
        vectors, places, _, node = result()
        writer.put_vectors(space, [passages[place][0] for place in places], vectors)
        refused += [name for place, (*_, name) in enumerate(passages) if place not in places]
        encoded += Summary(encoded=len(places), nodes=Counter({node: len(places)} if node else {}))
        yield replace(encoded, seconds=time.perf_counter() - started)
    if refused:
        raise NoVectorError(
            f"encoder '{space.spec}' returns no unit vector (NaN, zero or not normalised) for "
            f"{quantity(len(refused), 'passage')}, the first of '{refused[0]}'; delete these "
            f"documents, then run: semsearch configure --add-space {quoted(space.spec)}",
        )
    writer.complete(space)


def _passages_without_vector(writer: Writer, space: Space) -> Iterator[list[tuple[int, str, str]]]:
    """Batches of passages without a vector: passage id, text and document id."""
    last = 0
    while True:
        with writer.read() as reader:
            passages = reader.passages_without_vector(space, last, BATCH_PASSAGES)
        if not passages:
            return
        last = passages[-1][0]
        yield passages
