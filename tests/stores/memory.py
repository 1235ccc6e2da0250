"""An in-memory store: a minimal second implementation of the protocol."""

from __future__ import annotations

import bisect
import json
import math
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy
from conditions_model import holds

from semsearch.analysis import Analyser
from semsearch.analysis.forms import searchable
from semsearch.errors import IndexBusyError, IndexClosedError, SpaceError
from semsearch.filters import Condition, Value
from semsearch.protocols import Encoder, Matrix
from semsearch.records import BUILT_IN_FIELDS, Chunk, Document, metadata_field
from semsearch.stores.filtering import is_date
from semsearch.stores.protocol import (
    EVERYTHING,
    NO_RESTRICTION,
    Candidate,
    Fault,
    Field,
    FoundPassage,
    Kind,
    NewDocument,
    NewPassage,
    Passages,
    Restriction,
    Seen,
    Selection,
    Space,
    StoredDocument,
    StoreInfo,
    TextVectors,
    check_searchable,
)
from semsearch.vector_indexes import IndexType


@dataclass(frozen=True)
class Content:
    """Everything that is committed; replaced as a whole, never modified."""

    max_tokens: int
    spaces: tuple[Space, ...] = ()
    documents: Mapping[str, NewDocument] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)  # document numbers by id
    chunks: Mapping[int, Chunk] = field(default_factory=dict)
    hashes: Mapping[int, str] = field(default_factory=dict)  # by chunk
    vectors: Mapping[tuple[int, int], Matrix] = field(default_factory=dict)  # by space and chunk
    last_chunk: int = 0
    unfinished_sync: int | None = None


