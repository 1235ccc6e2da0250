"""Reads CSV and TSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from semsearch.corpus.celltypes import cell_type
from semsearch.corpus.dialect import (
    DELIMITERS,
    RecordReader,
    RecordTooLargeError,
    guess_dialect,
)
from semsearch.corpus.table import MAX_ROW_BYTES, Row, Table, look_ahead
from semsearch.errors import BadRowError, CorpusError

if TYPE_CHECKING:
    from semsearch.corpus.textstream import TextStream

__all__ = ["read_delimited"]

#: What programs write where a cell has no text; other formats have a null for that.
NOTHING = ("", "NaN", "nan")

#: Where it stands and its cells, or what is wrong with it.
Record = tuple[str, list[str]] | BadRowError


def read_delimited(text: TextStream, delimiters: str = DELIMITERS) -> Table:
    """The table of a CSV or TSV file; its delimiter is one of those given.

    Raises:
        CorpusError: when it has no header or no rows.
    """
    # The limit holds for the whole process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
    lines = text.lines()
    head = look_ahead(lines, lambda: text.position)
    reader = guess_dialect(head, delimiters).reader(chain(head, lines))
    records = _records(reader, text.name)
    columns = _header(records, text.name)
    rows = _rows(records, columns)

    sample = list(islice(rows, 1))
    if not sample:
        raise CorpusError(f"{text.name} has a header but no rows")
    while reader.line_num < len(head) and (row := next(rows, None)):
        sample.append(row)
    fields = [row.fields for row in sample if isinstance(row, Row)]
    cell_types = {
        column: found
        for column in columns
        if (found := cell_type(row.get(column, "") for row in fields))
    }
    return Table(text.name, columns, chain(sample, rows), cell_types, NOTHING)


def _records(reader: RecordReader, name: str) -> Iterator[Record]:
    while True:
        source = f"{name}:{reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            return
        except RecordTooLargeError as error:
            yield BadRowError(source, str(error))
            continue
        except csv.Error as error:
            # The reader takes up again with the next line.
            reason = f"its quotes do not match ({error}, line {reader.line_num})"
            yield BadRowError(source, reason)
            continue
        if cells:  # a blank line has none
            yield source, cells


def _header(records: Iterator[Record], name: str) -> Sequence[str]:
    record = next(records, None)
    if record is None:
        raise CorpusError(f"{name} is empty")
    if isinstance(record, BadRowError):
        raise record
    # R and pandas write the row names under an empty header.
    return [cell.strip() or f"column_{number}" for number, cell in enumerate(record[1], 1)]


def _rows(records: Iterator[Record], columns: Sequence[str]) -> Iterator[Row | BadRowError]:
    width = len(columns)
    for record in records:
        if isinstance(record, BadRowError):
            yield record
            continue
        source, cells = record
        if len(cells) == width:
            fields = {name: cell for name, cell in zip(columns, cells, strict=True) if cell}
            yield Row(source, fields)
        else:
            noun = "cell" if len(cells) == 1 else "cells"
            yield BadRowError(source, f"{len(cells)} {noun} where the header has {width}")
