"""What the metadata fields hold: in how many documents there is a value of which kind.

The table `fields` has the counts, exact after every write. A count can be 0: until the index is
compacted, the fields of deleted documents are known, and a filter that tests one is no mistake.
The values are in the documents alone, so that no text of a deleted document stays behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    case,
    delete,
    func,
    literal,
    select,
    true,
    type_coerce,
)
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from semsearch.filters import BUILT_IN_FIELDS, Value, metadata_field, metadata_name
from semsearch.stores.kinds import Field, Kind
from semsearch.stores.local.schema import documents, fields
from semsearch.stores.local.stored import DamageError
from semsearch.stores.local.values import values_later

#: The fields that are columns and no part of the metadata.
BUILT_IN_COLUMNS: Mapping[str, ColumnElement[str]] = dict(
    zip(BUILT_IN_FIELDS, (documents.c.external_id, documents.c.title), strict=True)
)

#: How many fields are listed with an example.
EXAMPLES = 50
#: In how many documents examples and similar values are looked for.
SAMPLE_DOCUMENTS = 20_000
#: How many texts are compared with one that a filter looks for.
TEXTS = 5_000

_IN_USE = select(fields).where(fields.c.documents > 0)
_OF_FIELDS = select(fields).where(fields.c.name.in_(values_later("names")))

_DATE = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]"


def field_names(connection: Connection) -> list[str]:
    """The names of the metadata fields that documents have, sorted."""
    names = _IN_USE.with_only_columns(fields.c.name).distinct()
    return list(connection.scalars(names.order_by(fields.c.name)))


def all_fields(connection: Connection) -> list[Field]:
    """The fields that documents have, sorted by name; the first `EXAMPLES` with an example."""
    query = _IN_USE.order_by(fields.c.name, fields.c.documents.desc(), fields.c.kind)
    found: dict[str, Field] = {}
    for name, kind, in_list, count in connection.execute(query):
        if name not in found:
            field, shown = metadata_field(name), len(found) < EXAMPLES
            value = example(connection, field, [_kind(kind)]) if shown else None
            found[name] = Field(name, {}, value)
        found[name].kinds[f"list of {kind}" if in_list else kind] = count
    return list(found.values())


def scalar_fields(connection: Connection) -> set[str]:
    """The fields that hold no list in any document, as conditions call them."""
    holds_lists = (fields.c.in_list == 1) | (fields.c.kind == Kind.LIST.value)
    lists = func.max(case((holds_lists, 1), else_=0))
    names = _IN_USE.with_only_columns(fields.c.name).group_by(fields.c.name).having(lists == 0)
    return {metadata_field(name) for name in connection.scalars(names)}


def kinds_of(connection: Connection, names: Iterable[str]) -> dict[str, set[Kind]]:
    """Known fields by name: the kinds that documents have, in a list or not."""
    found: dict[str, set[Kind]] = {}
    for row in connection.execute(_OF_FIELDS, {"names": list(names)}):
        kinds, kind = found.setdefault(row.name, set()), _kind(row.kind)
        if row.documents:
            kinds.add(kind)
    return found


def values_of(field: str) -> Select[Any]:
    """The values of a field and the elements of its lists, as (kind, value), of a sample.

    Args:
        field: as conditions call it.
    """
    if field in BUILT_IN_COLUMNS:
        column = BUILT_IN_COLUMNS[field]
        texts = select(
            literal(Kind.TEXT.value).label("kind"), type_coerce(column, Text).label("value")
        )
        return cast("Select[Any]", texts.where(column.is_not(None)).limit(SAMPLE_DOCUMENTS))
    sample = select(documents.c.metadata).limit(SAMPLE_DOCUMENTS).subquery()
    each = _Values(sample.c.metadata)
    return (
        select(each.kind.label("kind"), each.value.label("value"))
        .select_from(each.joined_to(sample))
        .where(each.name == metadata_name(field))
    )


def example(connection: Connection, field: str, kinds: Iterable[Kind]) -> Value | None:
    """A value of one of these kinds that a field has; None if the sample has none."""
    scalars = {Kind.TEXT, Kind.DATE, Kind.NUMBER, Kind.BOOLEAN}.intersection(kinds)
    found = values_of(field).subquery()
    wanted = found.c.kind.in_([kind.value for kind in scalars])
    row = connection.execute(select(found).where(wanted).limit(1)).first() if scalars else None
    if row is None:
        return None
    return bool(row.value) if row.kind == Kind.BOOLEAN.value else row.value


def neighbours(connection: Connection, field: str, value: Value) -> list[Value]:
    """The values of a field that are nearest to one of their kind, on either side."""
    kinds = [Kind.TEXT, Kind.DATE] if isinstance(value, str) else [Kind.NUMBER]
    found = values_of(field).subquery()
    least = func.min(case((found.c.value >= value, found.c.value)))
    greatest = func.max(case((found.c.value <= value, found.c.value)))
    query = select(greatest, least).where(found.c.kind.in_([kind.value for kind in kinds]))
    return [each for each in dict.fromkeys(connection.execute(query).one()) if each is not None]


def texts_of(connection: Connection, field: str, max_characters: int) -> list[str]:
    """Different texts of a field, none longer than so many characters."""
    found = values_of(field).subquery()
    of_kind = found.c.kind.in_([Kind.TEXT.value, Kind.DATE.value])
    short = func.length(found.c.value) <= max_characters
    query = select(found.c.value).where(of_kind, short).distinct().limit(TEXTS)
    return list(connection.scalars(query))


def add_kinds(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Count the values of documents that have been written."""
    _count(connection, condition, 1)


def subtract_kinds(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Stop counting the values of documents that are about to be removed or replaced."""
    _count(connection, condition, -1)


def rebuild_kinds(connection: Connection) -> None:
    """Count the values of all documents again."""
    connection.execute(delete(fields))
    add_kinds(connection, true())


def kinds_are_right(connection: Connection) -> bool:
    """Whether the counts are those of the documents."""
    counted, stored = _counts(true()), select(fields).where(fields.c.documents != 0)
    return all(
        connection.execute(left.except_(right).limit(1)).first() is None
        for left, right in ((counted, stored), (stored, counted))
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
    # What cannot be parsed is damaged, as `verify` reports; the document can still be removed.
    sound = case((func.json_valid(documents.c.metadata) == 1, documents.c.metadata))
    each = _Values(sound)
    key = (each.name, each.kind, each.in_list)
    return (
        select(*key, sign * func.count(documents.c.document_id.distinct()))
        .select_from(each.joined_to(documents))
        .where(condition)
        .group_by(*key)
    )


class _Values:
    """The values in metadata, a list's elements each for itself: expressions to select."""

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


def _kind(name: str) -> Kind:
    try:
        return Kind(name)
    except ValueError:
        raise DamageError(f"'{name[:40]}' is no kind of values") from None
