"""What the readers of a store have loaded, for the next ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection

from semsearch.storage.interface import FieldValues, Restriction
from semsearch.storage.spaces import Space, check_searchable
from semsearch.storage.sqlite.database import Database
from semsearch.storage.sqlite.fields import field_values
from semsearch.storage.sqlite.restrictions import Restricted
from semsearch.storage.sqlite.schema import Revision
from semsearch.storage.sqlite.spaces import all_spaces

if TYPE_CHECKING:
    from semsearch.storage.sqlite.vectors import VectorView

#: The number of restrictions whose documents are cached.
RESTRICTIONS_KEPT = 16


class Cache:
    """What was read from one database file."""

    def __init__(self, database: Database) -> None:
        self.file = database.opened.file
        self._database = database
        self._views: dict[tuple[str, int], tuple[int, VectorView]] = {}
        self._restricted: dict[tuple[Revision, str], Restricted] = {}
        self._values: tuple[Revision, list[FieldValues]] | None = None

    def view(self, connection: Connection, revision: Revision, space: Space) -> VectorView:
        """The vectors of a space in the state that `connection` reads."""
        key = revision.identity, space.id
        known = self._views.get(key)
        if known and known[0] == revision.number:
            return known[1]
        from semsearch.storage.sqlite.vectors import VectorView

        check_searchable(space, all_spaces(connection))
        view = None
        if known and known[0] < revision.number:
            view = known[1].extended(connection, space)
        if view is None:
            # The files of a replaced index are another's.
            directory = None if self._database.is_replaced() else self._database.directory
            view = VectorView.load(connection, directory, space)
        self._views[key] = revision.number, view
        return view

    def restricted(
        self, connection: Connection, revision: Revision, restriction: Restriction
    ) -> Restricted:
        """The documents that a restriction allows in the state that `connection` reads."""
        key = revision, repr(restriction)  # 1 and true are equal
        restricted = self._restricted.get(key)
        if restricted is None:
            restricted = Restricted(connection, restriction)
            for oldest in list(self._restricted)[: 1 - RESTRICTIONS_KEPT]:
                self._restricted.pop(oldest, None)
            self._restricted[key] = restricted
        return restricted

    def field_values(self, connection: Connection, revision: Revision) -> list[FieldValues]:
        """The values of metadata fields in the state that `connection` reads."""
        if self._values is None or self._values[0] != revision:
            self._values = revision, field_values(connection)
        return self._values[1]
