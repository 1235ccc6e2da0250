"""A filter that matches something, near one that matches nothing."""

from __future__ import annotations

import difflib
from dataclasses import replace

from semsearch.filters import And, Comparison, Condition, In, Not, Operator, Or, Value
from semsearch.records import metadata_name
from semsearch.storage.interface import Reader, Selection

#: The most texts of a field that are compared.
TEXTS = 100_000
_INCLUSIVE = {Operator.LESS: Operator.LESS_OR_EQUAL, Operator.GREATER: Operator.GREATER_OR_EQUAL}


def nearest_filter(state: Reader, condition: Condition) -> str | None:
    """The condition with the nearest values of its fields; None if nothing matches that, either."""
    changed = _nearest(state, condition)
    if changed == condition or not state.ids(Selection(condition=changed), limit=1):
        return None
    return str(changed)


def _nearest(state: Reader, condition: Condition) -> Condition:
    match condition:
        case Not(inner):
            return Not(_nearest(state, inner))
        case And(conditions):
            return And(tuple(_nearest(state, one) for one in conditions))
        case Or(conditions):
            return Or(tuple(_nearest(state, one) for one in conditions))
        case Comparison(field, operator, value):
            nearest = _value(state, field, value)
            if nearest == value:
                return condition
            return Comparison(field, _INCLUSIVE.get(operator, operator), nearest)
        case In(field, values):
            return replace(condition, values=tuple(_value(state, field, one) for one in values))
        case _:
            return condition


def _value(state: Reader, field: str, value: Value) -> Value:
    """The nearest value of a field: a text spelt much like it, or a bound of its numbers."""
    name = metadata_name(field)
    if isinstance(value, str):
        texts = {text.casefold(): text for text, _ in state.texts_like(name, "", TEXTS)}
        close = difflib.get_close_matches(value.casefold(), texts, n=1)
        return texts[close[0]] if close else value
    for held in state.field_values():
        if held.name == name and held.least is not None and not isinstance(value, bool):
            return min(max(value, held.least), held.greatest)  # type: ignore[type-var, return-value]
    return value
