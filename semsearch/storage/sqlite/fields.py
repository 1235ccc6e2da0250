"""Metadata fields: counts of the kinds of their values, and indexes of their values for filters.

The table `fields` counts in how many documents a field has a value of each kind, exactly, after
every write. A count can be 0: until the index is compacted, the fields of deleted documents
stay known, so a filter that tests one is no error. Values are stored in the documents only, so that
no text of a deleted document remains.

A field that was given an index has one of SQLite's, over an expression.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    TableValuedAlias,
    Text,
    and_,
    case,
    column,
    delete,
    func,
    or_,
    select,
    table,
    true,
)
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from semsearch.errors import ArgumentError
from semsearch.records import BUILT_IN_FIELDS, Kind, metadata_field
from semsearch.storage.interface import Field, FieldValues
from semsearch.storage.sqlite.schema import documents, fields

if TYPE_CHECKING:
    from semsearch.filters import Value

#: Fields that are columns instead of metadata.
BUILT_IN_COLUMNS: Mapping[str, ColumnElement[str]] = dict(
    zip(BUILT_IN_FIELDS, (documents.c.external_id, documents.c.title), strict=True)
)

#: Fields listed with an example.
EXAMPLES = 50
#: Documents searched for an example.
SAMPLE_DOCUMENTS = 20_000
#: The most texts listed of a field, and their maximum length in characters.
LISTED_VALUES, LONGEST_VALUE = 50, 100

_IN_USE = select(fields).where(fields.c.documents > 0)

_DATE = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]"


def all_fields(connection: Connection) -> list[Field]:
    """The metadata fields of documents, sorted by name; the first `EXAMPLES` with an example."""
    query = _IN_USE.order_by(fields.c.name, fields.c.documents.desc(), fields.c.kind)
    found: dict[str, Field] = {}
    for name, kind, in_list, count in connection.execute(query):
        if name not in found:
            shown = len(found) < EXAMPLES
            value = _example(connection, name, Kind(kind)) if shown else None
            found[name] = Field(name, {}, value)
        found[name].kinds[f"list of {kind}" if in_list else kind] = count
    return list(found.values())


def scalar_fields(connection: Connection) -> set[str]:
    """The fields that hold no list in any document, named as in conditions."""
    holds_lists = (fields.c.in_list == 1) | (fields.c.kind == Kind.LIST.value)
    lists = func.max(case((holds_lists, 1), else_=0))
    names = _IN_USE.with_only_columns(fields.c.name).group_by(fields.c.name).having(lists == 0)
    return {metadata_field(name) for name in connection.scalars(names)}


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


def _example(connection: Connection, field: str, kind: Kind) -> Value | None:
    """A value of a metadata field of one kind; None if the sample has none."""
    if kind not in (Kind.TEXT, Kind.DATE, Kind.NUMBER, Kind.BOOLEAN):
        return None
    sample = select(documents.c.metadata).limit(SAMPLE_DOCUMENTS).subquery()
    each = _Values(sample.c.metadata)
    query = (
        select(each.value)
        .select_from(each.joined_to(sample))
        .where(each.name == field, each.kind == kind.value, _is_finite(each.value))
        .limit(1)
    )
    value = connection.scalar(query)
    return bool(value) if kind is Kind.BOOLEAN and value is not None else value


def field_values(connection: Connection) -> list[FieldValues]:
    """The metadata fields, sorted by name, with frequent texts and bounds of all documents."""
    found = []
    for name, kinds in sorted(kinds_by_field(connection).items()):
        path = json_path(name)
        texts: list[tuple[str, int]] = []
        bounds: tuple[float | None, float | None] = None, None
        if path is not None and kinds & {Kind.TEXT, Kind.DATE}:
            texts = _frequent_texts(connection, path)
        if path is not None and Kind.NUMBER in kinds:
            bounds = _bounds(connection, path)
        if kinds:
            found.append(FieldValues(name, sorted(kind.value for kind in kinds), texts, *bounds))
    return found


def _frequent_texts(connection: Connection, path: str) -> list[tuple[str, int]]:
    """The most frequent texts at a JSON path or in a list there, with numbers of documents."""
    each = _at(path)
    count = func.count(documents.c.document_id.distinct())
    query = (
        select(each.c.value, count)
        .select_from(documents.join(each, true()))
        .where(each.c.type == "text", func.length(each.c.value) <= LONGEST_VALUE)
        .group_by(each.c.value)
        .order_by(count.desc(), each.c.value)
        .limit(LISTED_VALUES)
    )
    return [(value, number) for value, number in connection.execute(query)]


def _bounds(connection: Connection, path: str) -> tuple[float | None, float | None]:
    """The least and the greatest number at a JSON path or in a list there."""
    each = _at(path)
    query = (
        select(func.min(each.c.value), func.max(each.c.value))
        .select_from(documents.join(each, true()))
        .where(each.c.type.in_(["integer", "real"]), _is_finite(each.c.value))
    )
    least, greatest = connection.execute(query).one()
    return least, greatest


def _at(path: str) -> TableValuedAlias:
    """The value at a JSON path of each document, or the elements of a list there."""
    return func.json_each(documents.c.metadata, path).table_valued("type", "value")


def _is_finite(value: ColumnElement[Any]) -> ColumnElement[bool]:
    """The condition that a number is no infinity, which SQLite reads larger numbers as."""
    return or_(func.typeof(value) != "real", func.abs(value) <= sys.float_info.max)


def add_kinds(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Count the values of documents after they were written."""
    _count(connection, condition, 1)


