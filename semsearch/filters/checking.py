"""The check of a condition against the fields of an index."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping

from semsearch.errors import FilterError
from semsearch.filters import (
    And,
    Comparison,
    Condition,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Test,
    Value,
    field_text,
    filter_error,
    literal_text,
)
from semsearch.records import BUILT_IN_FIELDS, Kind, metadata_field

_WORDS = {
    Kind.TEXT: "text",
    Kind.DATE: "dates",
    Kind.NUMBER: "numbers",
    Kind.BOOLEAN: "true or false",
    Kind.OBJECT: "objects",
}
#: A time, or the beginning of one: such texts are in the order of times.
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d.*)?)?", re.DOTALL)


def check(condition: Condition, fields: Mapping[str, Collection[Kind]]) -> Condition:
    """Check a condition against the fields of an index, and return it.

    Args:
        condition: see `semsearch.filters.parsing.parse`.
        fields: the kinds of values of each metadata field.

    Raises:
        FilterError: no document has a field, which is usually misspelt; or a field never holds
            values of a literal's kind, so that the test would match nothing.
    """
    held = {metadata_field(name): {*kinds} & _WORDS.keys() for name, kinds in fields.items()}
    held |= {name: {Kind.TEXT} for name in BUILT_IN_FIELDS}
    for test in tests_of(condition):
        if test.field not in held:
            raise _unknown(test.field, held)
        for value, kinds in _literals(test):
            if held[test.field] and not held[test.field] & kinds:
                raise _misfit(test.field, value, held[test.field])
    return condition


def tests_of(condition: Condition) -> Iterator[Test]:
    """The tests in a condition, from left to right."""
    match condition:
        case Not(inner):
            yield from tests_of(inner)
        case And(conditions) | Or(conditions):
            for operand in conditions:
                yield from tests_of(operand)
        case _:
            yield condition


def _literals(test: Test) -> Iterator[tuple[Value, set[Kind]]]:
    """The literals of a test, each with the kinds of values that it is compared with."""
    match test:
        case Comparison(_, operator, str(text)) if operator.is_order and not _DATE.fullmatch(text):
            yield text, {Kind.TEXT}
        case Comparison(_, _, value) | Like(_, value):
            yield value, _kinds(value)
        case In(_, values):
            yield from ((value, _kinds(value)) for value in values)
        case IsNull():
            return


def _kinds(value: Value) -> set[Kind]:
    if isinstance(value, str):
        return {Kind.TEXT, Kind.DATE}
    return {Kind.BOOLEAN} if isinstance(value, bool) else {Kind.NUMBER}


def _misfit(field: str, value: Value, held: Collection[Kind]) -> FilterError:
    words = " or ".join(word for kind, word in _WORDS.items() if kind in held)
    remedy = "; put text in quotes" if Kind.TEXT in held else ""
    return filter_error(f"{field_text(field)} holds {words}, not {literal_text(value)}{remedy}")


def _unknown(field: str, known: Collection[str]) -> FilterError:
    spellings = {other.lower(): field_text(other) for other in known}
    nearest = [spellings[match] for match in difflib.get_close_matches(field.lower(), spellings)]
    suggestion = f"; nearest: {', '.join(nearest)}" if nearest else ""
    names = ", ".join(map(field_text, sorted(known)))
    unknown = f"no document has a field '{field_text(field)}'"
    return filter_error(f"{unknown}{suggestion} (fields: {names})")
