"""Numbers that hold for the whole store."""

from __future__ import annotations

import json

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.sqlite import insert

from semsearch.errors import ArgumentError
from semsearch.stores.local.schema import settings
from semsearch.stores.local.stored import DamageError, stored_json
from semsearch.vector_indexes import IndexType

_SETTING = select(settings.c.value).where(settings.c.name == bindparam("name"))


def get_setting(connection: Connection, name: str, default: int | None = None) -> int:
    """A number that holds for the whole index.

    Raises:
        DamageError: it is missing and has no default, or is no number.
    """
    value = connection.scalar(_SETTING, {"name": name})
    if value is not None:
        return stored_json(value, int)
    if default is None:
        raise DamageError(f"the setting '{name}' is missing")
    return default


def put_setting(connection: Connection, name: str, value: int) -> None:
    """Remember a number for the whole index."""
    _put(connection, name, value)


def _put(connection: Connection, name: str, value: object) -> None:
    row = {"name": name, "value": json.dumps(value)}
    connection.execute(
        insert(settings).values(row).on_conflict_do_update(index_elements=["name"], set_=row)
    )


def get_index_type(connection: Connection) -> IndexType:
    """The vector index that was asked for."""
    value = connection.scalar(_SETTING, {"name": "index_type"})
    if value is None:
        return IndexType()
    try:
        return IndexType(**stored_json(value, dict)).checked()
    except (TypeError, ArgumentError) as error:
        raise DamageError(f"the setting 'index_type' is damaged ({error})") from error


def put_index_type(connection: Connection, wanted: IndexType) -> None:
    """Remember which vector index is asked for."""
    _put(connection, "index_type", wanted._asdict())


def next_revision(connection: Connection) -> None:
    """Invalidate what readers have loaded."""
    put_setting(connection, "revision", get_setting(connection, "revision", 0) + 1)
