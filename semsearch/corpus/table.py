"""The output of readers: tables of rows, which know their location."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from semsearch.errors import BadRowError

if TYPE_CHECKING:
    from semsearch.corpus.celltypes import CellType

#: How far readers look ahead to guess delimiter, quoting and types; whichever comes first.
LOOK_AHEAD_ROWS = 1_000
LOOK_AHEAD_CHARACTERS = 4 << 20

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
        types: the types of columns, for formats without types.
        remark: further information for users.
        sample: the first rows, from which the columns' roles are recognised; empty if the reader
            defines the columns itself, as for documents.
    """

    name: str
    columns: Sequence[str]
    rows: Iterator[Row | BadRowError]
    types: Mapping[str, CellType] = field(default_factory=dict)
    remark: str = ""
    sample: Sequence[Row] = ()


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
