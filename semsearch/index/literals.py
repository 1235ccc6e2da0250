"""The literals of a filter against what the fields hold.

A literal compares with values of its own kind only. One of a kind that its field never has is
converted where the meaning is plain, with a message, and refused otherwise: it would find nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from semsearch.errors import FilterError
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
    field_text,
    filter_error,
    filter_message,
    literal_text,
    parse_number,
)
from semsearch.index.kinds import Kind

__all__ = ["fit_literals", "is_date"]

#: How many conversions a message lists.
CONVERSIONS_SHOWN = 3

_HELD = {
    Kind.TEXT: "text",
    Kind.DATE: "dates",
    Kind.NUMBER: "numbers",
    Kind.BOOLEAN: "true or false",
    Kind.OBJECT: "objects",
}
_EQUALITY = (Operator.EQUAL, Operator.NOT_EQUAL)

#: The beginning of a date or all of it: texts of this form have the order of time.
_ISO_DATE = re.compile(r"\d{4}(-[01]\d(-[0-3]\d([T ].*)?)?)?")
#: Dates in other notations: 1/5/2020, 2020.05.01, 1. 5. 20, May 1, 2020, 1 May 2020.
_OTHER_DATE = re.compile(
    r"\d{1,4}([./-] ?)\d{1,2}\1\d{1,4}\b.*|(\d{1,2}\.? )?[^\W\d]{3,9}\.? (\d{1,2},? )?\d{4}"
)


def is_date(text: str) -> bool:
    """Whether a text is a date that sorts as one, or the beginning of one."""
    return _ISO_DATE.fullmatch(text) is not None


def fit_literals(
    condition: Condition,
    kinds: Mapping[str, Collection[Kind]],
    example: Callable[[str, Collection[Kind]], Value | None],
) -> tuple[Condition, list[str]]:
    """The condition with literals that its fields can hold, and what was converted for that.

    Args:
        condition: its fields are all in `kinds`.
        kinds: what each field holds.
        example: a value of one of these kinds that a field has.

    Raises:
        FilterError: a field never holds anything of a literal's kind.
    """
    fitting = _Fitting(kinds, example)
    return fitting.fit(condition), fitting.notes


class _Fitting:
    def __init__(
        self,
        kinds: Mapping[str, Collection[Kind]],
        example: Callable[[str, Collection[Kind]], Value | None],
    ) -> None:
        self._kinds = kinds
        self._example = example
        self.notes: list[str] = []

    def fit(self, condition: Condition) -> Condition:
        match condition:
            case Not(inner):
                return Not(self.fit(inner))
            case And(conditions) | Or(conditions):
                return type(condition)(tuple(map(self.fit, conditions)))
            case IsNull():
                return condition
        held = {*self._kinds[condition.field]} & _HELD.keys()
        return self._fit_test(condition, held) if held else condition

    def _fit_test(self, test: Comparison | In | Like, held: set[Kind]) -> Condition:
        match test:
            case Like(_, pattern):
                if not held & {Kind.TEXT, Kind.DATE}:
                    raise self._refused(test, pattern, held)
                return test
            case In(_, values):
                fitting = tuple(self._fit_value(test, value, held) for value in values)
                self._note(test.field, held, zip(values, fitting, strict=True))
                return replace(test, values=fitting)
        value = self._fit_value(test, test.value, held)
        self._note(test.field, held, [(test.value, value)])
        return replace(test, value=value)

    def _fit_value(self, test: Comparison | In, value: Value, held: set[Kind]) -> Value:
        ordered = isinstance(test, Comparison) and test.operator not in _EQUALITY
        if isinstance(value, str):
            fitting = self._fit_text(test, value, held, ordered=ordered)
        elif isinstance(value, bool):
            fitting = value if Kind.BOOLEAN in held else None
        elif Kind.NUMBER in held:
            fitting = value
        else:  # a whole number can be written in one way only
            as_text = isinstance(value, int) and Kind.TEXT in held and not ordered
            fitting = str(value) if as_text else None
        if fitting is None:
            raise self._refused(test, value, held)
        return fitting

    def _fit_text(
        self, test: Comparison | In, text: str, held: set[Kind], *, ordered: bool
    ) -> Value | None:
        if Kind.TEXT in held:
            if ordered and Kind.DATE not in held and (is_date(text) or _OTHER_DATE.fullmatch(text)):
                self._check_order_of_dates(test)
            return text
        if Kind.DATE in held:
            return text if is_date(text) else None
        number = parse_number(text) if Kind.NUMBER in held else None
        if number is None and Kind.BOOLEAN in held and not ordered:
            return {"true": True, "false": False}.get(text.strip().lower())
        return number

    def _check_order_of_dates(self, test: Comparison | In) -> None:
        """Refuse to compare dates whose notation does not have the order of time."""
        found = self._example(test.field, [Kind.TEXT])
        if isinstance(found, str) and _OTHER_DATE.fullmatch(found) and not is_date(found):
            raise filter_error(
                f"{field_text(test.field)} holds dates that do not sort as text, such as "
                f"{_shown(found)}; index them as 2020-05-01"
            )

    def _refused(self, test: Comparison | In | Like, value: Value, held: set[Kind]) -> FilterError:
        kinds = [kind for kind in _HELD if kind in held]
        found = self._example(test.field, kinds)
        such = "" if found is None else f", such as {_shown(found)}"
        words = " or ".join(_HELD[kind] for kind in kinds)
        way_out = ""
        if Kind.DATE in held and Kind.TEXT not in held:
            way_out = "; write dates as '2020-05-01'"
        elif Kind.TEXT in held and not isinstance(value, bool):
            way_out = "; put text in quotes, or index the field as numbers"
        name = field_text(test.field)
        return filter_error(f"{name} holds {words}{such}, not {_shown(value)}{way_out}")

    def _note(self, field: str, held: set[Kind], pairs: Iterable[tuple[Value, Value]]) -> None:
        converted = [(old, new) for old, new in pairs if type(old) is not type(new)]
        if not converted:
            return
        words = " or ".join(word for kind, word in _HELD.items() if kind in held)
        listed = [f"{_shown(old)} as {_shown(new)}" for old, new in converted[:CONVERSIONS_SHOWN]]
        more = len(converted) - len(listed)
        rest = f" and {more} more" if more else ""
        note = f"{field_text(field)} holds {words}; reading {', '.join(listed)}{rest}"
        self.notes.append(filter_message(note))


def _shown(value: Value) -> str:
    text = literal_text(value)
    return text if len(text) <= 60 else f"{text[:58]}…'"
