"""Reads the documents or passages of one committed state, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy

from semsearch.errors import DamagedIndexError
from semsearch.filters import Condition
from semsearch.index import Index
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


class Contents:
    """The documents of one state, optionally filtered.

    Args:
        state: the state of the store.
        condition: the filter.
        on_progress: called with the number of documents read and their total.
    """

    def __init__(
        self,
        state: StoreState,
        condition: Condition | None,
        on_progress: Callable[[int, int], None],
    ) -> None:
        self._state = state
        self._condition = condition
        self._on_progress = on_progress
        self.total = state.count(Selection(condition=condition))

    @classmethod
    @contextmanager
    def read(
        cls,
        index: Index,
        where: str | None,
        on_progress: Callable[[int, int], None],
    ) -> Iterator[Self]:
        """The contents of an index, unchanged until the block ends.

        Raises:
            FilterError: the filter is invalid.
        """
        with index.read() as state:
            condition = None if where is None else index.filter(state, where)
            contents = cls(state, condition, on_progress)
            if condition is not None and not contents.total:
                index.explain_no_match(state, condition)
            yield contents

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
        check_searchable(space, self._state.spaces())
        for block in self._documents():
            passages = self._state.passages_of(list(block))
            rows = [
                {"id": name, "start": chunk.start, "end": chunk.end, "text": chunk.text}
                for name in block
                for chunk in passages.get(name, ())
            ]
            found = self._state.document_vectors(space, list(block))
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
        while found := self._state.documents_after(last, DOCUMENTS_AT_ONCE):
            last = max(found)
            block = {str(document.id): document for document in found.values()}
            if self._condition is not None:
                wanted = Selection(ids=list(block), condition=self._condition)
                block = {name: block[name] for name in self._state.ids(wanted)}
            if block:
                yield block
                done += len(block)
                self._on_progress(done, self.total)