def subtract_kinds(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Subtract the values of documents before they are removed or replaced."""
    _count(connection, condition, -1)


def rebuild_kinds(connection: Connection) -> None:
    """Count the values of all documents again."""
    connection.execute(delete(fields))
    add_kinds(connection, true())


def kinds_are_right(connection: Connection) -> bool:
    """Whether the counts match the documents."""
    return _have_equal_rows(
        connection, _counts(true()), select(fields).where(fields.c.documents != 0)
    )


def _count(connection: Connection, condition: ColumnElement[bool], sign: int) -> None:
    statement = sqlite_insert(fields).from_select(fields.columns.keys(), _counts(condition, sign))
    total = fields.c.documents + statement.excluded.documents
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=list(fields.primary_key), set_={"documents": total}
        )
    )


def _counts(condition: ColumnElement[bool], sign: int = 1) -> Select[Any]:
    """Rows for `fields`."""
    each = _Values(documents.c.metadata)
    key = (each.name, each.kind, each.in_list)
    return (
        select(*key, sign * func.count(documents.c.document_id.distinct()))
        .select_from(each.joined_to(documents))
        .where(condition)
        .group_by(*key)
    )


class _Values:
    """Expressions for the values in metadata, with the elements of lists as separate values."""

    def __init__(self, metadata: ColumnElement[str]) -> None:
        field = func.json_each(metadata).table_valued("key", "type", "value", name="field")
        items = case((field.c.type == "array", field.c.value))
        element = func.json_each(items).table_valued("type", "value", name="element")
        json_type = func.coalesce(element.c.type, field.c.type)
        self.name = field.c.key
        self.value = func.coalesce(element.c.value, field.c.value)
        self.in_list = element.c.type.is_not(None)
        is_date = and_(
            self.value.op("GLOB")(f"{_DATE}*"), func.substr(self.value, 11, 1).in_(["", "T", " "])
        )
        kinds = {
            "text": case((is_date, Kind.DATE.value), else_=Kind.TEXT.value),
            "array": Kind.LIST.value,
            **dict.fromkeys(("integer", "real"), Kind.NUMBER.value),
            **dict.fromkeys(("true", "false"), Kind.BOOLEAN.value),
        }
        self.kind = case(kinds, value=json_type, else_=json_type)
        self._field, self._element = field, element

    def joined_to(self, rows: Any) -> Any:
        """The values of each of these rows."""
        return rows.join(self._field, true()).outerjoin(self._element, true())


def _have_equal_rows(connection: Connection, one: Select[Any], other: Select[Any]) -> bool:
    return all(
        connection.execute(left.except_(right).limit(1)).first() is None
        for left, right in ((one, other), (other, one))
    )


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
