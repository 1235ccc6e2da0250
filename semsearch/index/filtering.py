"""Filters for one state of an index: checked, ready to run, explained when they match nothing."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, case, func, select

from semsearch.filters import (
    BUILT_IN_FIELDS,
    And,
    Comparison,
    Condition,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Value,
    field_text,
    fields,
    filter_message,
    literal_text,
    metadata_field,
    metadata_name,
    parse,
)
from semsearch.index.conditions import check_fields, to_sql
from semsearch.index.kinds import BUILT_IN_COLUMNS, Kind, example, field_names, kinds_of, values_of
from semsearch.index.literals import fit_literals, is_date
from semsearch.index.schema import documents

__all__ = ["Filter", "no_match", "read_filter"]

#: For how many tests of a filter that matches nothing similar values are looked for, and among
#: how many.
TESTS_EXPLAINED = 3
VALUES_COMPARED = 5_000
SIMILAR_SHOWN = 3


class Filter(NamedTuple):
    """A filter for the documents of an index."""

    condition: Condition
    clause: ColumnElement[bool]  #: a condition on `documents`
    notes: list[str]  #: what was converted; a person should be told


def read_filter(connection: Connection, where: str) -> Filter:
    """A filter expression, checked against what the documents hold.

    Raises:
        FilterError: it cannot be parsed, names an unknown field, or compares a field with
            literals of kinds that it never holds.
    """
    condition = parse(where)
    tested = fields(condition)
    held = kinds_of(connection, map(metadata_name, tested.difference(BUILT_IN_FIELDS)))
    kinds = {metadata_field(name): set(found) for name, found in held.items()}
    kinds |= {name: {Kind.TEXT} for name in BUILT_IN_FIELDS}
    if not tested <= kinds.keys():
        check_fields(condition, {*map(metadata_field, field_names(connection)), *kinds})
    condition, notes = fit_literals(condition, kinds, partial(example, connection))
    return Filter(condition, _clause(condition), notes)


def no_match(connection: Connection, condition: Condition) -> str | None:
    """What to tell of a filter if it matches no document: the nearest values that there are."""
    if _matches(connection, condition):
        return None
    hints: list[str] = []
    for test in _required(condition):
        if len(hints) == TESTS_EXPLAINED:
            break
        if not _matches(connection, test) and (hint := _nearest(connection, test)):
            hints.append(f"; {hint}")
    return filter_message(f"no document matches{''.join(hints)}")


def _clause(condition: Condition) -> ColumnElement[bool]:
    return to_sql(condition, metadata=documents.c.metadata, columns=BUILT_IN_COLUMNS)


def _matches(connection: Connection, condition: Condition) -> bool:
    query = select(documents.c.document_id).where(_clause(condition)).limit(1)
    return connection.scalar(query) is not None


def _required(condition: Condition) -> Iterator[Comparison | In]:
    """The tests, outside of any `not`, that look for values."""
    match condition:
        case And(conditions) | Or(conditions):
            for each in conditions:
                yield from _required(each)
        case Comparison(_, operator, _) if operator is not Operator.NOT_EQUAL:
            yield condition
        case In(_, values) if values:
            yield condition
        case Not() | IsNull() | Like() | Comparison() | In():
            return


def _nearest(connection: Connection, test: Comparison | In) -> str:
    """The values of a field that are nearest to the first one that a test looks for."""
    value = test.values[0] if isinstance(test, In) else test.value
    if isinstance(value, bool):
        return ""
    in_order = isinstance(test, Comparison) and test.operator is not Operator.EQUAL
    nearest, question = [], "did you mean {}?"
    if isinstance(value, str) and not in_order and not is_date(value):
        nearest = _similar(connection, test.field, value)
    if not nearest:
        nearest, question = _neighbours(connection, test.field, value), "nearest: {}"
    if not nearest:
        return ""
    sign = test.operator.value if isinstance(test, Comparison) else "="
    asked = f"{field_text(test.field)} {sign} {literal_text(value)}"
    return f"{asked}: {question.format(' or '.join(map(literal_text, nearest)))}"


def _neighbours(connection: Connection, field: str, value: Value) -> list[Value]:
    """The values of a kind on either side."""
    kinds = [Kind.TEXT, Kind.DATE] if isinstance(value, str) else [Kind.NUMBER]
    found = values_of(field).subquery()
    least = func.min(case((found.c.value >= value, found.c.value)))
    greatest = func.max(case((found.c.value <= value, found.c.value)))
    query = select(greatest, least).where(found.c.kind.in_([kind.value for kind in kinds]))
    return [each for each in dict.fromkeys(connection.execute(query).one()) if each is not None]


def _similar(connection: Connection, field: str, text: str) -> list[Value]:
    """Texts that are spelt alike, the most similar first."""
    found = values_of(field).subquery()
    of_kind = found.c.kind.in_([Kind.TEXT.value, Kind.DATE.value])
    short = func.length(found.c.value) <= 2 * len(text) + 10
    query = select(found.c.value).where(of_kind, short).distinct().limit(VALUES_COMPARED)
    spellings = {_folded(value): value for value in connection.scalars(query)}
    if _folded(text) in spellings:
        return [spellings[_folded(text)]]
    matches = difflib.get_close_matches(_folded(text), spellings, SIMILAR_SHOWN)
    return [spellings[match] for match in matches]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())