class MemoryState:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._content = store.content

    @property
    def max_tokens(self) -> int:
        return self._content.max_tokens

    index_type = IndexType()

    @property
    def unfinished_sync(self) -> int | None:
        return self._content.unfinished_sync

    def spaces(self) -> list[Space]:
        return list(self._content.spaces)

    def info(self) -> StoreInfo:
        fields = [
            Field(name, dict(self._kinds(name)), self.example(metadata_field(name), list(Kind)))
            for name in self.field_names()
        ]
        content = self._content
        return StoreInfo(
            2, len(content.documents), len(content.chunks), fields, self.spaces(), {}, {}, None, []
        )

    def count(self, selection: Selection = EVERYTHING) -> int:
        return len(self.ids(selection))

    def ids(self, selection: Selection = EVERYTHING, limit: int | None = None) -> list[str]:
        wanted = None if selection.ids is None else set(selection.ids)
        found = [
            name
            for name, document in self._content.documents.items()
            if (wanted is None or name in wanted)
            and (selection.condition is None or holds(selection.condition, _row(document)))
            and not (selection.unseen and name in self._store.run)
        ]
        return sorted(found, key=lambda name: self._content.numbers[name])[:limit]

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        held = self._content.documents
        return {name: _document(held[name]) for name in ids if name in held}

    def documents_after(self, last: int, limit: int) -> dict[int, Document]:
        content = self._content
        numbered = {content.numbers[name]: one for name, one in content.documents.items()}
        found = sorted(number for number in numbered if number > last)[:limit]
        return {number: _document(numbered[number]) for number in found}

    def known(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        content = self._content
        return {
            name: StoredDocument(content.numbers[name], one.title, one.metadata, one.text_hash)
            for name in ids
            if (one := content.documents.get(name))
        }

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        found = {}
        for chunk in self._chunks():
            if chunk.document_id in ids:
                passage = NewPassage(
                    chunk.start, chunk.end, chunk.text, self._content.hashes[chunk.id]
                )
                found.setdefault(chunk.document_id, []).append(passage)
        return found

    def vectors_of(self, hashes: Sequence[str]) -> TextVectors:
        wanted = set(hashes)
        return {
            (space_id, digest): vector
            for (space_id, chunk_id), vector in self._content.vectors.items()
            if (digest := self._content.hashes[chunk_id]) in wanted
        }

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        check_searchable(space, self.spaces())
        chunks = self._chunks(condition)
        return Passages(
            [chunk.document_id for chunk in chunks],
            numpy.array([self._content.numbers[chunk.document_id] for chunk in chunks], int),
            numpy.array([chunk.id for chunk in chunks], int),
            [chunk.text for chunk in chunks],
            self._matrix(space, chunks),
        )

    def document_vectors(self, space: Space, ids: Sequence[str]) -> dict[str, Matrix]:
        check_searchable(space, self.spaces())
        chunks = self._chunks()
        found = {name: [one for one in chunks if one.document_id == name] for name in ids}
        return {name: self._matrix(space, held) for name, held in found.items() if held}

    def lacking(self, space: Space, after: int, limit: int) -> list[tuple[int, str, str]]:
        return [
            (chunk.id, chunk.text, chunk.document_id)
            for chunk in self._chunks()
            if chunk.id > after and (space.id, chunk.id) not in self._content.vectors
        ][:limit]

    def prepare(self, space: Space) -> None:
        check_searchable(space, self.spaces())

    def search_vectors(
        self,
        space: Space,
        queries: Matrix,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
    ) -> list[list[Candidate]]:
        check_searchable(space, self.spaces())
        chunks = self._restricted(restriction)
        scores = (queries @ self._matrix(space, chunks).T).round(6).tolist()
        return [self._best(zip(chunks, row, strict=True), k, per_document) for row in scores]

    def plan(self, space: Space, k: int, restriction: Restriction = NO_RESTRICTION) -> str:
        return "exact"

    def search_words(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
        phrases: Sequence[str] = (),
    ) -> list[Candidate]:
        """BM25 (k1 = 1.2, b = 0.75; Robertson & Zaragoza 2009), without stemming."""
        words = {chunk.id: _words(chunk.text) for chunk in self._chunks()}
        mean = sum(map(len, words.values())) / max(len(words), 1)
        terms = [tuple(_words(term)) for term in Analyser().query_terms(text)]
        raised = [tuple(_words(phrase)) for phrase in phrases]
        terms += raised
        scored = []
        for chunk in self._chunks():
            found = words[chunk.id]
            score = 0.0
            for term in filter(None, terms):
                holding = sum(_count(others, term) > 0 for others in words.values())
                weight = math.log((len(words) - holding + 0.5) / (holding + 0.5))
                length = 0.25 + 0.75 * len(found) / mean
                times = _count(found, term)
                # As FTS5 does: a word in more than half of all passages still counts.
                score += max(weight, 1e-6) * times * 2.2 / (times + 1.2 * length)
            if score:
                scored.append((chunk, score))
        best = max((score for _, score in scored), default=0)
        allowed = self._restricted(restriction)
        scored = [
            (chunk, score + best * sum(_count(words[chunk.id], term) > 0 for term in raised))
            for chunk, score in scored
            if chunk in allowed
        ]
        return self._best(scored, k, per_document)

    def matched_words(self, text: str, chunk_ids: Sequence[int]) -> dict[int, list[str]]:
        terms = [_words(term) for term in Analyser().query_terms(text)]
        found = {}
        for chunk_id in chunk_ids:
            held = _words(self._content.chunks[chunk_id].text)
            met = {
                word
                for term in terms
                if _count(held, tuple(term))
                for word in ([" ".join(term)] if term else [])
            }
            if met:
                found[chunk_id] = [word for word in dict.fromkeys(held) if word in met] or [*met]
        return found

    def chunk_vectors(self, space: Space, chunk_ids: Sequence[int]) -> Matrix:
        return self._matrix(space, [self._content.chunks[chunk_id] for chunk_id in chunk_ids])

    def fetch(
        self, chunk_ids: Sequence[int], *, missing_ok: bool = False
    ) -> dict[int, FoundPassage]:
        found = {}
        for chunk_id in chunk_ids:
            if missing_ok and chunk_id not in self._content.chunks:
                continue
            chunk = self._content.chunks[chunk_id]
            document = self._content.documents[chunk.document_id]
            found[chunk_id] = FoundPassage(chunk, json.loads(document.metadata), document.title)
        return found

    def check(self, condition: Condition) -> None:
        pass

    def field_names(self) -> list[str]:
        documents = self._content.documents.values()
        return sorted({name for one in documents for name in json.loads(one.metadata)})

    def kinds_of(self, names: Iterable[str]) -> dict[str, set[Kind]]:
        known = self.field_names()
        return {
            name: {Kind(kind.rpartition(" ")[2]) for kind in self._kinds(name)}
            for name in names
            if name in known
        }

    def example(self, field: str, kinds: Iterable[Kind]) -> Value | None:
        wanted = {Kind.TEXT, Kind.DATE, Kind.NUMBER, Kind.BOOLEAN}.intersection(kinds)
        return next((value for value in self._values(field) if _kind(value) in wanted), None)

    def dates(self, field: str) -> list[str]:
        return [value for value in self._values(field) if _kind(value) is Kind.DATE]

    def matches(self, condition: Condition) -> bool:
        return self.count(Selection(condition=condition)) > 0

    def neighbours(self, field: str, value: Value) -> list[Value]:
        same = str if isinstance(value, str) else (int, float)
        ordered = sorted(
            each
            for each in self._values(field)
            if isinstance(each, same) and not isinstance(each, bool)
        )
        place = bisect.bisect_left(ordered, value)
        return list(dict.fromkeys([*ordered[:place][-1:], *ordered[place : place + 1]]))

    def texts_of(self, field: str, max_characters: int) -> list[str]:
        texts = (value for value in self._values(field) if isinstance(value, str))
        return list(dict.fromkeys(text for text in texts if len(text) <= max_characters))

    def begin_run(self) -> None:
        self._store.run = {}

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        return {name: self._store.run[name] for name in ids if name in self._store.run}

    def mark_seen(self, seen: Mapping[str, Seen]) -> None:
        self._store.run |= seen

    def _chunks(self, condition: Condition | None = None) -> list[Chunk]:
        documents = self._content.documents
        return [
            chunk
            for _, chunk in sorted(self._content.chunks.items())
            if condition is None or holds(condition, _row(documents[chunk.document_id]))
        ]

    def _matrix(self, space: Space, chunks: Sequence[Chunk]) -> Matrix:
        rows = [self._content.vectors[space.id, chunk.id] for chunk in chunks]
        return numpy.array(rows, numpy.float32).reshape(len(rows), space.dimension)

    def _restricted(self, restriction: Restriction) -> list[Chunk]:
        with_phrase = [
            {
                chunk.document_id
                for chunk in self._chunks()
                if _count(_words(chunk.text), tuple(_words(phrase)))
            }
            for phrase in (*restriction.required, *restriction.excluded)
        ]
        required = with_phrase[: len(restriction.required)]
        excluded = with_phrase[len(restriction.required) :]
        return [
            chunk
            for chunk in self._chunks(restriction.condition)
            if all(chunk.document_id in held for held in required)
            and not any(chunk.document_id in held for held in excluded)
        ]

    def _best(
        self, scored: Iterable[tuple[Chunk, float]], k: int, per_document: int
    ) -> list[Candidate]:
        best: list[Candidate] = []
        taken: Counter[int] = Counter()
        for chunk, score in sorted(scored, key=lambda pair: (-pair[1], pair[0].id)):
            number = self._content.numbers[chunk.document_id]
            taken[number] += 1
            if taken[number] <= per_document:
                best.append(Candidate(number, chunk.id, score))
        return best[:k]

    def _values(self, field: str) -> Iterator[Any]:
        for document in self._content.documents.values():
            value = _row(document).get(field)
            yield from value if isinstance(value, list) and value else [value]

    def _kinds(self, name: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        for document in self._content.documents.values():
            row = json.loads(document.metadata)
            if name in row:
                value = row[name]
                in_list = isinstance(value, list) and value
                prefix = "list of " if in_list else ""
                counts.update(
                    {prefix + _kind(each).value for each in (value if in_list else [value])}
                )
        return counts


class MemoryWriter:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.closed = False

    @contextmanager
    def state(self) -> Iterator[MemoryState]:
        self._check_open()
        yield MemoryState(self._store)

    def put(self, documents: Sequence[NewDocument], vectors: TextVectors) -> None:
        self._check_open()
        content = self._store.content
        kept = {one.id for one in documents if one.passages is not None}
        chunks = {
            number: chunk
            for number, chunk in content.chunks.items()
            if chunk.document_id not in kept
        }
        hashes = {number: content.hashes[number] for number in chunks}
        stored = {key: row for key, row in content.vectors.items() if key[1] in chunks}
        numbers, last = dict(content.numbers), content.last_chunk
        for one in documents:
            numbers.setdefault(one.id, max(numbers.values(), default=0) + 1)
            for passage in one.passages or ():
                last += 1
                chunks[last] = Chunk(last, one.id, passage.start, passage.end, passage.text)
                hashes[last] = passage.text_hash
                for space in content.spaces:
                    stored[space.id, last] = vectors[space.id, passage.text_hash]
        self._store.content = replace(
            content,
            documents={**content.documents, **{one.id: one for one in documents}},
            numbers=numbers,
            chunks=chunks,
            hashes=hashes,
            vectors=stored,
            last_chunk=last,
        )

    def remove(self, selection: Selection) -> int:
        self._check_open()
        content = self._store.content
        removed = set(MemoryState(self._store).ids(selection))
        chunks = {
            number: chunk
            for number, chunk in content.chunks.items()
            if chunk.document_id not in removed
        }
        documents = {name: one for name, one in content.documents.items() if name not in removed}
        self._store.content = replace(
            content,
            documents=documents,
            numbers={name: content.numbers[name] for name in documents},
            chunks=chunks,
            vectors={key: row for key, row in content.vectors.items() if key[1] in chunks},
        )
        return len(removed)

    def note_sync(self, documents: int | None) -> None:
        self._store.content = replace(self._store.content, unfinished_sync=documents)

    def add_space(self, encoder: Encoder, dtype: str | None) -> Space:
        self._check_open()
        return self._store.add_space(encoder, dtype, complete=False)

    def drop_space(self, space: Space) -> None:
        content = self._store.content
        self._store.content = replace(
            content,
            spaces=tuple(other for other in content.spaces if other.id != space.id),
            vectors={key: row for key, row in content.vectors.items() if key[0] != space.id},
        )

    def put_vectors(self, space: Space, chunk_ids: Sequence[int], vectors: Matrix) -> None:
        content = self._store.content
        new = {(space.id, number): row for number, row in zip(chunk_ids, vectors, strict=True)}
        self._store.content = replace(content, vectors={**content.vectors, **new})

    def mark_complete(self, space: Space) -> None:
        content = self._store.content
        spaces = [
            other._replace(complete=True) if other.id == space.id else other
            for other in content.spaces
        ]
        self._store.content = replace(content, spaces=tuple(spaces))

    def choose_index_type(self, wanted):
        """Ignored: every search compares all vectors."""

    def index_field(self, name):
        """Ignored: every filter scans all documents."""

    def set_language(self, language):
        """Ignored: there is no stemming."""

    def optimise(self, *, thoroughly: bool = False) -> None:
        pass

    def compact(self) -> None:
        pass

    def verify(self) -> list[Fault]:
        return []

    def repair(self) -> None:
        content = self._store.content
        spaces = tuple(space._replace(complete=False) for space in content.spaces)
        self._store.content = replace(content, spaces=spaces)

    def _check_open(self) -> None:
        if self.closed:
            raise IndexClosedError("the writer is closed")


class MemoryStore:
    path = Path("memory")

    def __init__(
        self, max_tokens: int, encoders: Iterable[Encoder], dtype: str | None = None
    ) -> None:
        self.content = Content(max_tokens)
        self.run: dict[str, Seen] = {}
        self._lock = threading.Lock()
        for encoder in encoders:
            self.add_space(encoder, dtype, complete=True)

    def add_space(self, encoder: Encoder, dtype: str | None, *, complete: bool) -> Space:
        spaces = self.content.spaces
        if any(space.name == encoder.spec for space in spaces):
            raise SpaceError(f"there is a space '{encoder.spec}' already")
        space = Space(
            max((space.id for space in spaces), default=0) + 1,
            encoder.spec,
            encoder.spec,
            encoder.fingerprint,
            encoder.dimension,
            dtype or "float32",
            complete,
            dict(encoder.description()),
        )
        self.content = replace(self.content, spaces=(*spaces, space))
        return space

    @contextmanager
    def read(self) -> Iterator[MemoryState]:
        yield MemoryState(self)

    @contextmanager
    def writer(self, *, wait: bool = False) -> Iterator[MemoryWriter]:
        if not self._lock.acquire(blocking=wait):
            raise IndexBusyError("the store is being written")
        writer = MemoryWriter(self)
        try:
            yield writer
        finally:
            writer.closed = True
            self._lock.release()

    def close(self) -> None:
        pass


def _row(document: NewDocument) -> dict[str, Any]:
    """A document's fields, named as in conditions."""
    metadata = json.loads(document.metadata)
    row = {metadata_field(name): value for name, value in metadata.items()}
    return row | dict(zip(BUILT_IN_FIELDS, (document.id, document.title), strict=True))


def _document(new: NewDocument) -> Document:
    return Document(new.id, new.text, new.title, json.loads(new.metadata))


def _kind(value: Any) -> Kind:
    if isinstance(value, str):
        return Kind.DATE if len(value) >= 10 and is_date(value) else Kind.TEXT
    kinds = {bool: Kind.BOOLEAN, dict: Kind.OBJECT, list: Kind.LIST, type(None): Kind.NULL}
    return kinds.get(type(value), Kind.NUMBER)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", searchable(text).lower())


def _count(words: Sequence[str], term: tuple[str, ...]) -> int:
    """How often the words of a term occur in sequence."""
    width = len(term)
    return sum(tuple(words[n : n + width]) == term for n in range(len(words))) if term else 0
