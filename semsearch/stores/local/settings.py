"""What holds for the whole store."""

from __future__ import annotations

import json

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.sqlite import insert

from semsearch.analysis import Language
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


def get_language(connection: Connection) -> Language | None:
    """Whose stems and stop words BM25 uses."""
    value = connection.scalar(_SETTING, {"name": "language"})
    if value is None:
        return None
    found = stored_json(value, dict)
    name, stop_words = found.get("name"), found.get("stop_words")
    if not isinstance(name, str) or not isinstance(stop_words, list):
        raise DamageError("the setting 'language' is damaged")
    return Language(name, tuple(map(str, stop_words)))


def put_language(connection: Connection, language: Language) -> None:
    """Remember whose stems and stop words BM25 uses."""
    _put(connection, "language", language._asdict())


def next_revision(connection: Connection) -> None:
    """Invalidate what readers have loaded."""
    put_setting(connection, "revision", get_setting(connection, "revision", 0) + 1)
