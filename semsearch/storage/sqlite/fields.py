"""Metadata fields: counts of the kinds of their values, and indexes of their values for filters.

The table `fields` counts in how many documents a field has a value of each kind, exactly, after
every write. A count can be 0: until the index is compacted, the fields of deleted documents
stay known, so a filter that tests one is no error.

A field that was given an index has one of SQLite's, over an expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Text,
    and_,
    case,
    column,
    delete,
    func,
    select,
    table,
    true,
)
from sqlalchemy.dialects.sqlite import insert

from semsearch.errors import ArgumentError
from semsearch.records import BUILT_IN_FIELDS, Kind, metadata_field
from semsearch.storage.interface import Field
from semsearch.storage.sqlite.schema import documents, fields

if TYPE_CHECKING:
    from semsearch.filters import Value

#: Fields that are columns instead of metadata.
BUILT_IN_COLUMNS: Mapping[str, ColumnElement[str]] = dict(
    zip(BUILT_IN_FIELDS, (documents.c.external_id, documents.c.title), strict=True)
)

#: Documents searched for examples.
SAMPLE_DOCUMENTS = 1000

_IN_USE = select(fields).where(fields.c.documents > 0)

_DATE = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]"


def all_fields(connection: Connection) -> list[Field]:
    """The metadata fields of documents, sorted by name, with examples of their values."""
    query = _IN_USE.order_by(fields.c.name, fields.c.documents.desc(), fields.c.kind)
    examples = _examples(connection)
    found: dict[str, Field] = {}
    for name, kind, in_list, count in connection.execute(query):
        field = found.setdefault(name, Field(name, {}, examples.get(name)))
        field.kinds[f"list of {kind}" if in_list else kind] = count
    return list(found.values())


def _examples(connection: Connection) -> dict[str, Value]:
    """The first value of each field among some documents, or the first element of a list."""
    found: dict[str, Value] = {}
    sample = select(documents.c.metadata).limit(SAMPLE_DOCUMENTS)
    for metadata in connection.scalars(sample):
        for name, value in json.loads(metadata).items():
            first = value[0] if isinstance(value, list) and value else value
            if isinstance(first, str | int | float):
                found.setdefault(name, first)
    return found


def scalar_fields(connection: Connection) -> set[str]:
    """The fields that hold no list in any document, named as in conditions."""
    rows = connection.execute(_IN_USE).all()
    lists = {row.name for row in rows if row.in_list or row.kind == Kind.LIST.value}
    return {metadata_field(row.name) for row in rows if row.name not in lists}


def kinds_by_field(connection: Connection) -> dict[str, set[Kind]]:
    """The kinds of values of fields, in lists or not, by field name.

    Fields of deleted documents have none, until the index is compacted.
    """
    found: dict[str, set[Kind]] = {}
    for row in connection.execute(select(fields)):
        kinds, kind = found.setdefault(row.name, set()), Kind(row.kind)
        if row.documents:
            kinds.add(kind)
    return found


def count_kinds(connection: Connection, condition: ColumnElement[bool], sign: int = 1) -> None:
    """Count the values of documents after they were written, with a `sign` of -1 before.

    The latter subtracts the values of documents that are removed or replaced.
    """
    each = MetadataValues(documents.c.metadata)
    key = (each.name, each.kind, each.in_list)
    counts = (
        select(*key, sign * func.count(documents.c.document_id.distinct()))
        .select_from(each.joined_to(documents))
        .where(condition)
        .group_by(*key)
    )
    statement = insert(fields).from_select(fields.columns.keys(), counts)
    total = fields.c.documents + statement.excluded.documents
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=list(fields.primary_key), set_={"documents": total}
        )
    )


def rebuild_kinds(connection: Connection) -> None:
    """Count the values of all documents again."""
    connection.execute(delete(fields))
    count_kinds(connection, true())


class MetadataValues:
    """Expressions for the values in metadata, with the elements of lists as separate values."""

    def __init__(self, metadata: ColumnElement[str]) -> None:
        field = func.json_each(metadata).table_valued("key", "type", "value", name="field")
        items = case((field.c.type == "array", field.c.value))
        # If the value is not a list, `element` is a row of NULLs.
        element = func.json_each(items).table_valued("type", "value", name="element")
        self.name = field.c.key
        self.json_type = func.coalesce(element.c.type, field.c.type)
        self.value = func.coalesce(element.c.value, field.c.value)
        self.in_list = element.c.type.is_not(None)
        self._field, self._element = field, element

    @property
    def kind(self) -> ColumnElement[str]:
        """The name of the `Kind`."""
        is_date = and_(
            self.value.op("GLOB")(f"{_DATE}*"), func.substr(self.value, 11, 1).in_(["", "T", " "])
        )
        kinds = {
            "text": case((is_date, Kind.DATE.value), else_=Kind.TEXT.value),
            "array": Kind.LIST.value,
            **dict.fromkeys(("integer", "real"), Kind.NUMBER.value),
            **dict.fromkeys(("true", "false"), Kind.BOOLEAN.value),
        }
        return case(kinds, value=self.json_type, else_=self.json_type)

    def rows(self) -> FromClause:
        """The values, where `metadata` is of an outer query."""
        return self._field.outerjoin(self._element, true())

    def joined_to(self, rows: FromClause) -> FromClause:
        """The values of each of these rows, which have `metadata`."""
        return rows.join(self._field, true()).outerjoin(self._element, true())


#: Beginning of the names of SQLite's indexes of metadata fields.
_INDEX = "metadata."
_INDEX_NAMES = select(column("name", Text)).select_from(table("sqlite_schema"))


def json_path(name: str) -> str | None:
    """The JSON path of a metadata field; None if versions of SQLite differ in how they read it."""
    return f'$."{name}"' if re.fullmatch(r'[^"\\\x00-\x1f]+', name) else None


def indexed_fields(connection: Connection) -> set[str]:
    """The names of the metadata fields with an index."""
    names = connection.scalars(_INDEX_NAMES.where(column("name", Text).startswith(_INDEX)))
    return {name.removeprefix(_INDEX) for name in names}


def index_field(connection: Connection, name: str) -> None:
    """Index the values of a metadata field; lists are not found by it.

    The index has the types, too, because JSON's true is 1 in SQL.

    Raises:
        ArgumentError: the name has quotes, backslashes or control characters.
    """
    path = json_path(name)
    if path is None:
        raise ArgumentError(f"a field with the name {name!r} cannot be indexed")
    text = path.replace("'", "''")
    connection.exec_driver_sql(
        f'CREATE INDEX IF NOT EXISTS "{_INDEX}{name}" ON documents '
        f"(json_extract(metadata, '{text}'), json_type(metadata, '{text}'))"
    )
