"""A record of the files in folders that an index has read, so that unchanged ones are skipped.

It is a small database beside the index and can be deleted: files are then read again, but not
encoded again. A file counts as known while the index still has the documents read from it,
unchanged.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path

from semsearch.corpus.files import FileState
from semsearch.filters import And, Comparison, Operator
from semsearch.storage.address import Address
from semsearch.storage.interface import Reader, Selection

FILE = "files.sqlite"

_TABLE = """
CREATE TABLE IF NOT EXISTS states (
    name TEXT PRIMARY KEY, path TEXT, size INTEGER, modified INTEGER, options TEXT, documents TEXT
) WITHOUT ROWID
"""
#: Separates a file name from the name of a part in ids; and the next character after it.
_PART, _BEHIND_PARTS = "#", "$"
#: Python cannot decode SQLite's messages if they quote damaged text.
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)


def ids_of_file(state: Reader, name: str) -> list[str]:
    """The ids of a file's documents: its name, and those of its parts (``NAME#page=3``)."""
    parts = And(
        (
            Comparison("id", Operator.GREATER_OR_EQUAL, name + _PART),
            Comparison("id", Operator.LESS, name + _BEHIND_PARTS),
        )
    )
    return [*state.stored_documents([name]), *state.ids(Selection(condition=parts))]


class FileMemory:
    """The files that an index has read from folders; not recorded for indexes at an address.

    Args:
        directory: the index.
        read: opens a committed state of it.
    """

    def __init__(self, directory: Path, read: Callable[[], AbstractContextManager[Reader]]) -> None:
        self._file = None if isinstance(directory, Address) else directory / FILE
        self._read = read

    def known(self, name: str) -> FileState | None:
        """The state of a file when it was read, if the index still has its documents."""
        if self._file is None:
            return None
        place = f"{self._file.absolute().as_uri()}?mode=ro"
        found = None
        with suppress(*_DAMAGED), closing(sqlite3.connect(place, uri=True)) as database:
            found = database.execute("SELECT * FROM states WHERE name = ?", (name,)).fetchone()
        if found is None:
            return None
        _, *columns, documents = found
        with self._read() as state:
            return FileState(*columns) if documents == _documents_digest(state, name) else None

    def remember(self, files: Mapping[str, FileState]) -> None:
        """Record files whose documents are in the index, with their state when they were read."""
        if self._file is None or not files:
            return
        with self._read() as state:
            rows = [(name, *file, _documents_digest(state, name)) for name, file in files.items()]
        try:
            with closing(sqlite3.connect(str(self._file))) as database, database:
                database.execute(_TABLE)
                query = "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?)"
                database.executemany(query, rows)
        except _DAMAGED:
            self.forget()  # the next run makes another one

    def forget(self) -> None:
        """Forget all files."""
        if self._file:
            self._file.unlink(missing_ok=True)


def _documents_digest(state: Reader, name: str) -> str:
    """A hash of the documents of a file; empty if it has none."""
    stored = state.stored_documents(ids_of_file(state, name))
    if not stored:
        return ""
    content = [
        (name, document.title, document.metadata, document.text_hash)
        for name, document in sorted(stored.items())
    ]
    return hashlib.blake2b(repr(content).encode(), digest_size=16).hexdigest()
