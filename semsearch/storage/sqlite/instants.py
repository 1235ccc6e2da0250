"""Tests of values against times, in SQL.

Python's `instant`, which the database calls, takes longer than the rest. So it is called only for
texts of about the same day; the order of texts, by an index if there is one, decides about others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from datetime import date
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, and_, func, or_

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
        near = func.coalesce(func.instant(value).in_(instants), value.in_(texts))
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
        near = func.coalesce(order(func.instant(value), time), order(value, literal))
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
