"""Translation of conditions on metadata into SQL expressions.

Fields are found by comparing the names that ``json_each`` returns: a value can be a list, whose
elements are tested one by one. A field that never holds a list is read by its path, which is
several times faster, and can have an index.

Names and literals are only passed as bound parameters; literals as JSON, so that decimal fractions
in expressions and in documents are parsed the same way.

Limits of SQLite: text ends at a NUL, and integers beyond 64 bits become the nearest float.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    TableValuedAlias,
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
from semsearch.records import metadata_name
from semsearch.stores.local.fields import json_path

#: SQLite accepts expressions up to 1,000 operators deep, and a chain is as deep as it is long. The
#: limit is far lower because SQLAlchemy caches compiled statements, with 50 kB for each test.
MAX_TESTS = 200
#: SQLite's parser stack holds 100 symbols (as of 3.40), enough for 28 levels; callers use some.
MAX_DEPTH = 20
#: SQLite's own limit.
MAX_PATTERN_BYTES = 50_000


def to_sql(
    condition: Condition,
    *,
    metadata: ColumnElement[str],
    columns: Mapping[str, ColumnElement[str]],
    scalars: Collection[str] = (),
) -> ColumnElement[bool]:
    """An SQL expression that is true for rows that match a condition, and false for others.

    Args:
        condition: see `semsearch.filters`.
        metadata: the column that holds the metadata of a row, a JSON object.
        columns: the fields that are text columns instead of metadata.
        scalars: fields that hold no list in any row.

    Raises:
        FilterError: the condition is too complex for SQLite.
    """
    return _Compiler(metadata, columns, scalars).sql(_reduced(condition))


def is_found_by_index(condition: Condition, fields: Collection[str]) -> bool:
    """Whether SQLite's indexes decide which documents match a condition.

    Args:
        condition: see `to_sql`.
        fields: the fields that have an index and hold no list in any row.
    """
    match condition:
        case And(conditions) | Or(conditions):
            return all(is_found_by_index(each, fields) for each in conditions)
        case In(name):
            return name in fields
        case Comparison(name, order):
            return name in fields and order is not Operator.NOT_EQUAL
    return False


def _reduced(condition: Condition) -> Condition:
    """The same condition with fewer tests and levels.

    Equalities become `in`; all those of one field in an `or` become one `in`; nested `or` become
    one `or`, and nested `and` one `and`.
    """
    match condition:
        case Comparison(name, Operator.EQUAL, value):
            return In(name, (value,))
        case Comparison(name, Operator.NOT_EQUAL, value):
            return Not(In(name, (value,)))
        case Not(inner):
            return Not(_reduced(inner))
        case And(conditions):
            return And(tuple(_spliced(conditions, And)))
        case Or(conditions):
            return Or(tuple(_merged(_spliced(conditions, Or))))
    return condition


def _spliced(conditions: Iterable[Condition], kind: type[And | Or]) -> Iterator[Condition]:
    for condition in map(_reduced, conditions):
        if isinstance(condition, kind):
            yield from condition.conditions
        else:
            yield condition


def _merged(alternatives: Iterable[Condition]) -> Iterator[Condition]:
    values: dict[str, list[Value]] = {}
    for alternative in alternatives:
        if isinstance(alternative, In):
            values.setdefault(alternative.field, []).extend(alternative.values)
        else:
            yield alternative
    for name, listed in values.items():
        yield In(name, tuple(listed))


#: A test of one value, given its kind (see `_kind`) and the value itself.
_ValueTest: TypeAlias = Callable[[ColumnElement[str], ColumnElement[Any]], ColumnElement[bool]]


class _Compiler:
    def __init__(
        self,
        metadata: ColumnElement[str],
        columns: Mapping[str, ColumnElement[str]],
        scalars: Collection[str],
    ) -> None:
        self._metadata = metadata
        self._columns = columns
        self._scalars = scalars
        self._tests = 0

    def sql(self, condition: Condition, depth: int = 0) -> ColumnElement[bool]:
        if depth > MAX_DEPTH:
            raise filter_error(f"and, or and not are nested deeper than {MAX_DEPTH} levels")
        match condition:
            case Not(inner):
                # A test of a missing value is NULL, and so is its `not`. Only in the condition of a
                # `case`, SQLite does not read all values of an `in` to tell NULL from false.
                return case((self.sql(inner, depth + 1), false()), else_=true())
            case And(conditions):
                return and_(*(self.sql(each, depth + 1) for each in conditions))
            case Or(conditions):
                return or_(*(self.sql(each, depth + 1) for each in conditions))
        return self._test(condition)

    def _test(self, test: Comparison | In | Like | IsNull) -> ColumnElement[bool]:
        self._tests += 1
        if self._tests > MAX_TESTS:
            raise filter_error(f"more than {MAX_TESTS} tests; in (…) takes many values as one")
        match test:
            case IsNull(name):
                return self._is_null(name)
            case In(name, values):
                return self._any(name, _in(values))
            case Like(name, pattern):
                return self._any(name, _like(pattern))
            case Comparison(name, order, value):
                return self._any(name, _ordered(order, value))

    def _any(self, name: str, test: _ValueTest) -> ColumnElement[bool]:
        """Whether a field's value, or an element of it if it is a list, passes a test."""
        if name in self._columns:
            column = self._columns[name]
            return test(case((column.is_not(None), "text")), column)
        path = json_path(metadata_name(name))
        if name in self._scalars and path is not None:
            # In the statement's text, so that SQLite uses an index of this expression.
            place = self._metadata, literal(path, literal_execute=True)
            return test(_kind(func.json_type(*place)), func.json_extract(*place))
        field = self._fields()
        # If the value is not a list, `element` is a row of NULLs.
        element = _json_each(case((field.c.type == "array", field.c.value)), "element")
        kind = _kind(func.coalesce(element.c.type, field.c.type))
        value = func.coalesce(element.c.value, field.c.value)
        return (
            exists()
            .select_from(field.outerjoin(element, true()))
            .where(field.c.key == metadata_name(name), test(kind, value))
        )

    def _is_null(self, name: str) -> ColumnElement[bool]:
        if name in self._columns:
            return self._columns[name].is_(None)
        field = self._fields()
        return not_(exists().where(field.c.key == metadata_name(name), field.c.type != "null"))

    def _fields(self) -> TableValuedAlias:
        """The fields of a row."""
        return _json_each(self._metadata, "field")


