"""Turns rows into documents."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from uuid import UUID

from semsearch.corpus.columns import Roles, describe, doubts, resolve
from semsearch.corpus.files import FolderFiles
from semsearch.corpus.formats import without_gz
from semsearch.corpus.table import Row
from semsearch.encodings import ESCAPED_BYTE
from semsearch.errors import BadFileError, BadRowError, UndecodableError
from semsearch.records import Document, field_name
from semsearch.texts import joined_text, sentences_text

if TYPE_CHECKING:
    from semsearch.corpus.table import CellType, Table

#: Called with the error of each bad row; if it returns, the row is skipped.
OnBadRow = Callable[[BadRowError], None]
#: Called with one line about what was guessed.
Notify = Callable[[str], None]
#: Called with arguments of `Corpus`: the columns and the sheet that a table is read with.
Note = Callable[[dict[str, Any]], None]

#: The most ids of skipped rows kept in memory; further rows count as unidentified.
MAX_SKIPPED_IDS = 1_000_000

#: Binary data, which is not searched.
_BYTES = (bytes, bytearray, memoryview)

#: Prefix of columns in tables of a folder whose names clash with a document's own fields.
_PREFIX, _OWN_NAMES = "column.", ("id", "title", "text", "file", "row")


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
            self.files.add(error.file)
        elif error.document_id is None or len(self.ids) >= MAX_SKIPPED_IDS:
            self.unidentified += 1
        else:
            self.ids.add(error.document_id)


@dataclass
class Readings:
    """How the files of a corpus are read: the arguments of `Corpus` by `recorded_name`.

    Text and id columns are always named; an empty id column says that there is none.

    Args:
        earlier: the arguments of earlier runs, used where none are given now.
        used: those of this run.
        index: the index that recorded the earlier ones, for messages.
    """

    earlier: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    used: dict[str, dict[str, Any]] = field(default_factory=dict)
    index: str = "the index"

    def note(self, name: str, given: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Note how a file is read, unless its name or a column's cannot be decoded.

        Args:
            name: its `recorded_name`.
            given: the arguments with which it was opened.
            found: those that describe its table, which take precedence.
        """
        used = {**given, **found}
        if name and used and not ESCAPED_BYTE.search(json.dumps([name, used], ensure_ascii=False)):
            self.used[name] = used


class DocumentReader(Iterator[Document]):
    """Iterates over the documents of a corpus, and counts skipped rows.

    Args:
        read: reads the documents; its argument handles bad rows.
        on_bad_row: called with the error of each bad row; if it returns, the row is skipped.
        files: tracks the files of folders.
        readings: its `earlier` may be set before the first document is read.
    """

    def __init__(
        self,
        read: Callable[[OnBadRow], Iterator[Document]],
        on_bad_row: OnBadRow,
        files: FolderFiles | None = None,
        readings: Readings | None = None,
    ) -> None:
        self.readings = readings or Readings()
        self.taken = 0  #: the number of documents iterated over
        self.files = found = files or FolderFiles()
        self.skipped = skipped = SkippedRows(files=found.left_out)  # one set: a sync keeps both

        def skip(error: BadRowError) -> None:
            on_bad_row(error)
            skipped.add(error)
            found.spoil()

        self._documents = read(skip)

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
    table: Table,
    wanted: Roles,
    on_bad_row: OnBadRow,
    notify: Notify,
    note: Note = lambda arguments: None,
) -> Iterator[Document]:
    """The documents of a table, row by row.

    Raises:
        CorpusError: a wanted column does not exist, or the text column cannot be guessed.
        ArgumentError: another id column is named than an index has ids from.
    """
    roles = resolve(table, wanted)
    note(_arguments(table, roles) if table.announced else {})
    if table.announced:
        for line in (describe(table, roles, wanted), *doubts(table, roles)):
            notify(line)
        if binary := _binary_columns(table):
            notify(f"{table.name}: binary data is left out: {', '.join(binary)}")
    elif table.remark:
        notify(f"{table.name}: {table.remark}")
    for row in table.rows:
        if isinstance(row, BadRowError):
            on_bad_row(row)
            continue
        try:
            document = _document(row, roles, table)
        except BadRowError as error:
            explained = _explained(error, table)
            explained.document_id = _readable_id(row, roles, table)
            on_bad_row(explained)
            continue
        yield document


def _arguments(table: Table, roles: Roles) -> dict[str, Any]:
    """The arguments of `Corpus` with which the same rows are read in the same way."""
    columns = {"text_columns": list(roles.text), "id_column": roles.id or ""}
    return columns if table.sheet is None else {**columns, "sheet": table.sheet}


def _binary_columns(table: Table) -> list[str]:
    """The columns with bytes among the first rows."""
    return [
        column
        for column in table.columns
        if any(_has_bytes(row.fields.get(column)) for row in table.sample)
    ]


