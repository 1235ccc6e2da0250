"""Values of metadata fields, counted in all documents or in some, from columns in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, func, select

from semsearch.records import Kind
from semsearch.storage.interface import FACET_DOCUMENTS, FieldValues
from semsearch.storage.sqlite.schema import documents

#: The most texts listed of a field, and their maximum length in characters.
LISTED_VALUES, LONGEST_VALUE = 50, 100
#: Bins of a histogram.
BINS = 24
#: A field with no more distinct values than these is a facet, even if each document has its own.
FEW = 8
#: More whole numbers than these that are all distinct name documents.
NAMES = 100

_DATE = re.compile(r"\d{4}-[01]\d-[0-3]\d")
#: Sizes of pictures, beside their addresses.
_SIZE = re.compile(r"(^|_)(width|height)$", re.IGNORECASE)


class Column(NamedTuple):
    """The values of a field, by the positions of documents.

    The scalars are numbers that are not in lists or, if there are none, dates.
    """

    text_rows: NDArray[Any]  #: the position of the document of each text
    codes: NDArray[Any]  #: its place in `texts`
    texts: list[str]  #: distinct ones; those of booleans are true and false
    scalar_rows: NDArray[Any]
    scalars: list[float | str]
    bins: NDArray[Any]  #: of the scalars; empty if the field is no range


class Columns:
    """The values of the fields of documents, of a sample if there are many.

    Args:
        connection: a connection to the index.
    """

    def __init__(self, connection: Connection) -> None:
        total = connection.scalar(select(func.count()).select_from(documents)) or 0
        self._step = -(-total // FACET_DOCUMENTS) or 1
        ids = self._sampled(select(documents.c.document_id, documents.c.metadata))
        rows = connection.execute(ids.order_by(documents.c.document_id)).all()
        self._ids = numpy.array([row[0] for row in rows], numpy.int64)
        self._fields = _columns(json.loads(row[1]) for row in rows)

    def _sampled(self, query: Any) -> Any:
        return query.where(documents.c.document_id % self._step == 0) if self._step > 1 else query

    def count(
        self,
        connection: Connection,
        known: Mapping[str, set[Kind]],
        condition: ColumnElement[bool] | None = None,
    ) -> list[FieldValues]:
        """The fields, sorted by name, in all documents or in those that match a condition.

        Args:
            connection: a connection to the index.
            known: the kinds of values by field.
            condition: a condition on documents.
        """
        chosen = numpy.ones(len(self._ids), numpy.bool)
        if condition is not None:
            ids = self._sampled(select(documents.c.document_id)).where(condition)
            chosen = numpy.isin(self._ids, list(connection.scalars(ids)))
        return [
            _counted(name, kinds, self._fields[name], chosen)
            for name, kinds in sorted(known.items())
            if kinds and name in self._fields
        ]

    def texts_like(self, name: str, typed: str, limit: int) -> list[tuple[str, int]]:
        """Texts of a field that contain what was typed, those with a word that begins so first."""
        column, typed = self._fields.get(name), typed.casefold()
        begins = re.compile(rf"\b{re.escape(typed)}")
        if column is None:
            return []
        counts = numpy.bincount(column.codes, minlength=len(column.texts)).tolist()
        found = [
            (not begins.search(folded), -count, text)
            for text, count in zip(column.texts, counts, strict=True)
            if typed in (folded := text.casefold())
        ]
        return [(text, -count) for _, count, text in sorted(found)[:limit]]


def _columns(metadata: Iterable[Mapping[str, Any]]) -> dict[str, Column]:
    texts: dict[str, dict[str, int]] = {}
    places: dict[str, tuple[list[int], list[int]]] = {}
    numbers: dict[str, dict[int, float | str]] = {}
    dates: dict[str, dict[int, float | str]] = {}
    for row, values in enumerate(metadata):
        for name, value in values.items():
            codes = texts.setdefault(name, {})
            rows, columns = places.setdefault(name, ([], []))
            for item in value if isinstance(value, list) else (value,):
                text = str(item).lower() if isinstance(item, bool) else item
                if isinstance(text, str):
                    rows.append(row)
                    columns.append(codes.setdefault(text, len(codes)))
            if isinstance(value, int | float) and not isinstance(value, bool):
                numbers.setdefault(name, {})[row] = value
            elif isinstance(value, str) and _DATE.match(value):
                dates.setdefault(name, {})[row] = value
    found = {}
    for name, codes in texts.items():
        rows, columns = places[name]
        scalars = numbers.get(name) or dates.get(name, {})
        found[name] = Column(
            numpy.array(rows, numpy.int32),
            numpy.array(columns, numpy.int32),
            list(codes),
            numpy.fromiter(scalars, numpy.int32),
            list(scalars.values()),
            _bins(name, list(scalars.values())),
        )
    return found


def _bins(name: str, values: Sequence[Any]) -> NDArray[Any]:
    """The bins of numbers or dates, of equal width from the least to the greatest.

    None for numbers that are no facet: those that name documents, and sizes of pictures.
    """
    none = numpy.empty(0, numpy.int64)
    is_distinct = len(values) > NAMES and len(set(values)) == len(values)
    if not values or _SIZE.search(name):
        return none
    if isinstance(values[0], str):
        try:
            days = numpy.array([value[:10] for value in values], "datetime64[D]")
        except ValueError:  # such as the 31st of February
            return none
        numbers = days.astype(numpy.float64)
    elif is_distinct and all(isinstance(value, int) for value in values):
        return none
    else:
        numbers = numpy.array(values, numpy.float64)
    extent = float(numbers.max() - numbers.min())
    are_whole = not (numbers % 1).any()
    bins = min(BINS, int(extent) + 1) if are_whole else BINS  # one for each whole number of few
    places = (numbers - numbers.min()) * bins // ((extent + are_whole) or 1.0)
    found: NDArray[Any] = numpy.minimum(places, bins - 1).astype(numpy.int64)
    return found


def _counted(
    name: str, kinds: set[Kind], column: Column, chosen: NDArray[numpy.bool]
) -> FieldValues:
    is_chosen = chosen[column.scalar_rows]
    selected = [column.scalars[place] for place in numpy.flatnonzero(is_chosen).tolist()]
    histogram: list[int] = []
    if len(kinds - {Kind.NULL}) == 1 and len(column.bins):
        histogram = numpy.bincount(column.bins[is_chosen], minlength=column.bins.max() + 1).tolist()
    least: Any = min(selected, default=None)
    greatest: Any = max(selected, default=None)
    names = sorted(kind.value for kind in kinds)
    return FieldValues(name, names, _frequent(column, chosen), least, greatest, histogram)


def _frequent(column: Column, chosen: NDArray[numpy.bool]) -> list[tuple[str, int]]:
    """The most frequent texts and their numbers; none if most documents have their own."""
    if len(column.texts) > max(FEW, len(column.codes) // 2):
        return []
    counts = numpy.bincount(column.codes[chosen[column.text_rows]], minlength=len(column.texts))
    least = numpy.sort(counts)[-LISTED_VALUES:][:1]  # equal ones are in the order of the alphabet
    codes = numpy.flatnonzero(counts >= least).tolist()
    listed = [(-int(counts[code]), column.texts[code]) for code in codes if counts[code]]
    return [
        (text, -count)
        for count, text in sorted(listed)[:LISTED_VALUES]
        if len(text) <= LONGEST_VALUE
    ]
