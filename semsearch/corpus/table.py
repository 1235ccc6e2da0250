"""The output of readers: tables of rows, which know their location; parts of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from semsearch.errors import BadRowError

if TYPE_CHECKING:
    from semsearch.corpus.celltypes import CellType

#: The maximum length of a row or text, so that a file without line ends does not fill the memory.
MAX_ROW_CHARACTERS = 64 << 20

#: How much of a file is looked at to guess dialect, types and columns; whichever comes first.
LOOK_AHEAD_ROWS = 1_000
LOOK_AHEAD_CHARACTERS = 4 << 20

#: The columns of documents (text, PDF …), which need not be guessed.
COLUMNS = ("id", "title", "text")

Item = TypeVar("Item")


class Row(NamedTuple):
    """One row of a corpus: its location (``corpus.csv:418``) and its cells by column."""

    source: str
    fields: Mapping[str, Any]


@dataclass
class Table:
    """Rows, read lazily.

    Args:
        name: its name in messages (``corpus.csv``).
        columns: the names of its columns, in order; `COLUMNS` itself for documents.
        rows: its rows; an error in place of a row that cannot be used.
        types: the types of columns, for formats without types.
        remark: further information for users, such as what was left out.
    """

    name: str
    columns: Sequence[str]
    rows: Iterator[Row | BadRowError]
    types: Mapping[str, CellType] = field(default_factory=dict)
    remark: str = ""

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


class Contents(NamedTuple):
    """A document as read by a converter.

    Args:
        title: of the document, if it has one.
        sections: its parts.
        remark: shown to users, such as ``12 pages``.
        if_blank: what to do if parts of the document have no text.
    """

    title: str
    sections: Iterable[Section]
    remark: str = ""
    if_blank: str = ""


def look_ahead(items: Iterator[Item]) -> list[Item]:
    """The first items (lines or rows), for guesses about a file; they are consumed."""
    head, characters = [], 0
    for item in islice(items, LOOK_AHEAD_ROWS):
        head.append(item)
        characters += _characters(item)
        if characters >= LOOK_AHEAD_CHARACTERS:
            break
    return head


def _characters(item: object) -> int:
    cells = item.fields.values() if isinstance(item, Row) else [item]
    return sum(len(cell) for cell in cells if isinstance(cell, (str, list, dict)))
