"""Tests of values against times, in SQL.

Python's `instant`, which the database calls, takes longer than the rest. So texts decide where they
can: those of other days, by an index if there is one, and those in the notation of the literals.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, and_, case, func, not_, or_

from semsearch.filters.times import DAY
from semsearch.storage.sqlite.schema import values

#: A test of one value, given its kind and the value itself.
ValueTest: TypeAlias = Callable[[ColumnElement[str], ColumnElement[Any]], ColumnElement[bool]]
#: An operator such as `operator.lt`.
Order: TypeAlias = Callable[[Any, Any], ColumnElement[bool]]


def equal_times(times: Mapping[str, int]) -> ValueTest:
    """Whether a value is the same time as one of these literals.

    Args:
        times: the instants of the literals.
    """
    first, behind = _days_around(times.values())
    texts, instants = values(times), values(times.values())

    def test(kind: ColumnElement[str], value: ColumnElement[Any]) -> ColumnElement[bool]:
        by_instant, by_text = func.instant(value).in_(instants), value.in_(texts)
        near = _unless_alike(value, times, by_instant, by_text)
        return and_(value >= first, value < behind, kind == "text", near)

    return test


def ordered_times(order: Order, literal: str, time: int) -> ValueTest:
    """Whether a value is before or after a literal: as a time if it is one, else as a text.

    Args:
        order: the operator.
        literal: the literal.
        time: its instant.
    """
    first, behind = _days_around([time])

    def test(kind: ColumnElement[str], value: ColumnElement[Any]) -> ColumnElement[bool]:
        by_instant, by_text = order(func.instant(value), time), order(value, literal)
        near = _unless_alike(value, [literal], by_instant, by_text)
        if order in (operator.gt, operator.ge):
            return and_(value >= first, or_(value >= behind, near), kind == "text")
        return and_(value < behind, or_(value < first, near), kind == "text")

    return test


def _days_around(instants: Collection[int]) -> tuple[str, str]:
    """The first text, and the text behind the last one, of times that may be at these instants.

    The text of a time is less than a day, its offset, from the instant. So all texts before the
    first one are of earlier times, and those from the last one on of later times.
    """
    epoch = date(1970, 1, 1).toordinal()
    first = max(epoch + min(instants) // DAY - 1, date.min.toordinal())
    last = min(epoch + max(instants) // DAY + 1, date.max.toordinal())
    return date.fromordinal(first).isoformat(), f"{date.fromordinal(last).isoformat()}~"


def _unless_alike(
    value: ColumnElement[Any],
    literals: Iterable[str],
    by_instant: ColumnElement[bool],
    by_text: ColumnElement[bool],
) -> ColumnElement[bool]:
    """The test by instants, or by texts for what is no time or in the notation of the literals."""
    notations = {_notation(literal) for literal in literals}
    if len(notations) > 1:
        return func.coalesce(by_instant, by_text)
    return func.coalesce(case((not_(value.op("GLOB")(notations.pop())), by_instant)), by_text)


def _notation(literal: str) -> str:
    """A pattern of the times that are written like one, with its offset."""
    clock = re.sub(r" ?(Z|UTC|[+-][0-9:]+)$", "", literal[10:])
    return re.sub("[0-9]", "?", literal[:10] + clock) + literal[10 + len(clock) :]
