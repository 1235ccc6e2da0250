"""Translation of conditions on metadata into SQL expressions.

Fields are found by comparing the names that ``json_each`` returns: a value can be a list, whose
elements are tested one by one. A field that never holds a list is read by its path, which is
several times faster, and can have an index.

Times compare as instants. Python's `instant`, which the database calls, takes longer than the rest,
so it is called only for texts of about the same day; the order of texts decides about others.

Names and literals are only passed as bound parameters; literals as JSON, so that decimal fractions
in expressions and in documents are parsed the same way.

In SQLite, text ends at a NUL, and integers beyond 64 bits become the nearest float.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    and_,
    case,
    exists,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
    tuple_,
)

from semsearch.filters import (
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
    filter_error,
)
from semsearch.filters.checking import tests_of
from semsearch.filters.times import DAY, instant
from semsearch.records import metadata_name
from semsearch.storage.sqlite.fields import BUILT_IN_COLUMNS, MetadataValues, json_path
from semsearch.storage.sqlite.schema import documents
from semsearch.storage.sqlite.schema import values as sql_values

#: SQLite accepts expressions up to 1,000 operators deep, and a chain is as deep as it is long. The
#: limit is far lower because SQLAlchemy caches compiled statements, with 50 kB for each test.
MAX_TESTS = 200
#: SQLite's parser stack holds 100 symbols (as of 3.40), enough for 28 levels; callers use some.
MAX_DEPTH = 20

#: A test of one value, given its kind and the value itself.
ValueTest: TypeAlias = Callable[[ColumnElement[str], ColumnElement[Any]], ColumnElement[bool]]
#: An operator such as `operator.lt`.
Order: TypeAlias = Callable[[Any, Any], ColumnElement[bool]]


def to_sql(condition: Condition, *, scalars: Collection[str] = ()) -> ColumnElement[bool]:
    """An SQL expression that is true for documents that match a condition, and false for others.

    `scalars` are fields that hold no list in any document.

    Raises:
        FilterError: the condition is too complex for SQLite.
    """
    if sum(1 for _ in tests_of(condition)) > MAX_TESTS:
        raise filter_error(f"more than {MAX_TESTS} tests; in (…) takes many values as one")
    return _sql(condition, scalars, 0)


def _sql(condition: Condition, scalars: Collection[str], depth: int) -> ColumnElement[bool]:
    if depth > MAX_DEPTH:
        raise filter_error(f"and, or and not are nested deeper than {MAX_DEPTH} levels")
    match condition:
        case Not(inner):
            return _not(_sql(inner, scalars, depth + 1))
        case And(conditions):
            return and_(*(_sql(each, scalars, depth + 1) for each in conditions))
        case Or(conditions):
            return or_(*(_sql(each, scalars, depth + 1) for each in conditions))
        case Comparison(name, Operator.EQUAL, value):
            return _any(name, _in((value,), name), scalars)
        case Comparison(name, Operator.NOT_EQUAL, value):
            return _not(_any(name, _in((value,), name), scalars))
        case Comparison(name, order, value):
            return _any(name, _ordered(_ORDERS[order], value, name), scalars)
        case In(name, values):
            return _any(name, _in(values, name), scalars)
        case Like(name, pattern):
            return _any(name, _like(pattern), scalars)
        case IsNull(name):
            return _is_null(name)


def _any(name: str, test: ValueTest, scalars: Collection[str]) -> ColumnElement[bool]:
    """Whether a field's value, or an element of it if it is a list, passes a test."""
    if name in BUILT_IN_COLUMNS:
        column = BUILT_IN_COLUMNS[name]
        return test(case((column.is_not(None), "text")), column)
    path = json_path(metadata_name(name))
    if name in scalars and path is not None:
        # In the statement's text, so that SQLite uses an index of this expression.
        place = documents.c.metadata, literal(path, literal_execute=True)
        return test(_kind(func.json_type(*place)), func.json_extract(*place))
    each = MetadataValues(documents.c.metadata)
    is_met = test(_kind(each.json_type), each.value)
    return exists().select_from(each.rows()).where(each.name == metadata_name(name), is_met)


