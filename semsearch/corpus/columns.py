"""Finds the columns of a table that hold the text, title and id; all others are metadata."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.arguments import check_text, check_texts
from semsearch.corpus.celltypes import is_prose
from semsearch.encodings import ESCAPED_BYTE, first_escaped
from semsearch.errors import ArgumentError, BadRowError, ColumnNotFoundError, CorpusError

if TYPE_CHECKING:
    from semsearch.corpus.table import Row, Table

# Each in order of preference.
TEXT_NAMES = (
    "text",
    "content",
    "body",
    "abstract",
    "extract",
    "passage",
    "sentence",
    "description",
    "summary",
    "document",
    "review",
    "comment",
    "message",
    "question",
)
TITLE_NAMES = ("title", "name", "headline", "heading", "subject")
ID_NAMES = ("id", "_id", "doc_id", "docid", "document_id", "uuid", "key")
#: Names like ``Resp. no.``, ``Ticket #``, ``ticketId`` and ``Fall-Nr.``: ids, if they are distinct.
_LIKE_ID = re.compile(
    r"(?i:.*#|(?:.*[\W_])?(?:id|nr|no|key)\.?|.*[\W_]number|.*nummer)|.*[a-z]I[dD]"
)

_MAX_NAMES_SHOWN = 30
_NAME_MAX_CHARACTERS = 100
_POSITION_MAX_DIGITS = 7

#: A text column is doubtful if this share of its cells are numbers, or if many cells hold only a
#: handful of different texts.
MOST, FEW_TEXTS, MANY_TEXTS, HANDFUL = 0.9, 3, 20, 10
_NUMBER = re.compile(r"[-+.]{0,2}\d[\d.,]*+%?")

#: A column without a usual name is the text if this share of its cells is prose and as much of that
#: is distinct, and if its cells are on average so many times as long as those of any other such
#: column.
MOSTLY_PROSE, MOSTLY_DISTINCT, CLEARLY_LONGER = 2 / 3, 0.8, 3


class EarlierIds(NamedTuple):
    """The id column of the documents that an index has of a corpus.

    Args:
        column: its name; empty if their ids are derived from their texts.
        index_name: the index, for messages.
    """

    column: str
    index_name: str


class Roles(NamedTuple):
    """The columns of a table that are not metadata.

    Args:
        text: the columns to search, joined in this order; empty to guess.
        title: the column that is shown as the title, if any.
        id: the column that identifies documents, if any.
        earlier_ids: the only id column that is accepted; None for any.
    """

    text: tuple[str, ...]
    title: str | None
    id: str | None
    earlier_ids: EarlierIds | None = None

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
    for name, count in Counter(table.columns).items():
        if count > 1:
            raise ColumnNotFoundError(
                f"{table.name}: {count} columns are called '{shortened(name)}'; rename all but one"
            )
    named = tuple(dict.fromkeys(_column(table, column) for column in wanted.text))
    text = named or _text_candidates(table)[:1] or _longest_text(table)
    if not text:
        undecoded = next(filter(ESCAPED_BYTE.search, table.columns), None)
        if undecoded is not None and table.not_decoded:
            raise ColumnNotFoundError(
                f"{table.name}: a column name contains {first_escaped(undecoded)}, "
                f"which is {table.not_decoded()}"
            )
        raise ColumnNotFoundError(
            f"{table.name}: cannot tell which column holds the text (columns: "
            f"{_listed(table.columns)}{_remark(table)}); "
            f"name it with --text-column{_example(table)}"
        )
    title = None if wanted.title is None else _column(table, wanted.title)
    if title is None:
        # A title column that is also searched is still shown as the title.
        title = _first(TITLE_NAMES, table.columns, but=text if len(text) == 1 else ())
    return Roles(text, title, _id_column(table, wanted, text))


def _id_column(table: Table, wanted: Roles, text: Sequence[str]) -> str | None:
    identifier = None if wanted.id is None else _column(table, wanted.id)
    earlier = wanted.earlier_ids
    if earlier is None:
        return identifier or _first(ID_NAMES, table.columns, but=text)
    if identifier not in (None, earlier.column):
        column = shortened(earlier.column)
        how = f"with ids from '{column}'" if column else "without an id column"
        raise ArgumentError(
            f"{table.name}: {earlier.index_name} was made {how}; for ids from "
            f"'{shortened(identifier)}', delete this index and start again, or use another --index"
        )
    return _column(table, earlier.column) if earlier.column else None


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


def describe(table: Table, roles: Roles, wanted: Roles) -> str:
    """One line about how the columns are used."""
    parts = [f"text from {_quoted(roles.text)}"]
    if not wanted.text and (others := _text_candidates(table)[1:]):
        parts[0] += f" rather than {_quoted(others)}"
    elif not wanted.text and not _text_candidates(table):
        parts[0] += ", by far the longest texts"
    if roles.title is not None:
        parts.append(f"title from {_quoted([roles.title])}")
    if table.file is not None:
        parts.append("documents are named by their rows")
    elif roles.id is not None:
        parts.append(f"id from {_quoted([roles.id])}")
    else:
        parts.append("no id column: documents are named by their content")
    line = f"{table.name}: {', '.join(parts)}"
    taken = {*roles.text, roles.title, roles.id if table.file is None else None}
    metadata = [column for column in table.columns if column not in taken]
    if metadata:
        line += f"; metadata: {_listed(metadata)}"
    return line + _remark(table)


def doubts(table: Table, roles: Roles) -> list[str]:
    """One line for each text column whose first cells do not look like texts to search."""
    lines = []
    for column in roles.text:
        texts = [cell.strip() for cell in _filled_cells(table, column) if isinstance(cell, str)]
        numbers = sum(1 for text in texts if _NUMBER.fullmatch(text))
        different = len(set(texts))
        if len(texts) >= FEW_TEXTS and numbers >= MOST * len(texts):
            what = f"{numbers:,} of its first {len(texts):,} cells are numbers"
        elif len(texts) >= MANY_TEXTS and different <= min(HANDFUL, len(texts) // 4):
            what = f"its first {len(texts):,} cells hold only {different} different texts"
        else:
            continue
        lines.append(
            f"{table.name}: is '{shortened(column)}' the text? {what} ('{shortened(texts[0])}'); "
            f"name another column with --text-column (columns: {_listed(table.columns)})"
        )
    return lines


def distinct(names: Iterable[str]) -> list[str]:
    """The names of columns, with a number where one is repeated: ``Comment``, ``Comment_2``."""
    listed = list(names)
    taken = set(listed)
    counts: Counter[str] = Counter()
    found = []
    for name in listed:
        counts[name] += 1
        if counts[name] > 1:
            name = f"{name}_{counts[name]}"
            while name in taken:
                name += "_"
            taken.add(name)
        found.append(name)
    return found


def shortened(text: str, characters: int = _NAME_MAX_CHARACTERS) -> str:
    """A text in printable characters, truncated."""
    shown = text if len(text) <= characters else f"{text[:characters]}…"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in shown)


def _column(table: Table, wanted: str) -> str:
    """The column with this name, or else at this position, counted from 1."""
    if wanted in table.columns:
        return wanted
    if table.by_position and wanted.isdecimal() and len(wanted) <= _POSITION_MAX_DIGITS:
        position = int(wanted)
        if 1 <= position <= len(table.columns):
            return table.columns[position - 1]
    raise _no_such_column(table, wanted)


def _example(table: Table) -> str:
    """An example of the option, with the column that holds most text; empty if none does."""
    characters = [
        sum(len(str(row.fields.get(column) or "")) for row in table.sample)
        for column in table.columns
    ]
    most = max(characters, default=0)
    if not most:
        return ""
    place = characters.index(most)
    name = table.columns[place]
    if not name.isidentifier():  # a shell may need quotes
        if not table.by_position:
            return ""
        name = str(place + 1)
    return f", for example --text-column {name}"


def _remark(table: Table) -> str:
    return f"; {table.remark}" if table.remark and table.announced else ""


def _text_candidates(table: Table) -> tuple[str, ...]:
    if len(table.columns) == 1:
        return tuple(table.columns)
    return tuple(_present(TEXT_NAMES, table.columns))


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
    return next((column for column in _present(names, columns) if column not in but), None)


def _present(names: Sequence[str], columns: Sequence[str]) -> Iterable[str]:
    return (column for name in names for column in columns if column.lower() == name)


def _no_such_column(table: Table, column: str) -> CorpusError:
    message = (
        f"{table.name}: no column {column!r} (columns: {_listed(table.columns)}{_remark(table)})"
    )
    folded = {name.lower(): name for name in table.columns}
    nearest = get_close_matches(column.lower(), folded, n=1)
    return ColumnNotFoundError(
        f"{message}; nearest: {shortened(folded[nearest[0]])}" if nearest else message
    )


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f"'{shortened(column)}'" for column in columns)


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(map(shortened, columns[:_MAX_NAMES_SHOWN])) or "none"
    more = len(columns) - _MAX_NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
