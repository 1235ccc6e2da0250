"""Filters for one state of a store: parsed, checked, and explained if they match nothing.

A literal compares only with values of its own kind. A literal of a kind that its field never has is
converted where the meaning is clear, with a message, and refused otherwise, since it would match
nothing. In a list that has other literals of the right kind, it is kept, with a message.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from semsearch.errors import FieldNotFoundError, FilterError
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
    fields,
    filter_error,
    filter_message,
    literal_text,
    parse,
    parse_number,
)
from semsearch.records import BUILT_IN_FIELDS, metadata_field, metadata_name
from semsearch.stores.protocol import Kind, StoreState
from semsearch.stores.times import Notations, Reading, Time

#: Tests of a filter that matches nothing for which a message lists similar values.
TESTS_EXPLAINED = 3
#: Each takes a scan of the values of its field.
TESTS_TRIED = 20
SIMILAR_SHOWN = 3
#: Longer texts are not compared by spelling, which takes long.
MAX_SIMILAR_CHARACTERS = 200
#: Known fields listed in a message.
FIELDS_SHOWN = 20


class Filter(NamedTuple):
    """A filter for the documents of an index."""

    condition: Condition
    notes: list[str]  #: messages about converted literals


def read_filter(state: StoreState, where: str) -> Filter:
    """Parse a filter expression and check it against the fields of the documents.

    Raises:
        FilterError: the filter cannot be parsed, names an unknown field, or compares a field with
            literals of kinds that it never holds.
    """
    condition = parse(where)
    tested = fields(condition)
    held = state.kinds_of(map(metadata_name, tested.difference(BUILT_IN_FIELDS)))
    kinds = {metadata_field(name): found for name, found in held.items()}
    kinds |= {name: {Kind.TEXT} for name in BUILT_IN_FIELDS}
    if not tested <= kinds.keys():
        check_fields(condition, {*map(metadata_field, state.field_names()), *kinds})
    condition, notes = fit_literals(condition, kinds, state.example, state.dates)
    state.check(condition)
    return Filter(condition, notes)


def check_fields(condition: Condition, known: Collection[str]) -> None:
    """Refuse a condition on a field that no document has, which is usually misspelt.

    Raises:
        FieldNotFoundError: a field is unknown; the message lists similar and known names.
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
    """A message with the nearest values if a filter matches no document; otherwise None."""
    if state.matches(condition):
        return None
    hints: dict[str, str] = {}  # by the values that they name, as a day makes several tests
    for test in islice(_required(condition), TESTS_TRIED):
        if len(hints) == TESTS_EXPLAINED:
            break
        if not state.matches(test) and (hint := _nearest(state, test)):
            hints.setdefault(hint.partition(": ")[2], f"; {hint}")
    return filter_message(f"no document matches{''.join(hints.values())}")


def _required(condition: Condition) -> Iterator[Comparison | In]:
    """The tests for values that are not inside a `not`."""
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
    """A hint with the values of a field that are nearest to the first value of a test."""
    value = test.values[0] if isinstance(test, In) else test.value
    if isinstance(value, bool):
        return ""
    in_order = isinstance(test, Comparison) and test.operator is not Operator.EQUAL
    nearest, question = [], "did you mean {}?"
    if (
        isinstance(value, str)
        and len(value) <= MAX_SIMILAR_CHARACTERS
        and not in_order
        and not is_date(value)
    ):
        nearest = _similar(state, test.field, value)
    if not nearest:
        nearest, question = state.neighbours(test.field, value), "nearest: {}"
    if not nearest:
        return ""
    sign = test.operator.value if isinstance(test, Comparison) else "="
    tested = f"{field_text(test.field)} {sign} {literal_text(value)}"
    return f"{tested}: {question.format(' or '.join(map(literal_text, nearest)))}"


def _similar(state: StoreState, field: str, text: str) -> list[Value]:
    """Texts with a similar spelling, the most similar first."""
    values = state.texts_of(field, 2 * len(text) + 10)
    spellings = {_folded(value): value for value in values}
    if _folded(text) in spellings:
        return [spellings[_folded(text)]]
    matches = difflib.get_close_matches(_folded(text), spellings, SIMILAR_SHOWN)
    return [spellings[match] for match in matches]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


#: Literals listed in a message.
LITERALS_SHOWN = 3

_HELD = {
    Kind.TEXT: "text",
    Kind.DATE: "dates",
    Kind.NUMBER: "numbers",
    Kind.BOOLEAN: "true or false",
    Kind.OBJECT: "objects",
}
_EQUALITY = (Operator.EQUAL, Operator.NOT_EQUAL)
#: How to compare with the time just before another one.
_AFTER = {
    Operator.LESS: Operator.LESS_OR_EQUAL,
    Operator.GREATER_OR_EQUAL: Operator.GREATER,
}

