"""The output of readers: tables of rows, which know their location; parts of documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from semsearch.corpus.celltypes import CellType
from semsearch.errors import BadRowError, quantity

#: The maximum length of a row or text, so that a file without line ends does not fill the memory.
MAX_ROW_CHARACTERS = 64 << 20

#: How much of a file is looked at to guess dialect, types and columns; whichever comes first.
LOOK_AHEAD_ROWS = 1_000
LOOK_AHEAD_CHARACTERS = 4 << 20

#: The most places that are named of what is left out.
PLACES_SHOWN = 5

#: The columns of documents (text, PDF …), which need not be guessed.
COLUMNS = ("id", "title", "text")

Item = TypeVar("Item")


class Row(NamedTuple):
    """One row of a corpus: its location (``corpus.csv:418``) and its cells by column."""

    source: str
    fields: Mapping[str, Any]


class LeftOut:
    """What a reader left out of a file, by kind: ``comment``, ``page without text``."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self._places: dict[str, list[str]] = {}

    def add(self, kind: str, place: str = "", count: int = 1) -> None:
        """Count something, with its place."""
        self.counts[kind] += count
        places = self._places.setdefault(kind, [])
        if place and len(places) <= PLACES_SHOWN:
            places.append(place)

    def update(self, other: LeftOut) -> None:
        """Count what was left out of a part of a document, or of a file of a folder."""
        self.counts.update(other.counts)

    def __bool__(self) -> bool:
        return self.counts.total() > 0

    def __str__(self) -> str:
        return f"left out: {', '.join(map(self._described, +self.counts))}"

    def _described(self, kind: str) -> str:
        noun, _, rest = kind.partition(" ") if " of " in kind or " with" in kind else (kind, "", "")
        named = " ".join(filter(None, (quantity(self.counts[kind], noun), rest)))
        places = self._places.get(kind, [])
        shown = places[:PLACES_SHOWN] + ["…"] * (len(places) > PLACES_SHOWN)
        return f"{named} ({', '.join(shown)})" if places else named


@dataclass
class Table:
    """Rows, read lazily.

    Args:
        name: its name in messages (``corpus.csv``).
        columns: the names of its columns, in order; `COLUMNS` itself for documents.
        rows: its rows; an error in place of a row that cannot be used.
        types: the types of columns, for formats without types.
        remark: further information for users, such as the sheet of a workbook.
        left_out: filled while the rows are read.
    """

    name: str
    columns: Sequence[str]
    rows: Iterator[Row | BadRowError]
    types: Mapping[str, CellType] = field(default_factory=dict)
    remark: str = ""
    left_out: LeftOut = field(default_factory=LeftOut)

    @property
    def is_document(self) -> bool:
        """Whether its columns are those of a document."""
        return self.columns is COLUMNS

    @cached_property
    def head(self) -> list[Row | BadRowError]:
        """The first rows, which `rows` still yields."""
        head = look_ahead(self.rows)
        self.rows = chain(head, self.rows)
        return head

    def derive(self, column: str) -> None:
        """Add a column of values inside another one, if there are: ``properties.description``."""
        keys = column.split(".")
        if any(_value_at(row.fields, keys) for row in self.sample):
            self.columns = (*self.columns, column)
            self.rows = (
                Row(row.source, {**row.fields, column: _value_at(row.fields, keys)})
                if isinstance(row, Row)
                else row
                for row in self.rows
            )
            del self.head, self.sample

    @cached_property
    def sample(self) -> list[Row]:
        """Those of the first rows that can be used, from which the roles of columns are guessed."""
        return [row for row in self.head if isinstance(row, Row)]


class Section(NamedTuple):
    """A part of a document.

    Args:
        kind: ``page``, ``slide`` or ``section``.
        number: counted from 1.
        text: its text; may be empty.
        heading: its heading, if any.
        fault: why it cannot be read, if so.
    """

    kind: str
    number: int
    text: str
    heading: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Contents:
    """A document as read by a converter.

    Args:
        title: of the document, if it has one.
        sections: its parts.
        remark: shown to users, such as ``12 pages``.
        if_blank: what to do if parts of the document have no text.
        left_out: the things that were left out.
        fault: why the rest cannot be read, if so.
    """

    title: str
    sections: Iterable[Section]
    remark: str = ""
    if_blank: str = ""
    left_out: LeftOut = field(default_factory=LeftOut)
    fault: str = ""


def _value_at(value: Any, keys: Sequence[str]) -> Any:
    """What is under these keys; of a list, what is there in its items."""
    for place, key in enumerate(keys):
        if isinstance(value, list):
            found = [_value_at(item, keys[place:]) for item in value]
            return [item for item in found if item]
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def nested_texts(value: Any) -> Iterator[tuple[str, str]]:
    """The texts in nested objects and lists, with their paths, whose keys are joined by dots."""
    if isinstance(value, str):
        yield "", value
    elif isinstance(value, list):
        for item in value:
            yield from nested_texts(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            for path, text in nested_texts(item):
                yield f"{key}.{path}" if path else key, text


def look_ahead(items: Iterator[Item]) -> list[Item]:
    """The first items (lines or rows), for guesses about a file; they are consumed."""
    head, characters = [], 0
    for item in islice(items, LOOK_AHEAD_ROWS):
        head.append(item)
        cells = item.fields.values() if isinstance(item, Row) else [item]
        characters += sum(len(cell) for cell in cells if isinstance(cell, (str, list, dict)))
        if characters >= LOOK_AHEAD_CHARACTERS:
            break
    return head
