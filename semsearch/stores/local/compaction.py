"""Making deletion real: no file of an index holds what was deleted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Connection

from semsearch.errors import IndexBusyError
from semsearch.stores.local.folding import fold, remove_leftovers
from semsearch.stores.local.kinds import rebuild_kinds
from semsearch.stores.local.words import rebuild_words
from semsearch.stores.space import Space


def compact(connection: Connection, directory: Path, spaces: Iterable[Space]) -> None:
    """Rewrite all files of an index without what was deleted.

    SQLite zeroes what it frees (`secure_delete`), but BM25 keeps deleted words until it is built
    again, freed pages and the write-ahead log keep their places, and snapshots keep deleted
    vectors. The index can be read meanwhile and survives being killed at any moment.

    Raises:
        IndexBusyError: a reader holds an older state; what was deleted is still in the log.
    """
    for space in spaces:
        fold(connection, directory, space, thoroughly=True)
    with connection.begin():
        rebuild_kinds(connection)
        rebuild_words(connection)
    remove_leftovers(connection, directory, keep_previous=False)
    raw = connection.connection.driver_connection
    if raw is None:
        raise AssertionError("the connection is open")
    raw.execute("VACUUM")
    busy = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        raise IndexBusyError(
            f"{directory} is being read by another process, whose state the log must keep; "
            "what was deleted leaves the log at the next compaction without readers"
        )