#: A date or the beginning of one; texts in this notation sort by time.
_ISO_DATE = re.compile(r"\d{4}(-[01]\d(-[0-3]\d([T ].*)?)?)?")
_NAME = r"[^\W\d]{3,9}\.?"  # of a month or a weekday
_CLOCK = r"(,? \d{1,2}:\d\d.*)?"
#: Dates in other notations: 1/5/2020, 2020.05.01, 1. 5. 20, 1-May-20, May 2020, Fri, 1 May 2020,
#: May 1, 2020 10:30 AM and Fri May 01 10:30:00 +0000 2020.
_OTHER_DATE = re.compile(
    r"\d{1,4}([./-] ?)\d{1,2}\1\d{1,4}\b.*"
    rf"|\d{{1,2}}-{_NAME}-(\d\d|\d{{4}}){_CLOCK}"
    rf"|{_NAME} \d{{4}}"
    rf"|({_NAME},? )?(\d{{1,2}}\.? {_NAME}|{_NAME} \d{{1,2}},?) \d{{4}}{_CLOCK}"
    rf"|{_NAME} {_NAME} \d{{1,2}} \d\d:\d\d.* \d{{4}}"
)


def is_date(text: str) -> bool:
    """Whether a text is an ISO date, which sorts by time, or the beginning of one."""
    return _ISO_DATE.fullmatch(text) is not None


def fit_literals(
    condition: Condition,
    kinds: Mapping[str, Collection[Kind]],
    example: Callable[[str, Collection[Kind]], Value | None],
    dates: Callable[[str], Iterable[str]],
) -> tuple[Condition, list[str]]:
    """Convert the literals of a condition to the kinds of their fields.

    Args:
        condition: all of its fields are in `kinds`.
        kinds: the kinds of values of each field.
        example: returns a value of a field that has one of these kinds.
        dates: returns dates of a field, in all of its notations.

    Returns:
        The condition, and messages about converted literals.

    Raises:
        FilterError: a field never holds values of a literal's kind.
    """
    fitting = _Fitting(kinds, example, dates)
    return fitting.fit(condition), list(dict.fromkeys(fitting.notes))


def _at(test: Comparison, time: Reading) -> Condition:
    """A comparison for order with a time, as the values of its field are written."""
    found = _by_text(test, time)
    if test.value in time.texts:
        return found
    # The sample of the field's values may lack the notation of the literal.
    same = Comparison(test.field, Operator.EQUAL, test.value)
    if test.operator in (Operator.LESS, Operator.GREATER):
        return And((found, Not(same)))
    return Or((found, same))


def _by_text(test: Comparison, time: Reading) -> Condition:
    """A comparison for order with the texts of a time."""
    name, operator = test.field, test.operator
    first, last = min(time.texts), max(time.texts)
    if not time.is_exact:  # the texts are of earlier times
        return Comparison(name, _AFTER.get(operator, operator), last)
    if first == last:
        return replace(test, value=first)
    equal = In(name, tuple(time.texts))
    match operator:
        case Operator.LESS_OR_EQUAL:
            return Or((Comparison(name, Operator.LESS, first), equal))
        case Operator.GREATER:  # the second test is for lists that hold this time and later ones
            later = And((Comparison(name, operator, first), Not(equal)))
            return Or((later, Comparison(name, operator, last)))
    return replace(test, value=first)


