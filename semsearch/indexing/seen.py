"""The documents that a run over a corpus has read, which can be more than fit in memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_TABLE = "CREATE TABLE seen (id TEXT PRIMARY KEY, source TEXT, repeats INTEGER) WITHOUT ROWID"


class Seen(NamedTuple):
    """A document that the run has read."""

    source: str
    repeats: int  #: later documents with the same content and no id


class SeenDocuments:
    """Documents by id, in a temporary database; close it when the run is over."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)  # SQLite deletes its file
        self._database.execute(_TABLE)

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
        known = [(name, "", 0) for name in ids]
        with self._database:
            self._database.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", known)

    def missing_from(self, ids: Iterable[str]) -> list[str]:
        """Those of these documents that the run has not read."""
        query = "SELECT 1 FROM seen WHERE id = ?"
        return [name for name in ids if not self._database.execute(query, [name]).fetchone()]

    def close(self) -> None:
        """Delete the records."""
        self._database.close()
