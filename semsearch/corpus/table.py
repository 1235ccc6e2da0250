"""What every reader hands on: rows that know where they stand, and the columns they have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from semsearch.errors import BadRowError

#: How far a reader looks ahead to guess delimiter, quoting and types; whichever comes first.
LOOK_AHEAD_ROWS = 1_000
LOOK_AHEAD_CHARACTERS = 4 << 20

#: Makes a value of a cell; a cell that is no such value stays the text it is.
CellType = Callable[[str], Any]

Item = TypeVar("Item")


class Row(NamedTuple):
    """One row of a corpus: where it stands (``corpus.csv:418``) and its cells by column."""

    source: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows, read as they are asked for.

    Args:
        name: what messages call it (``corpus.csv``).
        columns: the names of its columns, in their order.
        rows: its rows; an error in place of a row that cannot be used.
        cell_types: for formats that know nothing but text: what the cells of a column stand for.
        nothing: how a cell says that it holds no text.
        announced: whether a person is told which column is taken for what; not worth a word
            where the columns are semsearch's own.
        loosely_typed: whether a number or a date may be a text, as in spreadsheets.
        by_position: whether a column can be named by its place, counted from 1.
        remark: what else a person has to know about it.
        sample: the first rows, where they have been read to judge by.
        file: what its file is called in the folder whose part it is; None for one by itself.
        not_decoded: what the bytes of a row are not that could not be decoded, and what to do.
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


def look_ahead(items: Iterator[Item], position: Callable[[], int]) -> list[Item]:
    """The first items: enough to judge by, few enough to hold.

    Args:
        items: lines or rows; those returned are taken off it.
        position: how many characters they have taken from the file so far.
    """
    head = []
    for item in islice(items, LOOK_AHEAD_ROWS):
        head.append(item)
        if position() >= LOOK_AHEAD_CHARACTERS:
            break
    return head