class _Fitting:
    def __init__(
        self,
        kinds: Mapping[str, Collection[Kind]],
        example: Callable[[str, Collection[Kind]], Value | None],
        dates: Callable[[str], Iterable[str]],
    ) -> None:
        self._kinds = kinds
        self._example = example
        self._dates = dates
        self._notations: dict[str, Notations] = {}
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
                found = [old if new is None else new for old, new in pairs]
                return replace(test, values=tuple(self._in_notations(test.field, found, held)))
        value = self._fit_value(test, test.value, held)
        if value is None:
            raise self._refused(test, test.value, held)
        self._note(test.field, held, [(test.value, value)])
        test = replace(test, value=value)
        if test.operator in _EQUALITY:
            texts = tuple(self._in_notations(test.field, [value], held))
            if len(texts) == 1:
                return test
            equal = In(test.field, texts)
            return equal if test.operator is Operator.EQUAL else Not(equal)
        time = self._time(test.field, value, held, ordered=True)
        return test if time is None else _at(test, time)

    def _in_notations(
        self, field: str, values: Iterable[Value], held: set[Kind]
    ) -> Iterator[Value]:
        """The values, with times in all notations of a field, and in their own."""
        for value in values:
            time = self._time(field, value, held, ordered=False)
            texts = [] if time is None else time.texts
            yield from dict.fromkeys([*texts, value])

    def _fit_value(self, test: Comparison | In, value: Value, held: set[Kind]) -> Value | None:
        """A literal as a value that its field can hold; None if there is none."""
        ordered = isinstance(test, Comparison) and test.operator not in _EQUALITY
        if isinstance(value, str):
            return self._fit_text(test, value, held, ordered=ordered)
        if isinstance(value, bool):
            return value if Kind.BOOLEAN in held else None
        if Kind.NUMBER in held:
            return int(value) if isinstance(value, int) else value
        as_text = isinstance(value, int) and Kind.TEXT in held and not ordered
        return literal_text(value) if as_text else None

    def _fit_text(
        self, test: Comparison | In, text: str, held: set[Kind], *, ordered: bool
    ) -> Value | None:
        other_date = not is_date(text) and _OTHER_DATE.fullmatch(text) is not None
        if Kind.DATE in held:
            only_dates = Kind.TEXT not in held
            # Tests for texts that are not dates are allowed: `published != ''` is useful.
            no_order = other_date or (only_dates and not is_date(text))
            misread = no_order if ordered else only_dates and other_date
            if misread:
                return None
            if ordered and not only_dates and is_date(text):
                self._note_other_dates(test.field)
            return text
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

    def _time(self, field: str, value: Value, held: set[Kind], *, ordered: bool) -> Reading | None:
        """A literal in the notations of the times of a field; None if it stays as it is."""
        if Kind.DATE not in held or not isinstance(value, str) or Time.of(value) is None:
            return None
        if field not in self._notations:
            found = list(self._dates(field))
            self._notations[field] = Notations(found or [value])
        notations = self._notations[field]
        time = notations.reading(value)
        if time is None or not (ordered or time.is_exact):
            return None
        name = field_text(field)
        if time.is_converted:
            such = f"{name} holds dates such as {_shown(notations.examples[0])}"
            reading = f"reading {_shown(value)} as {_shown(time.texts[0])}"
            self.notes.append(filter_message(f"{such}; {reading}"))
        if ordered and not time.in_order:
            such = " and ".join(map(_shown, notations.examples[:2]))
            self.notes.append(
                filter_message(
                    f"{name} holds times in notations that do not sort together, such as {such}, "
                    "so the filter can be wrong; index them in one notation"
                )
            )
        return time

    def _note_other_dates(self, field: str) -> None:
        """Say that a field of ISO dates has others, too, which do not sort by time."""
        if unsorted := self._unsorted_date(field):
            self.notes.append(
                filter_message(
                    f"{field_text(field)} also holds dates that do not sort as text, such as "
                    f"{unsorted}, so the filter can be wrong; index them as 2020-05-01"
                )
            )

    def _check_order_of_dates(self, test: Comparison | In) -> None:
        """Refuse to compare dates in a notation that does not sort by time."""
        if unsorted := self._unsorted_date(test.field):
            raise filter_error(
                f"{field_text(test.field)} holds dates that do not sort as text, such as "
                f"{unsorted}; index them as 2020-05-01"
            )

    def _unsorted_date(self, field: str) -> str | None:
        """An example of the texts of a field if it is a date in another notation than ISO."""
        found = self._example(field, [Kind.TEXT])
        if isinstance(found, str) and _OTHER_DATE.fullmatch(found) and not is_date(found):
            return _shown(found)
        return None

    def _refused(self, test: Comparison | In | Like, value: Value, held: set[Kind]) -> FilterError:
        as_dates = Kind.DATE in held and (Kind.TEXT not in held or isinstance(value, str))
        found = self._example(test.field, [Kind.DATE] if as_dates else held)
        such = "" if found is None else f", such as {_shown(found)}"
        remedy = ""
        if as_dates:
            remedy = "; write dates as '2020-05-01'"
        elif Kind.TEXT in held and not isinstance(value, bool):
            remedy = "; put text in quotes, or index the field as numbers"
        name = field_text(test.field)
        return filter_error(f"{name} holds {_words(held)}{such}, not {_shown(value)}{remedy}")

    def _note(
        self, field: str, held: set[Kind], pairs: Sequence[tuple[Value, Value | None]]
    ) -> None:
        converted = [
            f"{_shown(old)} as {_shown(new)}"
            for old, new in pairs
            if new is not None and isinstance(old, str) is not isinstance(new, str)
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
