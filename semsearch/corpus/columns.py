"""Finds the columns of a table that hold the text, title and id; all others are metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.corpus.roles import (
    ID,
    NUMBER,
    TEXT,
    TITLE,
    at_position,
    check_distinct,
    is_prose,
    listed,
    matching_columns,
    quoted_names,
    shortened,
)
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    ColumnNotFoundError,
    check_text,
    check_texts,
)

if TYPE_CHECKING:
    from semsearch.corpus.table import Row, Table

#: Names like ``Resp. no.``, ``Ticket #``, ``ticketId`` and ``Fall-Nr.``: ids, if they are distinct.
_LIKE_ID = re.compile(
    r"(?i:.*#|(?:.*[\W_])?(?:id|nr|no|key)\.?|.*[\W_]number|.*nummer)|.*[a-z]I[dD]"
)

#: A column without a usual name is the text if this share of its cells is prose and as much of that
#: is distinct, and if its cells are on average so many times as long as those of any other such
#: column.
MOSTLY_PROSE, MOSTLY_DISTINCT, CLEARLY_LONGER = 2 / 3, 0.8, 3


class Roles(NamedTuple):
    """The columns of a table that are not metadata.

    Args:
        text: the columns to search, joined in this order; empty to guess.
        title: the column that is shown as the title, if any.
        id: the column that identifies documents, if any.
        earlier_id: the id column of the documents that an index has, which no other may replace;
            empty if their ids are derived from their texts, None if it has none.
    """

    text: tuple[str, ...]
    title: str | None
    id: str | None
    earlier_id: str | None = None

    @classmethod
    def wanted(cls, text: str | Iterable[str], title: str | None, id: str | None) -> Roles:  # noqa: A002
        """The columns named by a caller; a single text column may be a string.

        Raises:
            ArgumentError: a name is not a string.
        """
        names = [text] if isinstance(text, str) else check_texts("text_columns", text)
        for argument, name in (("title_column", title), ("id_column", id)):
            if name is not None:
                check_text(argument, name)
        return cls(tuple(names), title, id)

    @property
    def names(self) -> list[str]:
        """All column names."""
        return [name for name in (*self.text, self.title, self.id) if name is not None]


def resolve(table: Table, wanted: Roles) -> Roles:
    """The columns named by the user, and guesses for the others.

    Raises:
        CorpusError: a named column does not exist, two columns have the same name, or the text
            column cannot be told.
        ArgumentError: another id column is named than an index has ids from.
    """
    check_distinct(table.name, table.columns)
    named = tuple(dict.fromkeys(_column(table, column) for column in wanted.text))
    text = named or _text_candidates(table)[:1] or _longest_text(table)
    if not text:
        raise ColumnNotFoundError(
            f"{table.name}: cannot tell which column holds the text ({_columns(table)}); "
            f"name it with --text-column"
        )
    title = None if wanted.title is None else _column(table, wanted.title)
    if title is None:
        # A title column that is also searched is still shown as the title.
        title = _first(TITLE, table.columns, but=text if len(text) == 1 else ())
    return Roles(text, title, _id_column(table, wanted, text))


def _id_column(table: Table, wanted: Roles, text: Sequence[str]) -> str | None:
    identifier = None if wanted.id is None else _column(table, wanted.id)
    earlier = wanted.earlier_id
    if earlier is None:
        return identifier or _first(ID, table.columns, but=text)
    if identifier not in (None, earlier):
        how = f"with ids from '{shortened(earlier)}'" if earlier else "without an id column"
        raise ArgumentError(
            f"{table.name}: the index was made {how}; for ids from '{shortened(identifier)}', "
            "delete it and start again, or use another --index"
        )
    return _column(table, earlier) if earlier else None


def likely_id_column(table: Table, roles: Roles) -> str | None:
    """The first column that is named like ids, and may be, as far as the first rows show."""
    names = (name for name in table.columns if name not in roles.names and _LIKE_ID.fullmatch(name))
    return next((name for name in names if are_ids(table.sample, name, roles.text)), None)


def are_ids(rows: Iterable[Row | BadRowError], column: str, text: Sequence[str]) -> bool:
    """Whether the values of a column are distinct, and present in each row with a text."""
    seen = set()
    for row in rows:
        if isinstance(row, BadRowError) or not any(map(row.fields.get, text)):
            continue
        value = str(row.fields.get(column) or "").strip()
        if not value or value in seen:
            return False
        seen.add(value)
    return bool(seen)


def describe(table: Table, roles: Roles, wanted: Roles, without_ids: str) -> str:
    """One line about how the columns are used.

    Args:
        table: the table.
        roles: of its columns.
        wanted: those that the user named.
        without_ids: what names documents if there is no id column.
    """
    parts = [f"text from {quoted_names(roles.text)}"]
    candidates = _text_candidates(table)
    if not wanted.text and candidates[1:]:
        parts[0] += f" rather than {quoted_names(candidates[1:])}"
    elif not wanted.text and not candidates:
        parts[0] += ", by far the longest texts"
    if roles.title is not None:
        parts.append(f"title from {quoted_names([roles.title])}")
    parts.append(f"id from {quoted_names([roles.id])}" if roles.id is not None else without_ids)
    line = f"{table.name}: {', '.join(parts)}"
    if metadata := [column for column in table.columns if column not in roles.names]:
        line += f"; metadata: {listed(metadata)}"
    return f"{line}; {table.remark}" if table.remark else line


def holds_numbers(table: Table, column: str) -> bool:
    """Whether a column holds numbers, which are no texts to search, as far as the sample shows."""
    cells = _filled_cells(table, column)
    return bool(cells) and all(NUMBER.fullmatch(str(cell).strip()) for cell in cells)


def _column(table: Table, wanted: str) -> str:
    """The column with this name, or else at this position, counted from 1."""
    column = at_position(table.columns, wanted)
    if column is None:
        folded = {name.lower(): name for name in table.columns}
        nearest = get_close_matches(wanted.lower(), folded, n=1)
        advice = f"; nearest: {shortened(folded[nearest[0]])}" if nearest else ""
        raise ColumnNotFoundError(f"{table.name}: no column {wanted!r} ({_columns(table)}){advice}")
    return column


def _columns(table: Table) -> str:
    """``columns: id, plot; sheet 'A'``."""
    remark = f"; {table.remark}" if table.remark else ""
    return f"columns: {listed(table.columns)}{remark}"


def _text_candidates(table: Table) -> tuple[str, ...]:
    if len(table.columns) == 1:
        return tuple(table.columns)
    return tuple(matching_columns(table.columns, TEXT))


def _longest_text(table: Table) -> tuple[str, ...]:
    """The column whose cells are clearly the texts; empty if none is, or more than one could be."""
    texts = {column: _filled_cells(table, column) for column in table.columns}
    lengths = {
        column: fmean(len(str(cell)) for cell in cells)
        for column, cells in texts.items()
        if sum(map(_is_text, cells)) >= MOSTLY_PROSE * len(cells) > 0
    }
    if not lengths:
        return ()
    longest = max(lengths, key=lengths.__getitem__)
    is_distinct = len(set(texts[longest])) >= MOSTLY_DISTINCT * len(texts[longest])
    similar = [name for name in lengths if CLEARLY_LONGER * lengths[name] > lengths[longest]]
    return (longest,) if is_distinct and similar == [longest] else ()


def _filled_cells(table: Table, column: str) -> list[Any]:
    return [cell for row in table.sample if (cell := row.fields.get(column))]


def _is_text(cell: Any) -> bool:
    """Whether a cell is prose, rather than JSON or a printed list."""
    return isinstance(cell, str) and is_prose(cell) and not cell.startswith(("{", "["))


def _first(names: Sequence[str], columns: Sequence[str], but: Sequence[str]) -> str | None:
    return next((column for column in matching_columns(columns, names) if column not in but), None)