def _is_null(name: str) -> ColumnElement[bool]:
    if name in BUILT_IN_COLUMNS:
        return BUILT_IN_COLUMNS[name].is_(None)
    field = func.json_each(documents.c.metadata).table_valued("key", "type")
    return not_(exists().where(field.c.key == metadata_name(name), field.c.type != "null"))


def _not(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    # A test of a missing value is NULL, and so is its `not`. Only in the condition of a `case`,
    # SQLite does not read all values of an `in` to tell NULL from false.
    return case((condition, false()), else_=true())


def _kind(json_type: ColumnElement[str]) -> ColumnElement[str]:
    """The type of a value as in `json_each`, with one name for all numbers."""
    return func.replace(json_type, "real", "integer")


def _in(values: Collection[Value], field: str) -> ValueTest:
    times = _times(values, field)
    if not times:
        return _equal(values)
    others = [value for value in values if value not in times]
    by_time, by_value = _equal_times(times), _equal(others)
    return lambda kind, value: or_(by_time(kind, value), by_value(kind, value))


def _equal(values: Collection[Value]) -> ValueTest:
    each = func.json_each(_json(values)).table_valued("type", "value", name="literal")
    literals = select(_kind(each.c.type), each.c.value)
    # The first test can use the index of a column. The second compares the kind, too: in SQLite,
    # true equals 1, and a list equals its text.
    return lambda kind, value: and_(
        value.in_(select(each.c.value)), tuple_(kind, value).in_(literals)
    )


def _like(pattern: str) -> ValueTest:
    return lambda kind, value: and_(kind == "text", value.like(pattern, escape="\\"))


_ORDERS: Mapping[Operator, Order] = {
    Operator.LESS: operator.lt,
    Operator.LESS_OR_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_OR_EQUAL: operator.ge,
}


def _ordered(order: Order, literal: Value, field: str) -> ValueTest:
    times = _times([literal], field)
    if times:
        return _ordered_times(order, *times.popitem())
    bound = func.json_extract(_json(literal), "$")
    bound_kind = "text" if isinstance(literal, str) else "integer"
    return lambda kind, value: and_(kind == bound_kind, order(value, bound))


def _times(literals: Iterable[Value], field: str) -> dict[str, int]:
    """The instants of those literals that are times; ids and titles are none."""
    texts = [
        value for value in literals if isinstance(value, str) and field not in BUILT_IN_COLUMNS
    ]
    return {text: time for text in texts if (time := instant(text)) is not None}


def _equal_times(times: Mapping[str, int]) -> ValueTest:
    """Whether a value is the same time as one of these literals, which are given with instants."""
    dates = sorted({day for time in times.values() for day in _days(time)})
    days = sql_values(dates)
    texts, instants = sql_values(times), sql_values(times.values())

    def test(kind: ColumnElement[str], value: ColumnElement[Any]) -> ColumnElement[bool]:
        is_equal = func.coalesce(func.instant(value).in_(instants), value.in_(texts))
        is_near = func.substr(value, 1, 10).in_(days)
        return and_(value >= dates[0], value < f"{dates[-1]}~", kind == "text", is_near, is_equal)

    return test


def _ordered_times(order: Order, literal: str, time: int) -> ValueTest:
    """Whether a value is before or after a literal, which is a time: as times, or as texts."""
    # All texts before the first one are of earlier times, and those from the last on of later ones.
    days = _days(time)
    first, behind = days[0], f"{days[-1]}~"

    def test(kind: ColumnElement[str], value: ColumnElement[Any]) -> ColumnElement[bool]:
        near = func.coalesce(order(func.instant(value), time), order(value, literal))
        if order in (operator.gt, operator.ge):
            return and_(value >= first, or_(value >= behind, near), kind == "text")
        return and_(value < behind, or_(value < first, near), kind == "text")

    return test


def _days(instant: int) -> list[str]:
    """The dates that a text of this instant can have: an offset is less than a day."""
    day = date(1970, 1, 1).toordinal() + instant // DAY
    first, last = date.min.toordinal(), date.max.toordinal()
    near = range(max(day - 1, first), min(day + 1, last) + 1)
    return [date.fromordinal(ordinal).isoformat() for ordinal in near]


def _json(value: Value | Collection[Value]) -> str:
    return json.dumps(value, ensure_ascii=False)
