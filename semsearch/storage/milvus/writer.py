"""Writing an index on Milvus, which has no transactions.

A document's row is written first, without the hash of its text, then its passages and vectors, over
former ones with the same ids; at last, its row is written again, with the hash. If the command is
killed before, the next one that reads the document writes it again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count, pairwise
from typing import Any, NoReturn

from semsearch.errors import SpaceError, UnsupportedByStoreError, quantity
from semsearch.protocols import Encoder, Matrix
from semsearch.storage.interface import Fault, NewDocument, Selection, Settings, TextVectors
from semsearch.storage.milvus.conditions import filter_json, held_kinds
from semsearch.storage.milvus.connection import Connection, Row
from semsearch.storage.milvus.reader import FINISHED, UNFINISHED, MilvusReader
from semsearch.storage.milvus.schema import (
    APPROXIMATE,
    DOCUMENT_COLUMNS,
    EXACT,
    MAX_BYTES,
    NO_VECTOR,
    PASSAGE_COLUMNS,
    IndexRecord,
    build_index,
    create_space,
    passage_ids,
)
from semsearch.storage.spaces import Space, described_space
from semsearch.vector_indexes import FLAT, IndexType, chosen_kind

logger = logging.getLogger(__name__)


class MilvusWriter:
    """The right to write; see `semsearch.storage.interface.Writer`.

    Args:
        connection: to Milvus.
        record: of the index.
    """

    def __init__(self, connection: Connection, record: IndexRecord) -> None:
        self._connection = connection
        self._record = record

    @contextmanager
    def read(self) -> Iterator[MilvusReader]:
        """The current state, which no other writer of this machine changes."""
        yield self._state()

    def put(self, documents: Sequence[NewDocument], vectors: TextVectors) -> None:
        """Add documents, or update those with the same ids."""
        state = self._state()
        documents, vectors = _with_kept_passages(state, documents, vectors)
        names = [document.id for document in documents]
        stored = {row["id"]: row for row in state.named(names, ["passages"])}
        numbers = count(state.record.last_document + 1)
        written = [
            _document_row(one, stored[one.id]["document"] if one.id in stored else next(numbers))
            for one in documents
        ]
        passages = [
            row
            for document, owner in zip(documents, written, strict=True)
            for row in _passage_rows(document, owner)
        ]
        kinds = {pair for row in written for pair in held_kinds(row["fields"])}
        kinds.update((name, kind) for name, kind in state.record.kinds)
        self._change(last_document=next(numbers) - 1, kinds=sorted(map(list, kinds)))
        unfinished = [
            row | {"passages": max(row["passages"], stored.get(row["id"], row)["passages"])}
            for row in written
        ]
        self._put_documents(unfinished, text_hash="")
        for space in state.spaces():
            self._write_vectors(space, passages, vectors)
        self._delete_passages(sorted({*passage_ids(unfinished)} - {*passage_ids(written)}))
        self._put_documents(written)

    def oversized_documents(self, documents: Sequence[NewDocument]) -> dict[str, str]:
        """Why Milvus cannot hold documents, by the ids of those that are too large."""
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
        """Remove documents with their passages and vectors; returns their number."""
        removed = 0
        for documents in self._state().selected(selection, [*DOCUMENT_COLUMNS]):
            self._put_documents(documents, text_hash="")
            self._delete_passages(passage_ids(documents))
            names = [row["id"] for row in documents]
            self._connection.delete(self._connection.target.name, "id", names)
            removed += len(documents)
        return removed

    def configure(self, settings: Settings) -> None:
        """Change the settings of the index."""
        if settings.index_type.recall != IndexType().recall:
            raise UnsupportedByStoreError("on Milvus, the recall cannot be chosen")
        if settings.language is not None:
            raise UnsupportedByStoreError("on Milvus, BM25 has no languages")
        self._change(settings=settings)

    def add_space(self, encoder: Encoder, dtype: str | None) -> Space:
        """Add a space, which is incomplete."""
        state = self._state()
        spaces = state.spaces()
        space = described_space(encoder, dtype, spaces, complete=not state.count())
        create_space(self._connection, state.record, space)
        self._change(spaces=[*spaces, space])
        return space

    def drop_space(self, space: Space) -> None:
        """Remove a space with its vectors.

        Raises:
            SpaceError: only this space has all passages.
        """
        kept = [one for one in self._state().spaces() if one.id != space.id]
        if not kept[0].complete:
            raise SpaceError(f"space '{kept[0].name}' lacks vectors; complete it first")
        self._change(spaces=kept)
        self._connection.call("drop_collection", self._connection.target.passages(space))

    def put_vectors(self, space: Space, passage_ids: Sequence[int], vectors: Matrix) -> None:
        """Add the missing vectors of passages."""
        state = self._state()
        rows = state.by_id(state.base, passage_ids, PASSAGE_COLUMNS)
        hashes = [(space.id, row["text_hash"]) for row in rows]
        self._write_vectors(space, rows, dict(zip(hashes, vectors, strict=True)))

    def complete(self, space: Space) -> None:
        """Make a space searchable, once each passage has a vector."""
        spaces = self._state().spaces()
        self._change(
            spaces=[one._replace(complete=one.complete or one.id == space.id) for one in spaces]
        )

    def index_field(self, name: str) -> NoReturn:
        """Refused: Milvus tests the fields of all documents."""
        raise UnsupportedByStoreError("an index on Milvus has no indexes of fields")

    def optimise(self) -> None:
        """Let Milvus build another kind of vector index if one is requested or due."""
        state = self._state()
        widest = max((space.dimension for space in state.spaces()), default=0)
        wanted = chosen_kind(state.settings().index_type, state.size(state.base), widest)
        kind = EXACT if wanted == FLAT else APPROXIMATE
        if kind != state.record.index_kind:
            for collection in map(state.target.passages, state.spaces()):
                self._connection.call("release_collection", collection)
                self._connection.call("drop_index", collection, "vector")
                build_index(self._connection, collection, kind)
            self._change(index_kind=kind)

    def compact(self) -> None:
        """Ask Milvus to rewrite its files without deleted rows, which it does in its own time."""
        target = self._connection.target
        for collection in (target.name, *map(target.passages, self._state().spaces())):
            self._connection.call("compact", collection)

    def verify(self) -> list[Fault]:
        """Check the store and return all faults."""
        state = self._state()
        faults = []
        if names := self._unfinished():
            unfinished = quantity(len(names), "document")
            faults.append(Fault(f"{unfinished} not wholly written, such as '{names[0]}'"))
        pages = state.pages(["passages"], FINISHED)
        passages = sum(row["passages"] for page in pages for row in page)
        for space in state.spaces():
            size = state.size(state.target.passages(space))
            if space.complete and size != passages:
                what = f"space '{space.name}' has {size:,} vectors for {passages:,} passages"
                faults.append(Fault(what, repairable=False))
        return faults

    def repair(self) -> None:
        """Remove documents that are not wholly written; other spaces may lack vectors."""
        if names := self._unfinished():
            logger.warning("not wholly written, removed; index again: %s", ", ".join(names))
            self.remove(Selection(names))
        first, *others = self._state().spaces()
        self._change(spaces=[first, *(space._replace(complete=False) for space in others)])

    def _unfinished(self) -> list[str]:
        """The ids of documents that a killed command left."""
        return [row["id"] for page in self._state().pages([], UNFINISHED) for row in page]

    def _state(self) -> MilvusReader:
        return MilvusReader(self._connection, self._record)

    def _change(self, **changes: Any) -> None:
        """Change some of the record."""
        changed = self._state().record._replace(**changes)
        self._connection.upsert(self._connection.target.name, [changed.row()])
        self._record = changed

    def _put_documents(self, rows: Iterable[Row], **changes: str) -> None:
        whole = (row | changes | {"vector": NO_VECTOR} for row in rows)
        self._connection.upsert(self._connection.target.name, whole)

    def _write_vectors(self, space: Space, passages: Iterable[Row], vectors: TextVectors) -> None:
        """Write passages to a space; an incomplete one may lack some vectors."""
        rows = (
            row | {"vector": vectors[key]}
            for row in passages
            if (key := (space.id, row["text_hash"])) in vectors or space.complete
        )
        self._connection.upsert(self._connection.target.passages(space), rows)

    def _delete_passages(self, ids: Sequence[int]) -> None:
        for space in self._state().spaces():
            self._connection.delete(self._connection.target.passages(space), "passage", ids)


def _with_kept_passages(
    state: MilvusReader, documents: Sequence[NewDocument], vectors: TextVectors
) -> tuple[list[NewDocument], TextVectors]:
    """Documents with the passages that they keep, and their vectors."""
    kept = state.passages_of([one.id for one in documents if one.passages is None])
    hashes = {passage.text_hash for passages in kept.values() for passage in passages}
    return (
        [one._replace(passages=kept.get(one.id, one.passages)) for one in documents],
        {**state.vectors_of_texts(sorted(hashes)), **vectors},
    )


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
    places = [0, *(place for passage in passages for place in (passage.start, passage.end))]
    gaps = [document.text[end:start] for end, start in pairwise(places)][::2]
    rows = [
        {
            "passage": passage_id,
            "id": owner["id"],
            "document": owner["document"],
            "before": before,
            "after": "",
            "fields": owner["fields"],
            **passage._asdict(),
        }
        for passage_id, passage, before in zip(passage_ids([owner]), passages, gaps, strict=True)
    ]
    if rows:
        rows[-1]["after"] = document.text[places[-1] :]
    return rows
