"""Turns rows into documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from typing import Any
from uuid import UUID

from semsearch.corpus.celltypes import CellType, is_missing
from semsearch.corpus.files import FolderFiles
from semsearch.corpus.roles import Roles, describe, path_of_text, shortened
from semsearch.corpus.table import Row, Table
from semsearch.corpus.texts import joined_text, sentences_text
from semsearch.errors import BadFileError, BadRowError
from semsearch.records import Document, column_name, metadata_name

#: Called with the error of each bad row; if it returns, the row is skipped.
OnBadRow = Callable[[BadRowError], None]
#: Called with one line about what was guessed.
Notify = Callable[[str], None]
#: Documents, and an error in place of each that cannot be used.
Items = Iterator[Document | BadRowError]

#: Binary data, which is not searched.
_BYTES = (bytes, bytearray, memoryview)
#: Values other than strings that can be a text.
_SIMPLE = (int, float, Decimal, date, time, timedelta)
#: Cells without text; ``NaN`` as programs write it into CSV.
_NOTHING = ("", "NaN", "nan")

WITHOUT_IDS = "no id column: ids are derived from the text"


@dataclass
class SkippedRows:
    """The bad rows that were skipped, with the ids that could be read.

    Args:
        ids: the ids of skipped documents.
        files: skipped and left-out files, which may hold several documents.
        unidentified: the number of other skipped rows.
    """

    ids: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    unidentified: int = 0

    def add(self, error: BadRowError) -> None:
        """Count a skipped row."""
        if isinstance(error, BadFileError):
            self.files.add(str(error.document_id))
        elif error.document_id is None:
            self.unidentified += 1
        else:
            self.ids.add(error.document_id)


@dataclass
class Readings:
    """How the files of a corpus are read: the arguments of `Corpus` by `recorded_name`.

    Text and id columns are always named; an empty id column says that there is none. Of tables,
    ``columns`` are all columns and ``title`` is that of titles, for exports.

    Args:
        earlier: the arguments of earlier runs, used where none are given now.
        used: those of this run.
    """

    earlier: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    used: dict[str, dict[str, Any]] = field(default_factory=dict)

    def note(self, name: str, used: Mapping[str, Any]) -> None:
        """Note how the file of this `recorded_name` is read, if it has one."""
        if name and used:
            self.used[name] = dict(used)


class DocumentReader(Iterator[Document]):
    """Iterates over the documents of a corpus, and counts skipped rows.

    Args:
        items: the documents, and an error in place of each bad row.
        on_bad_row: called with the error of each bad row; if it returns, the row is skipped.
        files: tracks the files of folders.
        readings: its `earlier` may be set before the first document is read.
    """

    def __init__(
        self,
        items: Items,
        on_bad_row: OnBadRow,
        files: FolderFiles | None = None,
        readings: Readings | None = None,
    ) -> None:
        self.readings = readings or Readings()
        self.taken = 0  #: the number of documents iterated over
        self.files = files or FolderFiles()
        self.skipped = SkippedRows(files=self.files.left_out)  # one set: a sync keeps both
        self._documents = self._good(items, on_bad_row)

    def _good(self, items: Items, on_bad_row: OnBadRow) -> Iterator[Document]:
        for item in items:
            if isinstance(item, Document):
                yield item
            else:
                on_bad_row(item)
                self.skipped.add(item)

    def __next__(self) -> Document:
        document = next(self._documents)
        self.taken += 1
        return document

    def look_ahead(self, count: int) -> None:
        """Read up to `count` documents in advance; iteration still yields them."""
        first = list(islice(self._documents, count))
        self._documents = chain(first, self._documents)


def silent(message: str) -> None:
    """Discard the message."""


def table_documents(
    table: Table, roles: Roles, notify: Notify, without_ids: str = WITHOUT_IDS
) -> Items:
    """The documents of a table, row by row, and an error in place of each bad row.

    `notify` is called with lines about how the columns are used.
    """
    if not table.is_document:
        notify(describe(table, roles, without_ids))
    elif table.remark:
        notify(f"{table.name}: {table.remark}")
    for row in table.rows:
        yield row if isinstance(row, BadRowError) else row_document(row, roles, table)
    if table.left_out:
        notify(f"{table.name}: {table.left_out}")


def row_document(row: Row, roles: Roles, table: Table) -> Document | BadRowError:
    """The document of a row of a table, or why it is none."""
    source, fields = row
    title = None if roles.title is None else _name(fields.get(roles.title), missing=None)
    if isinstance(title, float):
        title = str(title)
    identifier = None if roles.id is None else _name(fields.get(roles.id), missing="")
    try:
        text = joined_text(_texts(row, roles.text, table.types))
        return Document(identifier, text, title, _metadata(fields, roles, table), source)
    except BadRowError as error:
        with suppress(BadRowError):  # of the id itself
            error.document_id = Document(identifier, "any text").id
        return error


def _texts(row: Row, columns: Sequence[str], types: Mapping[str, CellType]) -> Iterator[str]:
    """The texts in these columns: strings, numbers or dates, and lists of sentences.

    SciFact has lists of sentences.
    """
    for column in columns:
        value: Any = row.fields.get(column)
        if _is_missing(value):
            continue
        items = types[column].convert(value) if column in types else value
        text = sentences_text(items) if isinstance(items, list) else None
        if text is None and isinstance(value, str):
            text = value
        elif isinstance(value, _SIMPLE) and not isinstance(value, bool):
            text = str(_name(value, missing=None))
        if text is None:
            path = path_of_text([{column: value}])
            kind = f"{column!r} is not a string but of type {type(value).__name__}"
            advice = f"; name a text in it, such as {path}" if path else ""
            raise BadRowError(row.source, f"{kind}{advice}")
        if text.strip() not in _NOTHING:
            yield text


def _metadata(fields: Mapping[str, Any], roles: Roles, table: Table) -> dict[str, Any]:
    taken, metadata = roles.names, {}
    for name, value in fields.items():
        if name in taken or isinstance(value, _BYTES):
            continue
        if cell_type := table.types.get(name):
            cell, value = value, cell_type.convert(value)
            if value is None and not is_missing(cell):
                kind = f"value of '{shortened(name)}' that is no {cell_type.name}"
                table.left_out.add(kind, shortened(cell))
        metadata[field_name(name, taken)] = value
    return metadata


def _name(value: Any, missing: str | None) -> Any:
    """An id or title as a string; Document rejects values of other types."""
    if _is_missing(value) or value == "":
        return missing
    if isinstance(value, (int, UUID, timedelta)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    # pandas stores integers with missing values as floats, databases as decimals.
    if isinstance(value, (float, Decimal)) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return value


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def field_name(column: str, taken: Collection[str]) -> str:
    """The metadata field for which `column_name` returned this column; else the column's name."""
    field = metadata_name(column)
    return field if column_name(field, taken) == column else column
