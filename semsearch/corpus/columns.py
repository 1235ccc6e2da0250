"""Which column of a table is the text, the title, the id; all others are metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from semsearch.errors import CorpusError

if TYPE_CHECKING:
    from semsearch.corpus.table import Table

__all__ = ["Roles", "describe", "resolve"]

# Each in the order in which they are believed.
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

_MAX_NAMES_SHOWN = 30
_NAME_MAX_CHARACTERS = 100


class Roles(NamedTuple):
    """The columns of a table that are more than metadata.

    Args:
        text: those that are searched, joined in this order; none where it is yet to be guessed.
        title: the one that is shown to people, if any.
        id: the one that names documents, if any.
    """

    text: tuple[str, ...]
    title: str | None
    id: str | None

    @classmethod
    def wanted(cls, text: str | Iterable[str], title: str | None, id: str | None) -> Roles:  # noqa: A002
        """The roles as a caller names them; one text column may be given as it is."""
        return cls((text,) if isinstance(text, str) else tuple(text), title, id)


def resolve(table: Table, wanted: Roles) -> Roles:
    """The roles of a table's columns: as the user wants them, guessed where nothing is said.

    Raises:
        CorpusError: when it has no such column, two of one name, or none that is plainly the text.
    """
    for name, count in Counter(table.columns).items():
        if count > 1:
            raise CorpusError(f"{table.name}: {count} columns are called '{_shown(name)}'")
    for column in (*wanted.text, wanted.title, wanted.id):
        if column is not None and column not in table.columns:
            raise _no_such_column(table, column)
    text = wanted.text or _text_candidates(table)[:1]
    if not text:
        raise CorpusError(
            f"{table.name}: which column holds the text? (columns: {_listed(table.columns)}); "
            "name it with --text-column"
        )
    title = wanted.title
    if title is None:
        # A title that is searched with other columns is still shown as the title.
        title = _first(TITLE_NAMES, table.columns, but=text if len(text) == 1 else ())
    identifier = wanted.id
    if identifier is None:
        identifier = _first(ID_NAMES, table.columns, but=text)
    return Roles(text, title, identifier)


def describe(table: Table, roles: Roles, wanted: Roles) -> str:
    """One line that tells a person which column is taken for what."""
    parts = [f"text from {_quoted(roles.text)}"]
    if not wanted.text and (others := _text_candidates(table)[1:]):
        parts[0] += f" rather than {_quoted(others)}"
    if roles.title is not None:
        parts.append(f"title from {_quoted([roles.title])}")
    if roles.id is not None:
        parts.append(f"id from {_quoted([roles.id])}")
    else:
        parts.append("no id column: documents are named by their content")
    line = f"{table.name}: {', '.join(parts)}"
    taken = {*roles.text, roles.title, roles.id}
    metadata = [column for column in table.columns if column not in taken]
    return f"{line}; metadata: {_listed(metadata)}" if metadata else line


def _text_candidates(table: Table) -> tuple[str, ...]:
    if len(table.columns) == 1:
        return tuple(table.columns)
    return tuple(_present(TEXT_NAMES, table.columns))


def _first(names: Sequence[str], columns: Sequence[str], but: Sequence[str]) -> str | None:
    return next((column for column in _present(names, columns) if column not in but), None)


def _present(names: Sequence[str], columns: Sequence[str]) -> Iterable[str]:
    return (column for name in names for column in columns if column.lower() == name)


def _no_such_column(table: Table, column: str) -> CorpusError:
    message = f"{table.name}: no column {column!r} (columns: {_listed(table.columns)})"
    folded = {name.lower(): name for name in table.columns}
    nearest = get_close_matches(column.lower(), folded, n=1)
    return CorpusError(f"{message}; nearest: {_shown(folded[nearest[0]])}" if nearest else message)


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f"'{_shown(column)}'" for column in columns)


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(map(_shown, columns[:_MAX_NAMES_SHOWN])) or "none"
    more = len(columns) - _MAX_NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _shown(column: str) -> str:
    """A name that can be printed, and not at any length."""
    if len(column) > _NAME_MAX_CHARACTERS:
        column = f"{column[:_NAME_MAX_CHARACTERS]}…"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in column)
