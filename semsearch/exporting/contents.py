"""Reads the documents or passages of one committed state, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from semsearch.filters import Condition
from semsearch.index import Index
from semsearch.protocols import Matrix
from semsearch.records import Document, column_name
from semsearch.storage.filtering import parse_filter, warn_if_none_match
from semsearch.storage.interface import Reader, Selection, unit_vectors
from semsearch.storage.spaces import Space, check_searchable

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
        state: Reader,
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
            condition = None if where is None else parse_filter(state, where)
            contents = cls(state, condition, on_progress)
            if condition is not None and not contents.total:
                warn_if_none_match(state, condition)
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
        """
        check_searchable(space, self._state.spaces())
        for block in self._documents():
            passages = self._state.passages_of(list(block))
            rows = [
                {"id": name, "start": passage.start, "end": passage.end, "text": passage.text}
                for name in block
                for passage in passages.get(name, ())
            ]
            hashes = [one.text_hash for name in block for one in passages.get(name, ())]
            yield Block(rows, unit_vectors(self._state, space, hashes))

    def _documents(self) -> Iterator[Mapping[str, Document]]:
        """Blocks of documents by id, in insertion order."""
        done = 0
        for documents in self._state.scan(DOCUMENTS_AT_ONCE):
            block = {str(document.id): document for document in documents}
            if self._condition is not None:
                wanted = Selection(ids=list(block), condition=self._condition)
                block = {name: block[name] for name in self._state.ids(wanted)}
            if block:
                yield block
                done += len(block)
                self._on_progress(done, self.total)
