"""Finds the columns of a table that hold the texts of a pair and their score or label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from semsearch.datasets.table import Row, find_column
from semsearch.errors import ColumnNotFoundError

#: Names of both text columns, as plain names.
TEXT_COLUMNS = (
    ("sentence1", "sentence2"),
    ("sentencea", "sentenceb"),
    ("left", "right"),
    ("text1", "text2"),
    ("texta", "textb"),
    ("question1", "question2"),
    ("1string", "2string"),
    ("premise", "hypothesis"),
    ("s1", "s2"),
    ("a", "b"),
)
_SHOWN_CHARACTERS = 40


class PairColumns(NamedTuple):
    """Columns named by the user: by name, or by position from 1; None to guess."""

    left: str | None = None
    right: str | None = None
    score: str | None = None


class Choice(Enum):
    """How the score column was determined."""

    USER = "user"
    HEADER = "header"  #: by its name
    GUESS = "guess"  #: without a header: the only column of numbers


class Layout(NamedTuple):
    """The positions, from 0, of both texts and their score or label."""

    left: int
    right: int
    value: int
    choice: Choice
    header: Sequence[str] | None  #: None for a table without one

    def shown(self, column: int) -> str:
        """A column in a message: its name or, without a header, its position from 1."""
        if self.header is None:
            return f"column {column + 1}"
        return f"'{self.header[column].strip()[:_SHOWN_CHARACTERS]}'"


def find_layout(first: Row, names: Sequence[str], what: str, wanted: PairColumns) -> Layout:
    """Find the columns: those named by the user, others by their usual names.

    Args:
        first: the first row of the table, which may be its header.
        names: usual names of the score or label, as plain names.
        what: ``score`` or ``label``.
        wanted: the columns named by the user.

    Raises:
        DatasetError: a named column does not exist, or a column cannot be found.
    """
    layout = _wanted(first, names, wanted) if any(wanted) else _named(first.cells, names)
    layout = layout or (None if any(wanted) else _unnamed(first.cells))
    if layout is None:
        raise ColumnNotFoundError(
            f"{first.place}: no columns for two texts and a {what} (columns: "
            f"{_listed(first.cells)}; expected: "
            f"{' or '.join('/'.join(pair) for pair in TEXT_COLUMNS)}; {what}: {', '.join(names)})"
            + (
                "; name them with --left-column, --right-column, --score-column"
                if what == "score"
                else ""
            )
        )
    return layout


def finite_number(text: str) -> float | None:
    """A text as a finite number; None if it is not one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _wanted(first: Row, names: Sequence[str], wanted: PairColumns) -> Layout | None:
    named = {role: name.strip() for role, name in wanted._asdict().items() if name}
    are_names = _are_names({name for name in named.values() if name.isdecimal()}, first)
    given = {role: _position(first, name, are_names) for role, name in named.items()}
    value = given.get("score", find_column(first.cells, names))
    texts = _texts(first.cells) or (None, None)
    left, right = given.get("left", texts[0]), given.get("right", texts[1])
    if value is not None and None in (left, right) and len(first.cells) == 3:
        others = [column for column in range(3) if column not in (value, left, right)]
        left = others.pop(0) if left is None else left
        right = others.pop(0) if right is None else right
    if left is None or right is None or value is None:
        return None
    if len({left, right, value}) < 3:
        raise ColumnNotFoundError(
            f"{first.place}: the texts and the score must be three different columns"
        )
    has_header = finite_number(first.cells[value]) is None
    return Layout(left, right, value, Choice.USER, first.cells if has_header else None)


def _are_names(numbers: set[str], first: Row) -> bool:
    """Whether these numbers name columns of a header, not positions in a row of data."""
    cells = {cell.strip() for cell in first.cells}
    return numbers <= cells and all(finite_number(cell) is None for cell in cells - numbers)


def _position(first: Row, wanted: str, numbers_are_names: bool) -> int:
    cells = [cell.strip() for cell in first.cells]
    if wanted in cells and (numbers_are_names or not wanted.isdecimal()):
        return cells.index(wanted)
    if wanted.isdecimal() and len(wanted) < 10 and 1 <= int(wanted) <= len(cells):
        return int(wanted) - 1
    raise ColumnNotFoundError(
        f"{first.place}: no column {wanted!r} (columns: {_listed(first.cells)})"
    )


def _named(header: Sequence[str], names: Sequence[str]) -> Layout | None:
    value, texts = find_column(header, names), _texts(header)
    if value is None or texts is None:
        return None
    return Layout(*texts, value, Choice.HEADER, header)


def _texts(header: Sequence[str]) -> tuple[int, int] | None:
    for pair in TEXT_COLUMNS:
        left, right = (find_column(header, [name]) for name in pair)
        if left is not None and right is not None:
            return left, right
    return None


def _unnamed(cells: Sequence[str]) -> Layout | None:
    """The layout of a table without a header, from its first row."""
    if len(cells) >= 7 and cells[0].startswith("main-") and finite_number(cells[4]) is not None:
        return Layout(5, 6, 4, Choice.HEADER, None)  # the layout of STS Benchmark
    numbers = [column for column, cell in enumerate(cells) if finite_number(cell) is not None]
    if len(cells) != 3 or len(numbers) != 1:
        return None
    left, right = (column for column in range(3) if column != numbers[0])
    return Layout(left, right, numbers[0], Choice.GUESS, None)


def _listed(cells: Sequence[str]) -> str:
    return ", ".join(cell.strip()[:_SHOWN_CHARACTERS] for cell in cells)
