"""The output of readers: tables of rows, which know their location."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from semsearch.errors import BadRowError

#: How far readers look ahead to guess delimiter, quoting and types; whichever comes first.
LOOK_AHEAD_ROWS = 1_000
LOOK_AHEAD_CHARACTERS = 4 << 20

#: Converts a cell to a value; a cell that cannot be converted stays text.
CellType = Callable[[str], Any]

Item = TypeVar("Item")


class Row(NamedTuple):
    """One row of a corpus: its location (``corpus.csv:418``) and its cells by column."""

    source: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows, read lazily.

    Args:
        name: its name in messages (``corpus.csv``).
        columns: the names of its columns, in order.
        rows: its rows; an error in place of a row that cannot be used.
        cell_types: for formats without types: the types of columns.
        nothing: cells that count as empty.
        announced: whether users are informed how its columns are used; needless if semsearch
            itself defines the columns.
        loosely_typed: whether a number or a date can be a text, as in spreadsheets.
        by_position: whether a column can be named by its position, counted from 1.
        remark: further information for users.
        sample: the first rows, if they have been read.
        file: the name of its file inside a folder; None for a single file.
        not_decoded: explains bytes that could not be decoded, and what to do.
        sheet: the name of its sheet in a workbook.
    """

    name: str
    columns: Sequence[str]
    rows: Iterator[Row | BadRowError]
    cell_types: Mapping[str, CellType] = field(default_factory=dict)
    nothing: Collection[str] = ("",)
    announced: bool = True
    loosely_typed: bool = False
    by_position: bool = False
    remark: str = ""
    sample: Sequence[Row] = ()
    file: str | None = None
    not_decoded: Callable[[], str] | None = None
    sheet: str | None = None


def look_ahead(items: Iterator[Item], position: Callable[[], int]) -> list[Item]:
    """The first items, for guesses about a file.

    Args:
        items: lines or rows; those returned are consumed.
        position: returns the number of characters read so far.
    """
    head = []
    for item in islice(items, LOOK_AHEAD_ROWS):
        head.append(item)
        if position() >= LOOK_AHEAD_CHARACTERS:
            break
    return head
