"""Reads Parquet, a batch of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from semsearch.corpus.table import LOOK_AHEAD_ROWS, Row, Table
from semsearch.errors import BadRowError, CorpusError

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

    from semsearch.corpus.sources import Progress, Source

_BATCH_ROWS = 1_000
_BUFFER_BYTES = 1 << 20


def read_parquet(source: Source) -> Table:
    """The table of a Parquet file.

    Raises:
        CorpusError: when it is none, or has no rows, or later where it is damaged.
    """
    import pyarrow.parquet

    stored = source.seekable()
    size = stored.seek(0, os.SEEK_END)
    source.progress.position = 0  # rows count, and not the bytes that told the format
    with _parsing(source.name):
        # Buffers in place of whole row groups, which writers make as large as the memory allows.
        file = pyarrow.parquet.ParquetFile(stored, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        columns = file.schema_arrow.names
    if not file.metadata.num_rows:
        raise CorpusError(f"{source.name} has no rows")
    rows = _rows(file, source.name, source.progress, size)
    head = list(islice(rows, LOOK_AHEAD_ROWS))
    sample = [row for row in head if isinstance(row, Row)]
    return Table(source.name, columns, chain(head, rows), sample=sample)


def _rows(
    file: pyarrow.parquet.ParquetFile, name: str, progress: Progress, size: int
) -> Iterator[Row | BadRowError]:
    number = 0
    batches = file.iter_batches(_BATCH_ROWS)
    while True:
        with _parsing(name):
            batch = next(batches, None)
        if batch is None:
            return
        for fields in _records(batch):
            number += 1
            source = f"{name}, row {number}"
            if isinstance(fields, dict):
                yield Row(source, fields)
            else:
                yield BadRowError(source, f"cannot be read: {fields}")
        progress.position = size * number // file.metadata.num_rows


def _records(batch: pyarrow.RecordBatch) -> Iterator[dict[str, Any] | Exception]:
    """The rows of a batch; in place of one whose values Python cannot hold, the reason."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError) as error:  # wrong UTF-8, a date beyond the year 9999
        if batch.num_rows == 1:
            yield error
            return
        for row in range(batch.num_rows):
            yield from _records(batch.slice(row, 1))


@contextmanager
def _parsing(name: str) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, ValueError, OSError) as error:  # a name in wrong UTF-8, too
        reason = str(error).partition("\n")[0]
        raise CorpusError(f"{name} cannot be read as Parquet: {reason}") from error