def _has_bytes(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_bytes, value.values()))
    if isinstance(value, (list, tuple)):  # maps of Parquet are lists of tuples
        return any(map(_has_bytes, value))
    return isinstance(value, _BYTES)


def _document(row: Row, roles: Roles, table: Table) -> Document:
    source, fields = row
    if table.loosely_typed:
        fields = {**fields, **_as_strings(fields, roles)}
        row = Row(source, fields)
    title = None if roles.title is None else _name(fields.get(roles.title), missing=None)
    text = joined_text(_texts(row, roles.text, table))
    if table.file is not None:
        metadata = _metadata(fields, roles._replace(id=None), table.cell_types)
        return _part(row, title, text, metadata, table.file)
    identifier = None if roles.id is None else _name(fields.get(roles.id), missing="")
    metadata = _metadata(fields, roles, table.cell_types)
    return Document(identifier, text, title, metadata, source)


def _part(row: Row, title: Any, text: str, metadata: Mapping[str, Any], file: str) -> Document:
    """A row of a file in a folder, with an id like ``survey.csv#row=7``."""
    number = _number(row)
    heading = f"{without_gz(PurePath(file)).stem}, row {number}"
    own = {"file": file, "row": number}
    others = {
        f"{_PREFIX}{name}" if name in _OWN_NAMES else name: metadata[name] for name in metadata
    }
    return Document(
        _part_id(row, file),
        text,
        heading if title is None else f"{heading}: {title}",
        {**own, **others},
        row.source,
    )


def _part_id(row: Row, file: str) -> str:
    return f"{file}#row={_number(row)}"


def _number(row: Row) -> int:
    """The number at the end of a row's source: ``survey.csv:7``, ``films.json, item 7``."""
    return int(row.source[len(row.source.rstrip("0123456789")) :])


def _as_strings(fields: Mapping[str, Any], roles: Roles) -> dict[str, str]:
    """The numbers, dates and durations in columns of texts, as strings."""
    return {
        name: _as_string(value)
        for name in roles.names
        if isinstance(value := fields.get(name), (int, float, date, time, timedelta))
    }


def _as_string(value: float | date | time | timedelta) -> str:
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _explained(error: BadRowError, table: Table) -> BadRowError:
    """The error; for an undecodable byte, with the likely encoding of the file."""
    if isinstance(error, UndecodableError) and table.not_decoded:
        return UndecodableError(error.source, error.what, table.not_decoded())
    return error


def _readable_id(row: Row, roles: Roles, table: Table) -> str | None:
    """The id of a bad row; None if it has no valid one."""
    if table.file is not None:
        return _part_id(row, table.file)
    identifier = None if roles.id is None else _name(row.fields.get(roles.id), missing=None)
    try:
        return Document(identifier, "any text").id
    except BadRowError:
        return None


def _texts(row: Row, columns: Sequence[str], table: Table) -> Iterator[str]:
    for column in columns:
        value = row.fields.get(column)
        if _is_missing(value):
            continue
        text = _as_text(value, table.cell_types.get(column))
        if text is None:
            kind = type(value).__name__
            raise BadRowError(row.source, f"{column!r} is not a string but of type {kind}")
        if text.strip() not in table.nothing:
            yield text


def _as_text(value: Any, cell_type: CellType | None) -> str | None:
    """A string unchanged; a list of sentences (as in SciFact) as one text; else None."""
    is_string = isinstance(value, str)
    items = cell_type(value) if is_string and cell_type else value
    text = sentences_text(items) if isinstance(items, list) else None
    return value if text is None and is_string else text


def _metadata(
    fields: Mapping[str, Any], roles: Roles, cell_types: Mapping[str, CellType]
) -> dict[str, Any]:
    taken = roles.names
    metadata = {
        name: _without_bytes(value)
        for name, value in fields.items()
        if name not in taken and not isinstance(value, _BYTES)
    }
    for name, cell_type in cell_types.items():
        if name in metadata:
            metadata[name] = cell_type(metadata[name])
    return {field_name(name, taken): value for name, value in metadata.items()}


def _without_bytes(value: Any) -> Any:
    """A value without binary data, as image files have it in a Parquet file."""
    if isinstance(value, (list, tuple)):
        return [_without_bytes(item) for item in value if not isinstance(item, _BYTES)]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _without_bytes(item) for name, item in value.items() if not isinstance(item, _BYTES)
    }


def _name(value: Any, missing: str | None) -> Any:
    """An id or title as a string; Document rejects values of other types."""
    if _is_missing(value) or value == "":
        return missing
    if isinstance(value, (int, UUID)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    # pandas stores integers with missing values as floats, databases as decimals.
    if isinstance(value, (float, Decimal)) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return value


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
