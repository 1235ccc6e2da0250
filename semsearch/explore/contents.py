"""Reads the documents or passages of one committed state, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from semsearch.filters import Condition
from semsearch.protocols import Matrix
from semsearch.records import Document, column_name
from semsearch.storage.interface import Reader, Selection, unit_vectors
from semsearch.storage.spaces import Space, check_searchable

DOCUMENTS_AT_ONCE = 256

#: The columns of documents that precede their metadata, with the Arrow names of their types.
COLUMNS = {"id": "string", "title": "string", "text": "string"}


class Block(NamedTuple):
    """A block of passages as rows, and their vectors."""

    rows: list[dict[str, Any]]
    vectors: Matrix


class Contents(NamedTuple):
    """The documents of one state, optionally filtered."""

    state: Reader
    condition: Condition | None
    total: int  #: the number of documents
    #: Called with the number of documents read, and `total`.
    on_progress: Callable[[int, int], None]

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
        """
        check_searchable(space, self.state.spaces())
        for block in self._documents():
            passages = self.state.passages_of(list(block))
            rows = [
                {"id": name, "start": passage.start, "end": passage.end, "text": passage.text}
                for name in block
                for passage in passages.get(name, ())
            ]
            hashes = [one.text_hash for name in block for one in passages.get(name, ())]
            yield Block(rows, unit_vectors(self.state, space, hashes))

    def _documents(self) -> Iterator[Mapping[str, Document]]:
        """Blocks of documents by id, in insertion order."""
        done = 0
        for documents in self.state.scan(DOCUMENTS_AT_ONCE):
            block = {str(document.id): document for document in documents}
            if self.condition is not None:
                wanted = Selection(ids=list(block), condition=self.condition)
                block = {name: block[name] for name in self.state.ids(wanted)}
            if block:
                yield block
                done += len(block)
                self.on_progress(done, self.total)
