"""Comparison of documents with an index, and the record of those that a run has read."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from semsearch.errors import BadRowError
from semsearch.records import Document
from semsearch.storage.interface import Reader, StoredDocument, text_hash

#: The maximum size of a batch.
BATCH_DOCUMENTS, BATCH_CHARACTERS = 4096, 1_000_000

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


_SEEN = "CREATE TABLE seen (id TEXT PRIMARY KEY, source TEXT, repeats INTEGER) WITHOUT ROWID"


class Seen(NamedTuple):
    """A document that the run has read."""

    source: str
    repeats: int  #: later documents with the same content and no id


class SeenDocuments:
    """The documents that a run has read, by id, in a temporary file: they can be millions."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)  # SQLite deletes its file
        self._database.execute(_SEEN)

    def find(self, ids: Sequence[str]) -> dict[str, Seen]:
        """Those of these documents that the run has read."""
        query = "SELECT * FROM seen WHERE id IN (SELECT value FROM json_each(?))"
        rows = self._database.execute(query, [json.dumps(ids)])
        return {name: Seen(source, repeats) for name, source, repeats in rows}

    def add(self, seen: Mapping[str, Seen]) -> None:
        """Add documents, or replace their records."""
        rows = [(name, *record) for name, record in seen.items()]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", rows)

    def add_ids(self, ids: Iterable[str]) -> None:
        """Add documents that were not read but count as read."""
        self.add({name: Seen("", 0) for name in ids})

    def missing_from(self, ids: Iterable[str]) -> list[str]:
        """Those of these documents that the run has not read."""
        query = "SELECT 1 FROM seen WHERE id = ?"
        return [name for name in ids if not self._database.execute(query, [name]).fetchone()]

    def close(self) -> None:
        """Delete the records."""
        self._database.close()


class Change(Enum):
    """How a document differs from the index."""

    ADDED = "added"
    CHANGED = "changed"
    METADATA_CHANGED = "metadata changed"
    UNCHANGED = "unchanged"


class DocumentChange(NamedTuple):
    """A document of the corpus and how it differs from the index."""

    change: Change
    id: str
    document: Document
    metadata: str  #: JSON
    text_hash: str

    @property
    def has_new_text(self) -> bool:
        """Whether its text has to be split and encoded."""
        return self.change in (Change.ADDED, Change.CHANGED)


def next_documents(
    corpus: Iterator[Document], count: int = BATCH_DOCUMENTS, characters: int = BATCH_CHARACTERS
) -> list[Document]:
    """The next documents: at most `count`, with about `characters` in all; none at the end."""
    documents: list[Document] = []
    for document in corpus:
        documents.append(document)
        characters -= len(document.text)
        if len(documents) == count or characters <= 0:
            break
    return documents


def compare(
    reader: Reader,
    seen: SeenDocuments,
    batch: Sequence[Document],
    on_bad_row: Callable[[BadRowError], None],
) -> list[DocumentChange]:
    """Compare a batch with the index, by id and content.

    Documents whose id this run has already read are passed to `on_bad_row`. A document without an
    id gets the hash of its text as id, with a number appended for further documents of that text.
    """
    named = _named(seen, batch, on_bad_row)
    stored = reader.stored_documents([name for name, _ in named])
    changes = []
    for name, document in named:
        metadata = _JSON.encode(document.metadata)
        digest = text_hash(document.text)
        change = _change(stored.get(name), document.title, metadata, digest)
        changes.append(DocumentChange(change, name, document, metadata, digest))
    return changes


def _change(stored: StoredDocument | None, title: str | None, metadata: str, digest: str) -> Change:
    if stored is None:
        return Change.ADDED
    if stored.text_hash != digest:
        return Change.CHANGED
    if (stored.title, stored.metadata) == (title, metadata):
        return Change.UNCHANGED
    return Change.METADATA_CHANGED


def _named(
    seen_documents: SeenDocuments,
    batch: Sequence[Document],
    on_bad_row: Callable[[BadRowError], None],
) -> list[tuple[str, Document]]:
    """The documents with their ids, marked as seen, without duplicates."""
    names = [document.id or content_id(document.text) for document in batch]
    seen = seen_documents.find(names)
    named = []
    for name, document in zip(names, batch, strict=True):
        before = seen.get(name)
        if before and document.id is not None:
            first = f" (first in {before.source})" if before.source else ""
            on_bad_row(BadRowError(document.source, f"duplicate id '{name}'{first}"))
            continue
        if before:
            seen[name] = before._replace(repeats=before.repeats + 1)
            name = f"{name}-{before.repeats + 2}"
        seen[name] = Seen(document.source, 0)
        named.append((name, document))
    seen_documents.add(seen)
    return named


def content_id(text: str) -> str:
    """The id of a document without one, derived from its text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
