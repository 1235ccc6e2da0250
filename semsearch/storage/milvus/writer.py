"""Writing an index on Milvus, which has no transactions.

A document's row is written first, without the hash of its text, then its passages with their
vectors, then its row again, with the hash. If the command is killed before, the next one that reads
the document writes it again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count, pairwise
from typing import Any, NoReturn

from semsearch.errors import ArgumentError, quantity
from semsearch.protocols import Encoder, Matrix
from semsearch.storage.interface import Fault, NewDocument, Selection, Settings, TextVectors
from semsearch.storage.milvus.conditions import filter_json, held_kinds
from semsearch.storage.milvus.connection import Connection, Row
from semsearch.storage.milvus.reader import FINISHED, UNFINISHED, MilvusReader
from semsearch.storage.milvus.schema import (
    DOCUMENT_COLUMNS,
    MAX_BYTES,
    NO_VECTOR,
    PASSAGE_COLUMNS,
    IndexRecord,
    create_collection,
    passage_ids,
)
from semsearch.storage.spaces import Space, described_space
from semsearch.vector_indexes import IndexType

logger = logging.getLogger(__name__)


class MilvusWriter:
    """The right to write; see `semsearch.storage.interface.Writer`."""

    def __init__(self, connection: Connection, record: IndexRecord) -> None:
        self._connection = connection
        self._state = MilvusReader(connection, record)

    @contextmanager
    def read(self) -> Iterator[MilvusReader]:
        """The current state, which no other writer of this machine changes."""
        yield self._state

    def put(self, documents: Sequence[NewDocument], vectors: TextVectors) -> None:
        state = self._state
        kept = state.passages_of([one.id for one in documents if one.passages is None])
        documents = [one._replace(passages=kept.get(one.id, one.passages)) for one in documents]
        hashes = {passage.text_hash for passages in kept.values() for passage in passages}
        vectors = {**state.vectors_of_texts(sorted(hashes)), **vectors}
        former = state.named([document.id for document in documents], DOCUMENT_COLUMNS)
        numbers = {row["id"]: row["document"] for row in former}
        unused = count(state.record.last_document + 1)
        rows = [_document_row(one, numbers.get(one.id) or next(unused)) for one in documents]
        kinds = {tuple(pair) for pair in state.record.kinds}
        kinds.update(pair for row in rows for pair in held_kinds(row["fields"]))
        self._change(last_document=next(unused) - 1, kinds=sorted(kinds))
        self._remove_passages(former)
        self._put_documents(rows, text_hash="")
        pairs = zip(documents, rows, strict=True)
        passages = [passage for pair in pairs for passage in _passage_rows(*pair)]
        for space in state.spaces():
            written = (row | {"vector": vectors[space.id, row["text_hash"]]} for row in passages)
            self._connection.upsert(self._connection.passages(space), written)
        self._put_documents(rows)

    def oversized_documents(self, documents: Sequence[NewDocument]) -> dict[str, str]:
        found: dict[str, str] = {}
        for document in documents:
            row = _document_row(document, 0)
            for name, value in chain(row.items(), *map(dict.items, _passage_rows(document, row))):
                text = json.dumps(value, ensure_ascii=False) if name == "fields" else value
                if isinstance(text, str) and (size := len(text.encode())) > MAX_BYTES:
                    reason = f"its '{name}' has {size:,} bytes; Milvus takes up to {MAX_BYTES:,}"
                    found.setdefault(document.id, reason)
        return found

    def remove(self, selection: Selection) -> int:
        removed = 0
        for documents in self._state.selected(selection, DOCUMENT_COLUMNS):
            self._remove_passages(documents)
            names = [row["id"] for row in documents]
            self._connection.delete(self._connection.name, "id", names)
            removed += len(documents)
        return removed

    def configure(self, settings: Settings) -> None:
        if settings.index_type.recall != IndexType().recall:
            raise ArgumentError("on Milvus, the recall cannot be chosen")
        if settings.language is not None:
            raise ArgumentError("on Milvus, BM25 has no languages")
        self._change(settings=settings)

    def add_space(self, encoder: Encoder) -> Space:
        """Add a space to an index without documents.

        Raises:
            ArgumentError: the index has documents.
        """
        if self._state.count():
            raise ArgumentError(
                f"on Milvus, a space is added before the documents: index them under another name "
                f"than {self._connection.address}"
            )
        spaces = self._state.spaces()
        space = described_space(encoder, spaces, complete=True)
        collection = self._connection.passages(space)
        create_collection(self._connection, collection, PASSAGE_COLUMNS, space.dimension)
        self._change(spaces=[*spaces, space])
        return space

    def drop_space(self, space: Space) -> None:
        self._change(spaces=[one for one in self._state.spaces() if one.id != space.id])
        self._connection.call("drop_collection", self._connection.passages(space))

    def put_vectors(self, space: Space, passage_ids: Sequence[int], vectors: Matrix) -> NoReturn:
        """Refused: all passages have vectors."""
        raise ArgumentError("an index on Milvus lacks no vectors")

    def complete(self, space: Space) -> None:
        """All spaces are."""

    def describe(self, space: Space, description: Mapping[str, Any]) -> None:
        new = space._replace(description=dict(description))
        self._change(spaces=[new if one.id == space.id else one for one in self._state.spaces()])

    def index_field(self, name: str) -> NoReturn:
        """Refused: Milvus tests the fields of all documents."""
        raise ArgumentError("an index on Milvus has no indexes of fields")

    def optimise(self) -> None:
        """Milvus indexes vectors by itself."""

    def compact(self) -> None:
        """Ask Milvus to rewrite its files without deleted rows, which it does in its own time."""
        spaces = map(self._connection.passages, self._state.spaces())
        for collection in (self._connection.name, *spaces):
            self._connection.call("compact", collection)

    def verify(self) -> list[Fault]:
        faults = []
        if names := self._unfinished():
            unfinished = quantity(len(names), "document")
            faults.append(Fault(f"{unfinished} not wholly written, such as '{names[0]}'"))
        pages = self._state.pages(["passages"], FINISHED)
        passages = sum(row["passages"] for page in pages for row in page)
        for space in self._state.spaces():
            size = self._state.size(self._connection.passages(space))
            if size != passages:
                what = f"space '{space.name}' has {size:,} vectors for {passages:,} passages"
                faults.append(Fault(what, repairable=False))
        return faults

    def repair(self) -> None:
        """Remove documents that are not wholly written."""
        if names := self._unfinished():
            logger.warning("not wholly written, removed; index again: %s", ", ".join(names))
            self.remove(Selection(names))

    def _unfinished(self) -> list[str]:
        """The ids of documents that a killed command left."""
        return [row["id"] for page in self._state.pages([], UNFINISHED) for row in page]

    def _change(self, **changes: Any) -> None:
        """Change some of the record."""
        changed = self._state.record._replace(**changes)
        self._connection.upsert(self._connection.name, [changed.row()])
        self._state.record = changed

    def _put_documents(self, rows: Iterable[Row], **changes: str) -> None:
        whole = (row | changes | {"vector": NO_VECTOR} for row in rows)
        self._connection.upsert(self._connection.name, whole)

    def _remove_passages(self, documents: Sequence[Row]) -> None:
        """Remove the passages of documents, which are marked as unfinished before."""
        self._put_documents(documents, text_hash="")
        for space in self._state.spaces():
            collection = self._connection.passages(space)
            self._connection.delete(collection, "passage", passage_ids(documents))


def _document_row(document: NewDocument, number: int) -> Row:
    return {
        "id": document.id,
        "document": number,
        "passages": len(document.passages or ()),
        "title": json.dumps(document.title, ensure_ascii=False),
        "metadata": document.metadata,
        "text_hash": document.text_hash,
        "fields": filter_json(document.id, document.title, document.metadata),
    }


def _passage_rows(document: NewDocument, owner: Row) -> list[Row]:
    """The rows of the passages of a document, whose own row is given."""
    passages = document.passages or ()
    spans = chain.from_iterable((passage.start, passage.end) for passage in passages)
    bounds = [0, *spans, len(document.text)]
    gaps = [document.text[end:start] for end, start in pairwise(bounds)][::2]
    own = {"id": owner["id"], "document": owner["document"], "fields": owner["fields"]}
    rows = [
        own | passage._asdict() | {"passage": number, "before": before, "after": ""}
        for number, passage, before in zip(passage_ids([owner]), passages, gaps, strict=False)
    ]
    if rows:
        rows[-1]["after"] = gaps[-1]
    return rows
