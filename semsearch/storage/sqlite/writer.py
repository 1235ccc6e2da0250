"""Writing the database: one transaction per change; snapshots follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import faiss  # noqa: F401 - needed at the end, and imported while texts are encoded
import numpy
from sqlalchemy import Connection, column, delete, func, select, table, update

from semsearch.protocols import Encoder, Matrix
from semsearch.storage.interface import Fault, NewDocument, Selection, Settings, TextVectors
from semsearch.storage.spaces import Space
from semsearch.storage.sqlite.bm25 import (
    add_words,
    analyse_again,
    analysed_text,
    count_frequent_words,
    remove_words,
)
from semsearch.storage.sqlite.fields import count_kinds, index_field
from semsearch.storage.sqlite.maintenance import compact, find_faults, rebuild
from semsearch.storage.sqlite.reader import SqliteReader
from semsearch.storage.sqlite.schema import (
    documents,
    insert_rows,
    next_revision,
    passages,
    read_settings,
    spaces,
    texts,
    values,
    vectors,
    write_settings,
)
from semsearch.storage.sqlite.snapshots import count_deleted, refresh, remove_leftovers
from semsearch.storage.sqlite.spaces import all_spaces, insert_space, to_bytes
from semsearch.storage.words import Analyser

_sequence = table("sqlite_sequence", column("name"), column("seq"))
#: The highest passage id ever used, deleted passages included.
_LAST_PASSAGE_ID = select(func.coalesce(func.max(_sequence.c.seq), 0)).where(
    _sequence.c.name == passages.name
)


class SqliteWriter:
    """A writer of a local store, on a connection whose transactions begin with the write lock."""

    def __init__(
        self,
        connection: Connection,
        directory: Path,
        reader_of: Callable[[Connection], SqliteReader],
    ) -> None:
        self._connection = connection
        self._directory = directory
        self._reader_of = reader_of

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        with self._connection.begin():
            yield self._reader_of(self._connection)

    def oversized_documents(self, documents: Sequence[NewDocument]) -> Mapping[str, str]:
        """None: SQLite holds texts of up to a gigabyte."""
        return {}

    def put(self, new: Sequence[NewDocument], text_vectors: TextVectors) -> None:
        with self._connection.begin():
            owners = self._put_documents(new)
            cut = [one for one in new if one.passages is not None]
            self._put_passages(cut, owners, text_vectors)
            next_revision(self._connection)

    def remove(self, selection: Selection) -> int:
        with self._connection.begin():
            condition = self._reader_of(self._connection).selected(selection)
            remove_words(self._connection, condition)
            count_kinds(self._connection, condition, -1)
            owners = select(documents.c.document_id).where(condition)
            gone = select(func.count()).where(passages.c.document_id.in_(owners))
            count_deleted(self._connection, self._connection.execute(gone).scalar_one())
            removed = self._connection.execute(delete(documents).where(condition)).rowcount
            if removed:
                next_revision(self._connection)
            return removed

    def configure(self, settings: Settings) -> None:
        """Change the settings of the index; passages are analysed again if the language changes."""
        with self._connection.begin():
            before = read_settings(self._connection)
            write_settings(self._connection, settings)
            if settings.language != before.language:
                analyse_again(self._connection, settings.language)
                next_revision(self._connection)

    def add_space(self, encoder: Encoder, dtype: str | None) -> Space:
        with self._connection.begin():
            return insert_space(self._connection, encoder, dtype, complete=False)

    def drop_space(self, space: Space) -> None:
        with self._connection.begin():
            self._connection.execute(delete(spaces).where(spaces.c.space_id == space.id))
            next_revision(self._connection)
        remove_leftovers(self._connection, self._directory, keep_previous=True)

    def put_vectors(self, space: Space, passage_ids: Sequence[int], matrix: Matrix) -> None:
        with self._connection.begin():
            self._put_vectors(space, passage_ids, matrix)

    def complete(self, space: Space) -> None:
        with self._connection.begin():
            self._connection.execute(
                update(spaces).where(spaces.c.space_id == space.id).values(complete=1)
            )
            next_revision(self._connection)

    def index_field(self, name: str) -> None:
        with self._connection.begin():
            index_field(self._connection, name)
            next_revision(self._connection)

    def optimise(self) -> None:
        """Write new snapshots of complete spaces whose snapshots are out of date."""
        with self._connection.begin():
            count_frequent_words(self._connection)
        for space in self._spaces():
            if space.complete:
                refresh(self._connection, self._directory, space)

    def compact(self) -> None:
        compact(self._connection, self._directory, self._spaces())

    def verify(self) -> list[Fault]:
        return find_faults(self._connection, self._directory)

    def repair(self) -> None:
        rebuild(self._connection)

    def _spaces(self) -> list[Space]:
        with self._connection.begin():
            return all_spaces(self._connection)

    def _put_documents(self, new: Sequence[NewDocument]) -> dict[str, int]:
        """Write the rows of documents; returns their numbers by id."""
        ids = documents.c.external_id.in_(values(one.id for one in new))
        count_kinds(self._connection, ids, -1)
        insert_rows(
            self._connection,
            documents,
            ["external_id", "title", "metadata", "text_hash"],
            [(one.id, one.title, one.metadata, one.text_hash) for one in new],
            key="external_id",
        )
        rows = select(documents.c.external_id, documents.c.document_id).where(ids)
        numbers = {row.external_id: row.document_id for row in self._connection.execute(rows)}
        insert_rows(
            self._connection,
            texts,
            ["document_id", "text"],
            [(numbers[one.id], one.text) for one in new],
            key="document_id",
        )
        count_kinds(self._connection, ids)
        return numbers

    def _put_passages(
        self, new: Sequence[NewDocument], owners: Mapping[str, int], text_vectors: TextVectors
    ) -> None:
        """Replace the passages of documents, whose numbers are in `owners`."""
        owned = values(owners[one.id] for one in new)
        remove_words(self._connection, documents.c.document_id.in_(owned))
        old = delete(passages).where(passages.c.document_id.in_(owned))
        count_deleted(self._connection, self._connection.execute(old).rowcount)
        first = 1 + self._connection.execute(_LAST_PASSAGE_ID).scalar_one()
        analyser = Analyser(read_settings(self._connection).language)
        added = [(owners[one.id], passage) for one in new for passage in one.passages or ()]
        rows = [
            (passage_id, owner, *passage, analysed_text(passage.text, analyser))
            for passage_id, (owner, passage) in enumerate(added, first)
        ]
        names = ["passage_id", "document_id", "start", "end", "text", "text_hash", "analysed"]
        insert_rows(self._connection, passages, names, rows)
        add_words(self._connection, passages.c.passage_id >= first)
        for space in all_spaces(self._connection) if added else []:
            matrix = numpy.array([text_vectors[space.id, each.text_hash] for _, each in added])
            self._put_vectors(space, range(first, first + len(added)), matrix)

    def _put_vectors(self, space: Space, passage_ids: Sequence[int], matrix: Matrix) -> None:
        stored = zip(passage_ids, to_bytes(space, matrix), strict=True)
        rows = [(passage_id, space.id, vector) for passage_id, vector in stored]
        insert_rows(self._connection, vectors, ["passage_id", "space_id", "vector"], rows)
