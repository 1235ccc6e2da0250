"""Documents as rows of the table that they were read from, and Excel workbooks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy

from semsearch.corpus.documents import field_name
from semsearch.corpus.roles import numbered
from semsearch.errors import ArgumentError, MissingExtraError
from semsearch.explore.clusters import cluster
from semsearch.explore.pairs import similar_pairs
from semsearch.index import Index
from semsearch.records import Document, column_name
from semsearch.search.diversity import DUPLICATE_COSINE
from semsearch.storage.interface import Passages, Reader

#: The columns of documents that were not read from one table, before those of their metadata.
DOCUMENT_COLUMNS = ("id", "title", "text")
#: The columns that `groups_of` adds.
GROUP_COLUMNS = ("group", "duplicate-of")

#: What a sheet and a cell of Excel can hold.
SHEET_MAX_ROWS, CELL_MAX_CHARACTERS = 1 << 20, 32_767
_TIME = re.compile(r"(?:19|[2-9]\d)\d\d-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?")
_WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,14}")


class Layout(NamedTuple):
    """The columns of a table, and their roles.

    Args:
        columns: their names, in order; several text columns, which a document joins, are one.
        text: the column of texts.
        title: the column of titles, if any.
        id: the column of ids, if any.
        holds_title: whether texts begin or end with the title, which has a column of its own.
        fields: the columns of metadata fields, by their names.
    """

    columns: Sequence[str] = DOCUMENT_COLUMNS
    text: str = "text"
    title: str | None = "title"
    id: str | None = "id"
    holds_title: bool = False
    fields: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of(cls, state: Reader) -> Layout:
        """The layout of the tables that an index was made from, or else that of documents."""
        known: list[dict[str, Any]] = [
            {role: found.get(role) for role in ("columns", "text_columns", "title", "id_column")}
            for found in state.settings().corpora.values()
        ]
        if not known or known.count(known[0]) < len(known) or not known[0]["columns"]:
            return cls()
        original, texts, title, identifier = known[0].values()
        taken = [name for name in (*texts, title, identifier) if name]
        joined = [column for column in texts if column != title] or texts
        text = " + ".join(joined)
        columns = [text if name == joined[0] else name for name in original]
        return cls(
            [name for name in columns if name not in joined[1:]],
            text,
            title,
            identifier or None,
            title in texts and len(texts) > 1,
            {field_name(name, taken): name for name in original if name not in taken},
        )

    def column(self, field: str) -> str:
        """The column of a metadata field, which may be one that the table lacks."""
        return self.fields.get(field, column_name(field, self.columns))

    def row(self, document: Document) -> dict[str, Any]:
        """The cells of a document; what the table lacks is in further columns."""
        row: dict[str, Any] = dict.fromkeys(self.columns)
        for name, value in document.metadata.items():
            row[self.column(name)] = value
        text, title = document.text, document.title
        if title is not None:
            row[self.title or column_name("title", self.columns)] = title
            if self.holds_title:
                text = "" if text == title else text
                text = text.removeprefix(f"{title}\n").removesuffix(f"\n{title}")
        row[self.text] = text
        if self.id is not None:
            row[self.id] = document.id
        return row


def groups_of(
    index: Index, passages: Passages, rows: Mapping[str, int], has_ids: bool
) -> dict[str, tuple[str | None, str | None]]:
    """The group and, of near-duplicates, the first document like them, by document id.

    Groups are those of `cluster` (of its first passage). Documents whose vectors, the means of
    their passages', have a cosine of at least `DUPLICATE_COSINE` are near-duplicates.

    Args:
        index: the index.
        passages: the passages of the documents.
        rows: the number of each document's row in a sheet, by id.
        has_ids: whether ids are in the table; other documents are named by their rows.
    """
    clustering = cluster(
        passages.vectors, passages.texts, words=3, stop_words=index.info().stop_words
    )
    names = {one.label: ", ".join(one.words) or str(one.label) for one in clustering.clusters}
    labels = clustering.labels()
    first = {name: place for place, name in reversed(list(enumerate(passages.document_ids)))}
    ids = sorted(first, key=rows.__getitem__)
    numbers = {name: place for place, name in enumerate(ids)}
    means = numpy.zeros((len(ids), passages.vectors.shape[1]), numpy.float32)
    numpy.add.at(means, [numbers[name] for name in passages.document_ids], passages.vectors)
    means /= numpy.maximum(numpy.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    original = list(range(len(ids)))
    for left, right, _ in similar_pairs(means, None, DUPLICATE_COSINE):
        original[right] = min(original[right], left)
    found = {}
    for place, name in enumerate(ids):
        original[place] = earliest = original[original[place]]
        shown = ids[earliest] if has_ids else f"row {rows[ids[earliest]]}"
        label = labels[first[name]]
        found[name] = (
            None if label is None else names[label],
            None if earliest == place else shown,
        )
    return found


def with_columns(columns: Sequence[str], more: Sequence[str]) -> list[str]:
    """The names of further columns, numbered where the table has them."""
    return numbered([*columns, *more])[len(columns) :]


def write_workbook(
    file: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], id_column: str | None
) -> int:
    """Write rows as a sheet of a workbook; returns how many texts were cut to fit into their cells.

    Times are written as times, and ids as numbers if they are written like them; no text becomes a
    formula.

    Raises:
        ArgumentError: there are too many rows.
        MissingExtraError: the extra ``files`` is not installed.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    except ImportError:
        raise MissingExtraError("openpyxl", "files", "workbooks") from None
    if len(rows) >= SHEET_MAX_ROWS:
        raise ArgumentError(f"a workbook holds {SHEET_MAX_ROWS - 1:,} rows, not {len(rows):,}")
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    cut = 0

    def cells(values: Mapping[str, Any]) -> Iterator[Any]:
        nonlocal cut
        for name in columns:
            value = _value(values.get(name), is_id=name == id_column)
            cell = WriteOnlyCell(sheet, None)
            if isinstance(value, str):
                cut += len(value) > CELL_MAX_CHARACTERS
                cell.value = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", value)
                cell.data_type = "s"
            else:
                cell.value = value
            yield cell

    sheet.append(list(cells({name: name for name in columns})))
    for row in rows:
        sheet.append(list(cells(row)))
    book.save(file)
    return cut


def _value(value: Any, *, is_id: bool) -> Any:
    if not isinstance(value, str):
        return value
    if is_id and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if _TIME.fullmatch(value):
        try:
            return datetime.fromisoformat(value)
        except ValueError:  # 2025-02-30
            return value
    return value
