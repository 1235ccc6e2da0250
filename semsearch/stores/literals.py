"""The literals of a filter against what the fields hold.

A literal compares with values of its own kind only. One of a kind that its field never has is
converted where the meaning is plain, with a message, and refused otherwise: it would find nothing.
In a list with literals that do fit, it stays, with a message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
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
from semsearch.stores.kinds import Kind

#: How many literals a message lists.
LITERALS_SHOWN = 3

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
                fitting = [self._fit_value(test, value, held) for value in values]
                if values and all(value is None for value in fitting):
                    raise self._refused(test, values[0], held)
                pairs = list(zip(values, fitting, strict=True))
                self._note(test.field, held, pairs)
                return replace(
                    test, values=tuple(old if new is None else new for old, new in pairs)
                )
        value = self._fit_value(test, test.value, held)
        if value is None:
            raise self._refused(test, test.value, held)
        self._note(test.field, held, [(test.value, value)])
        return replace(test, value=value)

    def _fit_value(self, test: Comparison | In, value: Value, held: set[Kind]) -> Value | None:
        """A literal as its field can hold it; None if it cannot."""
        ordered = isinstance(test, Comparison) and test.operator not in _EQUALITY
        if isinstance(value, str):
            return self._fit_text(test, value, held, ordered=ordered)
        if isinstance(value, bool):
            return value if Kind.BOOLEAN in held else None
        if Kind.NUMBER in held:
            return value
        # A whole number can be written in one way only.
        as_text = isinstance(value, int) and Kind.TEXT in held and not ordered
        return str(value) if as_text else None

    def _fit_text(
        self, test: Comparison | In, text: str, held: set[Kind], *, ordered: bool
    ) -> Value | None:
        other_date = not is_date(text) and _OTHER_DATE.fullmatch(text) is not None
        if Kind.DATE in held:
            only_dates = Kind.TEXT not in held
            # What is no date at all can be asked for: `published != ''` holds while all have one.
            no_order = other_date or (only_dates and not is_date(text))
            misread = no_order if ordered else only_dates and other_date
            return None if misread else text
        if Kind.TEXT in held:
            if ordered and (is_date(text) or other_date):
                self._check_order_of_dates(test)
            return text
        number = parse_number(text) if Kind.NUMBER in held else None
        if number is not None and math.isinf(number):
            return None
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
        as_dates = Kind.DATE in held and (Kind.TEXT not in held or isinstance(value, str))
        found = self._example(test.field, [Kind.DATE] if as_dates else held)
        such = "" if found is None else f", such as {_shown(found)}"
        way_out = ""
        if as_dates:
            way_out = "; write dates as '2020-05-01'"
        elif Kind.TEXT in held and not isinstance(value, bool):
            way_out = "; put text in quotes, or index the field as numbers"
        name = field_text(test.field)
        return filter_error(f"{name} holds {_words(held)}{such}, not {_shown(value)}{way_out}")

    def _note(
        self, field: str, held: set[Kind], pairs: Sequence[tuple[Value, Value | None]]
    ) -> None:
        converted = [
            f"{_shown(old)} as {_shown(new)}"
            for old, new in pairs
            if new is not None and type(old) is not type(new)
        ]
        unfit = [_shown(old) for old, new in pairs if new is None]
        words = f"{field_text(field)} holds {_words(held)}"
        if converted:
            self.notes.append(filter_message(f"{words}; reading {_listed(converted)}"))
        if unfit:
            self.notes.append(filter_message(f"{words}, not {_listed(unfit)}"))


def _words(held: set[Kind]) -> str:
    return " or ".join(word for kind, word in _HELD.items() if kind in held)


def _listed(items: Sequence[str]) -> str:
    more = len(items) - LITERALS_SHOWN
    return ", ".join(items[:LITERALS_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _shown(value: Value) -> str:
    text = literal_text(value)
    return text if len(text) <= 60 else f"{text[:58]}…'"