def _json_each(source: ColumnElement[Any] | str, name: str) -> TableValuedAlias:
    return func.json_each(source).table_valued("key", "type", "value", name=name)


def _kind(json_type: ColumnElement[str]) -> ColumnElement[str]:
    """The type of a value as in `json_each`, with one name for all numbers."""
    return func.replace(json_type, "real", "integer")


def _in(values: Collection[Value]) -> _ValueTest:
    each = _json_each(_json(values), "literal")
    literals = select(_kind(each.c.type), each.c.value)
    # The first test can use the index of a column. The second compares the kind, too: in SQLite,
    # true equals 1, and a list equals its text.
    return lambda kind, value: and_(
        value.in_(select(each.c.value)), tuple_(kind, value).in_(literals)
    )


def _like(pattern: str) -> _ValueTest:
    if len(pattern.encode()) > MAX_PATTERN_BYTES:
        raise filter_error(f"a pattern of like is longer than {MAX_PATTERN_BYTES:,} bytes")
    return lambda kind, value: and_(kind == "text", value.like(pattern, escape="\\"))


_ORDERS: Mapping[Operator, Callable[[Any, Any], ColumnElement[bool]]] = {
    Operator.LESS: operator.lt,
    Operator.LESS_OR_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_OR_EQUAL: operator.ge,
}


def _ordered(order: Operator, value: Value) -> _ValueTest:
    bound = func.json_extract(_json(value), "$")
    bound_kind = "text" if isinstance(value, str) else "integer"
    return lambda kind, item: and_(kind == bound_kind, _ORDERS[order](item, bound))


def _json(value: Value | Collection[Value]) -> str:
    return json.dumps(value, ensure_ascii=False)
