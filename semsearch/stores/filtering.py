"""Filters for one state of a store: parsed, checked, explained when they match nothing."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Collection, Iterator
from typing import NamedTuple

from semsearch.errors import FieldNotFoundError
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
from semsearch.stores.kinds import Kind
from semsearch.stores.literals import fit_literals, is_date
from semsearch.stores.protocol import StoreState

#: For how many tests of a filter that matches nothing similar values are looked for.
TESTS_EXPLAINED = 3
SIMILAR_SHOWN = 3
#: How many of the known fields a message lists.
FIELDS_SHOWN = 20


class Filter(NamedTuple):
    """A filter for the documents of an index."""

    condition: Condition
    notes: list[str]  #: what was converted, for the user


def read_filter(state: StoreState, where: str) -> Filter:
    """A filter expression, checked against what the documents hold.

    Raises:
        FilterError: it cannot be parsed, names an unknown field, or compares a field with
            literals of kinds that it never holds.
    """
    condition = parse(where)
    tested = fields(condition)
    held = state.kinds_of(map(metadata_name, tested.difference(BUILT_IN_FIELDS)))
    kinds = {metadata_field(name): found for name, found in held.items()}
    kinds |= {name: {Kind.TEXT} for name in BUILT_IN_FIELDS}
    if not tested <= kinds.keys():
        check_fields(condition, {*map(metadata_field, state.field_names()), *kinds})
    condition, notes = fit_literals(condition, kinds, state.example)
    state.check(condition)
    return Filter(condition, notes)


def check_fields(condition: Condition, known: Collection[str]) -> None:
    """Refuse a condition on a field that no document has: it is misspelt more often than not.

    Raises:
        FieldNotFoundError: names the field, those that are spelt like it, and those that there are.
    """
    unknown = fields(condition).difference(known)
    if not unknown:
        return
    name = min(unknown)
    spellings = {other.lower(): field_text(other) for other in known}
    nearest = [spellings[match] for match in difflib.get_close_matches(name.lower(), spellings)]
    suggestion = f"; nearest: {', '.join(nearest)}" if nearest else ""
    listed = [field_text(other) for other in sorted(known)[:FIELDS_SHOWN]]
    if len(known) > FIELDS_SHOWN:
        listed.append(f"and {len(known) - FIELDS_SHOWN} more")
    shown = name if field_text(name) == name else metadata_name(name)
    raise FieldNotFoundError(
        filter_message(
            f"no document has a field {shown!r}{suggestion} (fields: {', '.join(listed)})"
        )
    )


def no_match(state: StoreState, condition: Condition) -> str | None:
    """What to tell of a filter if it matches no document: the nearest values that there are."""
    if state.matches(condition):
        return None
    hints: list[str] = []
    for test in _required(condition):
        if len(hints) == TESTS_EXPLAINED:
            break
        if not state.matches(test) and (hint := _nearest(state, test)):
            hints.append(f"; {hint}")
    return filter_message(f"no document matches{''.join(hints)}")


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


def _nearest(state: StoreState, test: Comparison | In) -> str:
    """The values of a field that are nearest to the first one that a test looks for."""
    value = test.values[0] if isinstance(test, In) else test.value
    if isinstance(value, bool):
        return ""
    in_order = isinstance(test, Comparison) and test.operator is not Operator.EQUAL
    nearest, question = [], "did you mean {}?"
    if isinstance(value, str) and not in_order and not is_date(value):
        nearest = _similar(state, test.field, value)
    if not nearest:
        nearest, question = state.neighbours(test.field, value), "nearest: {}"
    if not nearest:
        return ""
    sign = test.operator.value if isinstance(test, Comparison) else "="
    asked = f"{field_text(test.field)} {sign} {literal_text(value)}"
    return f"{asked}: {question.format(' or '.join(map(literal_text, nearest)))}"


def _similar(state: StoreState, field: str, text: str) -> list[Value]:
    """Texts that are spelt alike, the most similar first."""
    values = state.texts_of(field, 2 * len(text) + 10)
    spellings = {_folded(value): value for value in values}
    if _folded(text) in spellings:
        return [spellings[_folded(text)]]
    matches = difflib.get_close_matches(_folded(text), spellings, SIMILAR_SHOWN)
    return [spellings[match] for match in matches]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())
