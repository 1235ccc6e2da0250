"""Metadata as JSON for Milvus' filters, and conditions as expressions over it.

Milvus has no tests of lists for order, and its versions differ in how values of unlike types
compare. So the values of each field stand in lists, one for each kind, behind the greatest and the
least of them. A number is a float; a date is an instant, and a text under another kind:

    {"genres": {"text": ["Drama", "Crime", "Crime", "Drama"]}, "year": {"number": [1990.0, …]},
     "day": {"date": [1717200000000000.0, …], "written": ["2024-06-01", …]}}
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from semsearch.errors import ArgumentError
from semsearch.filters import And, Comparison, Condition, In, IsNull, Like, Not, Operator, Or, Value
from semsearch.filters.times import instant
from semsearch.records import BUILT_IN_FIELDS, metadata_field

#: Holds for no row of any collection with documents' numbers.
NEVER = "document < 0"


def filter_json(document_id: str, title: str | None, metadata: str) -> dict[str, Any]:
    """The fields of a document as filters test them, given its metadata as JSON."""
    values = {metadata_field(name): value for name, value in json.loads(metadata).items()}
    values |= {"id": document_id, "title": title}
    return {name: _by_kind(name, value) for name, value in values.items() if value is not None}


def held_kinds(fields: Mapping[str, Iterable[str]]) -> set[tuple[str, str]]:
    """Each metadata field with each kind of its values, given the fields for filters."""
    return {
        (name, kind)
        for name, kinds in fields.items()
        for kind in kinds
        if name not in BUILT_IN_FIELDS and kind != "written"
    }


def to_expression(condition: Condition | None) -> str:
    """An expression that holds for the rows that match a condition; empty for None.

    Raises:
        ArgumentError: a test is ``like``.
    """
    match condition:
        case None:
            return ""
        case Not(inner):
            return f"not ({to_expression(inner)})"
        case And(operands):
            return all_of(*map(to_expression, operands))
        case Or(operands):
            return _any_of(map(to_expression, operands))
        case IsNull(name):
            return f"not ({has_values(name)})"
        case In(name, values):
            return _equals_any(name, values)
        case Like():
            raise ArgumentError(f"an index on Milvus has no like: {condition}")
        case Comparison(name, Operator.EQUAL, value):
            return _equals_any(name, [value])
        case Comparison(name, Operator.NOT_EQUAL, value):
            return f"not ({_equals_any(name, [value])})"
        case Comparison(name, operator, value):
            return _any_of(
                _in_order(name, kind, operator, compared)
                for kind, compared in _comparable(name, value)
            )


def has_values(*keys: str) -> str:
    """A condition that a document has values in a field, or in a field and of a kind."""
    return f"exists {_path(*keys)}"


def one_of(field: str, values: Sequence[int] | Sequence[str]) -> str:
    """A condition that a field has one of these values."""
    return f"{field} in {_literal(values)}"


def all_of(*conditions: str) -> str:
    """A condition that all of these hold, of which some may be empty."""
    return " and ".join(f"({condition})" for condition in conditions if condition)


def _by_kind(name: str, value: Any) -> dict[str, list[Any]]:
    """The values of a field by kind: the greatest, the least, and the others."""
    values: dict[str, list[Any]] = {}
    for element in value if isinstance(value, list) else [value]:
        if isinstance(element, (str, bool, int, float)):
            kind, compared = _comparable(name, element)[0]
            values.setdefault(kind, []).append(compared)
            if kind == "date":
                values.setdefault("written", []).append(element)
    for some in values.values():
        some.sort()
    return {kind: [some[-1], some[0], *some[1:-1]] for kind, some in values.items()}


def _comparable(name: str, value: Value) -> list[tuple[str, Value]]:
    """The kinds that a value is compared with, its own first, and the value for each of them."""
    if isinstance(value, bool):
        return [("boolean", value)]
    if not isinstance(value, str):
        return [("number", float(value))]
    time = None if name in BUILT_IN_FIELDS else instant(value)
    if time is None:
        return [("text", value), ("written", value)]
    return [("date", float(time)), ("text", value)]


def _in_order(name: str, kind: str, operator: Operator, value: Value) -> str:
    place = 0 if operator in (Operator.GREATER, Operator.GREATER_OR_EQUAL) else 1
    test = f"{_path(name, kind)}[{place}] {operator.value} {_literal(value)}"
    # milvus-lite takes a comparison with a missing key, and the `not` of it, for unknown.
    return all_of(has_values(name, kind), test)


def _equals_any(name: str, values: Iterable[Value]) -> str:
    by_kind: dict[str, list[Value]] = {}
    for value in values:
        kind, compared = _comparable(name, value)[0]
        by_kind.setdefault(kind, []).append(compared)
    return _any_of(
        f"json_contains_any({_path(name, kind)}, {_literal(some)})"
        for kind, some in by_kind.items()
    )


def _any_of(tests: Iterable[str]) -> str:
    return " or ".join(f"({test})" for test in tests) or NEVER


def _literal(value: Value | Collection[Value]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _path(*keys: str) -> str:
    return "fields" + "".join(f"[{_literal(key)}]" for key in keys)
