"""Metadata fields that filters find by value: those that are asked for have an index.

SQLite's own indexes over expressions are refused under ``trusted_schema = OFF``. So `field_values`
holds the values of these fields, and those in their lists, beside the documents. It is derived.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    case,
    delete,
    func,
    insert,
    literal,
    select,
    true,
)

from semsearch.filters import metadata_field
from semsearch.stores.local.schema import documents, field_values, indexed_fields

#: Of a text, so many characters are kept; longer ones are not looked for here.
TEXT_CHARACTERS = 64


def indexed(connection: Connection) -> Mapping[str, int]:
    """The fields that have an index, as conditions call them, with their numbers."""
    rows = connection.execute(select(indexed_fields))
    return {metadata_field(row.name): row.field_id for row in rows}


def index_field(connection: Connection, name: str) -> bool:
    """Make the index of a metadata field; returns whether there was none."""
    if connection.scalar(select(indexed_fields.c.field_id).where(indexed_fields.c.name == name)):
        return False
    connection.execute(insert(indexed_fields).values(name=name))
    _add(connection, indexed_fields.c.name == name)
    return True


def add_values(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Put in the values of documents that have been written, instead of their old ones."""
    if connection.scalar(select(indexed_fields.c.field_id).limit(1)) is not None:
        numbers = select(documents.c.document_id).where(condition)
        connection.execute(delete(field_values).where(field_values.c.document_id.in_(numbers)))
        _add(connection, condition)


def rebuild_values(connection: Connection) -> None:
    """Put in the values of all documents again."""
    connection.execute(delete(field_values))
    _add(connection, true())


def values_are_right(connection: Connection) -> bool:
    """Whether the values are those of the documents."""
    expected, stored = _values(true()), select(field_values)
    return all(
        connection.execute(left.except_(right).limit(1)).first() is None
        for left, right in ((expected, stored), (stored, expected))
    )


def _add(connection: Connection, condition: ColumnElement[bool]) -> None:
    rows = _values(condition).order_by("field_id", "value")  # so that the tree grows at its end
    names = field_values.columns.keys()
    connection.execute(insert(field_values).prefix_with("OR IGNORE").from_select(names, rows))


def _values(condition: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    """Rows for `field_values`."""
    sound = case((func.json_valid(documents.c.metadata) == 1, documents.c.metadata))
    field = func.json_each(sound).table_valued("key", "type", "value", name="field")
    items = case((field.c.type == "array", field.c.value))
    element = func.json_each(items).table_valued("type", "value", name="element")
    json_type = func.coalesce(element.c.type, field.c.type)
    value = func.coalesce(element.c.value, field.c.value)
    short = case((json_type == "text", func.substr(value, 1, TEXT_CHARACTERS)), else_=value)
    return (
        select(
            indexed_fields.c.field_id.label("field_id"),
            short.label("value"),
            documents.c.document_id,
            func.replace(json_type, "real", literal("integer")).label("kind"),
        )
        .distinct()
        .select_from(
            documents.join(field, true())
            .join(indexed_fields, indexed_fields.c.name == field.c.key)
            .outerjoin(element, true())
        )
        .where(and_(condition, json_type.in_(["text", "integer", "real", "true", "false"])))
    )
