"""Reads the documents or passages of one committed state, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy

from semsearch.errors import DamagedIndexError
from semsearch.filters import Condition
from semsearch.protocols import Matrix
from semsearch.records import Document, column_name
from semsearch.stores.protocol import Selection, Space, StoreState, check_searchable

DOCUMENTS_AT_ONCE = 256

#: The columns of documents that precede their metadata, with the Arrow names of their types.
COLUMNS = {"id": "string", "title": "string", "text": "string"}


class Block(NamedTuple):
    """A block of passages as rows, and their vectors."""

    rows: list[dict[str, Any]]
    vectors: Matrix


class Contents(NamedTuple):
    """The documents of one state, optionally filtered."""

    state: StoreState
    condition: Condition | None
    total: int  #: the number of documents
    on_progress: Callable[
        [int, int], None
    ]  #: called with the number of documents read, and `total`

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """The documents as rows: id, title, text, and metadata."""
        for block in self._documents():
            for document in block.values():
                row = {"id": document.id, "title": document.title, "text": document.text}
                for name, value in document.metadata.items():
                    row[column_name(name, COLUMNS)] = value
                yield row

    def passages(self, space: Space) -> Iterator[Block]:
        """The passages of all documents in order, with their vectors.

        Raises:
            SpaceError: the space was dropped.
            IndexFormatError: a passage has no vector.
        """
        check_searchable(space, self.state.spaces())
        for block in self._documents():
            passages = self.state.passages_of(list(block))
            rows = [
                {"id": name, "start": chunk.start, "end": chunk.end, "text": chunk.text}
                for name in block
                for chunk in passages.get(name, ())
            ]
            found = self.state.document_vectors(space, list(block))
            none = numpy.empty((0, space.dimension), numpy.float32)
            vectors = numpy.concatenate([found.get(name, none) for name in block])
            if len(rows) != len(vectors):
                raise DamagedIndexError(
                    "the index is damaged: a passage has no vector (run semsearch verify)"
                )
            yield Block(rows, vectors)

    def _documents(self) -> Iterator[Mapping[str, Document]]:
        """Blocks of documents by id, in insertion order."""
        last = done = 0
        while found := self.state.documents_after(last, DOCUMENTS_AT_ONCE):
            last = max(found)
            block = {str(document.id): document for document in found.values()}
            if self.condition is not None:
                wanted = Selection(ids=list(block), condition=self.condition)
                block = {name: block[name] for name in self.state.ids(wanted)}
            if block:
                yield block
                done += len(block)
                self.on_progress(done, self.total)
