"""The documents that the present run has read, kept on this machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from semsearch.stores.protocol import Seen

IDS_AT_ONCE = 500


class Run:
    """The ids of a corpus, which may not fit in memory: in a temporary file of SQLite's."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)
        self._database.execute(
            "CREATE TABLE seen (id TEXT PRIMARY KEY, source TEXT, repeats INTEGER) WITHOUT ROWID"
        )

    def begin(self) -> None:
        """Begin a run: no document has been read."""
        self._database.execute("DELETE FROM seen")

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        """The ones of these that have been seen."""
        found: dict[str, Seen] = {}
        for start in range(0, len(ids), IDS_AT_ONCE):
            some = list(ids[start : start + IDS_AT_ONCE])
            marks = ", ".join("?" * len(some))
            query = f"SELECT id, source, repeats FROM seen WHERE id IN ({marks})"  # noqa: S608
            rows = self._database.execute(query, some)
            found |= {name: Seen(source, repeats) for name, source, repeats in rows}
        return found

    def mark(self, seen: Mapping[str, Seen]) -> None:
        """Record documents as read."""
        rows = [(name, *one) for name, one in seen.items()]
        self._database.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        """Remove the file."""
        self._database.close()
