"""Dates and times as the values of a field are written, so that equal instants are equal texts.

A value without a UTC offset has that of the field's other values if it is the same in all of them;
otherwise it is UTC. A text compared with the values has that of each of them if it has none itself.
A date without a time is its midnight.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Self

_TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"((?P<separator>[T ])(?P<minute>\d\d:\d\d)(:(?P<second>\d\d)(\.(?P<fraction>\d+))?)?"
    r"(?P<zone> ?(Z|UTC|[+-]\d\d(:?\d\d)?))?)?",
    re.ASCII,
)


class Notation(NamedTuple):
    """How times are written."""

    separator: str
    digits: int | None  #: of the fraction of a second; None without seconds
    zone: str  #: the UTC offset as it is written; empty if there is none


class Time(NamedTuple):
    """A date, or a date and time."""

    wall: datetime  #: without the fraction of a second
    fraction: str  #: of a second, without zeros at its end
    notation: Notation | None  #: None for a date

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Parse a text; None if it is no time in ISO 8601 or in the notation of a database."""
        found = _TIME.fullmatch(text)
        if found is None:
            return None
        day, separator, minute, second = found.group("day", "separator", "minute", "second")
        try:
            wall = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}")
        except ValueError:
            return None
        if separator is None:
            return cls(wall, "", None)
        fraction = found["fraction"] or ""
        digits = None if second is None else len(fraction)
        return cls(wall, fraction.rstrip("0"), Notation(separator, digits, found["zone"] or ""))


class Reading(NamedTuple):
    """A time in the notations of a field."""

    texts: list[str]  #: at least one; the latest times before it if no notation has its precision
    is_exact: bool
    is_converted: bool  #: whether its UTC offset differs from the field's
    in_order: bool  #: whether the order of the field's values as texts is that of time


class Notations:
    """The notations of the times of a field.

    Args:
        values: of the field, at least one.
    """

    def __init__(self, values: Sequence[str]) -> None:
        found: dict[Notation, str] = {}
        for value in values:
            time = Time.of(value)
            if time is not None and time.notation is not None:
                found.setdefault(time.notation, value)
        self._notations = list(found)
        #: A value in each notation; any value if none has a time.
        self.examples = list(found.values()) or [values[0]]
        zones = [notation.zone for notation in found if notation.zone]
        #: That of values without one.
        self._zone = zones[0] if len(set(map(_offset, zones))) == 1 else ""

    def reading(self, text: str) -> Reading | None:
        """A text in these notations; None if it is no time, or none that they can hold."""
        time = Time.of(text)
        if time is None:
            return None
        given = time.notation
        notations = self._notations or ([given._replace(zone="")] if given else [])
        zone = given.zone if given else ""
        try:
            base = _wall(time, zone, self._zone)
            walls = [_wall(time, zone, notation.zone or self._zone) for notation in notations]
        except OverflowError:  # near the years 1 and 9999
            return None
        written = [
            _written(wall, time.fraction, notation)
            for wall, notation in zip(walls, notations, strict=True)
        ]
        exact = [each for each, is_exact in written if is_exact]
        is_midnight = base.time() == datetime.min.time() and not time.fraction
        if is_midnight:
            exact.insert(len(exact) if given else 0, base.date().isoformat())
        texts = list(dict.fromkeys(exact or (each for each, _ in written)))
        is_converted = bool(walls) and walls[0] != time.wall
        return Reading(
            texts, bool(exact), is_converted, self._in_order(zone, is_midnight=is_midnight)
        )

    def _in_order(self, zone: str, *, is_midnight: bool) -> bool:
        zones = {notation.zone or self._zone for notation in self._notations}
        if zone and len({_offset(each) for each in zones}) > 1:
            return False
        if is_midnight:  # a date without a time sorts before all times of its day
            return True
        # What may follow the shorter of two notations sorts before the longer one, except Z.
        is_prefix = not any(zone.startswith(("Z", "U")) for zone in zones)
        separators = {notation.separator for notation in self._notations}
        digits = {notation.digits for notation in self._notations}
        return len(separators) <= 1 and (is_prefix or len(digits) <= 1)


def _wall(time: Time, zone: str, other: str) -> datetime:
    """The time at another UTC offset; a time without one has it already."""
    return time.wall + _offset(other) - _offset(zone) if zone else time.wall


def _offset(zone: str) -> timedelta:
    digits = re.sub(r"\D", "", zone).ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -offset if "-" in zone else offset


def _written(wall: datetime, fraction: str, notation: Notation) -> tuple[str, bool]:
    """A time in a notation, without what is too precise for it, and whether it is exact."""
    separator, digits, zone = notation
    if digits is None:
        text = wall.isoformat(separator, "minutes")
        return f"{text}{zone}", not wall.second and not fraction
    text = wall.isoformat(separator, "seconds")
    decimals = f".{fraction[:digits].ljust(digits, '0')}" if digits else ""
    return f"{text}{decimals}{zone}", len(fraction) <= digits
