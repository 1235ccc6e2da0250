"""Makes documents of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from semsearch.corpus.columns import Roles, describe, resolve
from semsearch.errors import BadRowError
from semsearch.records import Document

if TYPE_CHECKING:
    from semsearch.corpus.table import CellType, Row, Table

__all__ = [
    "FIRST_BATCH_CHARACTERS",
    "FIRST_BATCH_DOCUMENTS",
    "Notify",
    "OnBadRow",
    "next_documents",
    "silent",
    "table_documents",
]

#: Is called with the error of each bad row; where it returns, reading goes on behind that row.
OnBadRow = Callable[[BadRowError], None]
#: Is told, in one line, what was guessed.
Notify = Callable[[str], None]

#: What a corpus begins with: as many texts as are encoded at once while nobody knows how long that
#: takes, and while the index that they go into is still being imported and made.
FIRST_BATCH_DOCUMENTS, FIRST_BATCH_CHARACTERS = 256, 100_000


def silent(message: str) -> None:
    """Tells nobody."""


def next_documents(corpus: Iterator[Document], count: int, characters: int) -> list[Document]:
    """The next documents, at most so many and of about so many characters; none at the end."""
    documents: list[Document] = []
    for document in corpus:
        documents.append(document)
        characters -= len(document.text)
        if len(documents) == count or characters <= 0:
            break
    return documents


def table_documents(
    table: Table, wanted: Roles, on_bad_row: OnBadRow, notify: Notify
) -> Iterator[Document]:
    """The documents of a table, row by row.

    Raises:
        CorpusError: when its columns are not the wanted ones, or the text cannot be guessed.
    """
    roles = resolve(table, wanted)
    if table.announced:
        notify(describe(table, roles, wanted))
    for row in table.rows:
        try:
            if isinstance(row, BadRowError):
                raise row
            document = _document(row, roles, table)
        except BadRowError as error:
            on_bad_row(error)
            continue
        yield document


def _document(row: Row, roles: Roles, table: Table) -> Document:
    source, fields = row
    identifier = None if roles.id is None else _name(fields.get(roles.id), missing="")
    title = None if roles.title is None else _name(fields.get(roles.title), missing=None)
    text = _text(row, roles.text, table.nothing)
    metadata = _metadata(fields, roles, table.cell_types)
    return Document(identifier, text, title, metadata, source)


def _text(row: Row, columns: Sequence[str], nothing: Collection[str]) -> str:
    parts = []
    for column in columns:
        value = row.fields.get(column)
        if _is_missing(value):
            continue
        if not isinstance(value, str):
            kind = type(value).__name__
            raise BadRowError(row.source, f"{column!r} is not a string but of type {kind}")
        if value.strip() not in nothing:
            parts.append(value)
    return "\n".join(parts)


def _metadata(
    fields: Mapping[str, Any], roles: Roles, cell_types: Mapping[str, CellType]
) -> dict[str, Any]:
    taken: Collection[str | None] = (*roles.text, roles.title, roles.id)
    metadata = {name: value for name, value in fields.items() if name not in taken}
    for name, cell_type in cell_types.items():
        if name in metadata:
            metadata[name] = cell_type(metadata[name])
    return metadata


def _name(value: Any, missing: str | None) -> Any:
    """An id or title as a string; what can be none is left for the Document to refuse."""
    if _is_missing(value) or value == "":
        return missing
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    # Where some rows have none, pandas keeps whole numbers as floats, databases as decimals.
    if isinstance(value, (float, Decimal)) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return value


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
