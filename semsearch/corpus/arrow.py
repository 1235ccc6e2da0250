"""Reads Parquet, Arrow IPC files (Feather) and Arrow streams, a batch of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from semsearch.corpus.table import Row, Table
from semsearch.errors import BadRowError, first_line

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

    from semsearch.corpus.sources import Source

_FILE_MAGIC = b"ARROW1"
_BATCH_ROWS = 1_000
_BUFFER_BYTES = 1 << 20


def read_arrow(source: Source) -> Table:
    """The table of an Arrow file or stream.

    Raises:
        BadRowError: it is damaged at the beginning; later damage is reported as a bad row.
    """
    import pyarrow.ipc

    with _parsing(source.name):
        stored = source.seekable()
        batches: Iterable[pyarrow.RecordBatch]
        if source.head.startswith(_FILE_MAGIC):
            file = pyarrow.ipc.open_file(stored)
            schema = file.schema
            batches = (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            batches = stream = pyarrow.ipc.open_stream(stored)
            schema = stream.schema

    def validated() -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            batch.validate(full=True)  # offsets in damaged files may point anywhere
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                yield batch.slice(start, _BATCH_ROWS)

    return Table(source.name, schema.names, _rows(validated(), source.name))


def read_parquet(source: Source) -> Table:
    """The table of a Parquet file.

    Raises:
        BadRowError: it is damaged at the beginning; later damage is reported as a bad row.
    """
    import pyarrow.parquet

    stored = source.seekable()
    size = os.fstat(stored.fileno()).st_size
    with _parsing(source.name):
        # Buffers instead of whole row groups, which writers make as large as memory allows.
        file = pyarrow.parquet.ParquetFile(stored, buffer_size=_BUFFER_BYTES, pre_buffer=False)

    def batches() -> Iterator[pyarrow.RecordBatch]:
        rows = 0
        for batch in file.iter_batches(_BATCH_ROWS) if file.metadata.num_rows else ():
            yield batch
            rows += batch.num_rows
            source.progress.position = size * rows // file.metadata.num_rows

    source.progress.position = 0  # progress counts rows, not the bytes read for the format
    return Table(source.name, file.schema_arrow.names, _rows(batches(), source.name))


def _rows(batches: Iterator[pyarrow.RecordBatch], name: str) -> Iterator[Row | BadRowError]:
    number = 0
    while True:
        try:
            with _parsing(f"{name}, after row {number}" if number else name):
                batch = next(batches, None)
        except BadRowError as error:  # the rows before it are kept
            yield error
            return
        if batch is None:
            return
        for fields in _records(batch):
            number += 1
            source = f"{name}, row {number}"
            if isinstance(fields, dict):
                yield Row(source, fields)
            else:
                yield BadRowError(source, f"cannot be read: {fields}")


def _records(batch: pyarrow.RecordBatch) -> Iterator[dict[str, Any] | Exception]:
    """The rows of a batch; an exception in place of a row that has no Python equivalent."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError) as error:  # invalid UTF-8, a date after the year 9999
        if batch.num_rows == 1:
            yield error
            return
        for row in range(batch.num_rows):
            yield from _records(batch.slice(row, 1))


@contextmanager
def _parsing(name: str) -> Iterator[None]:
    """Turn pyarrow's exceptions into a BadRowError that names the file."""
    import pyarrow

    try:
        yield
    # ValueError: names in invalid UTF-8; MemoryError: absurd lengths in a damaged file.
    except (pyarrow.ArrowException, ValueError, OSError, MemoryError) as error:
        reason = f"cannot be read as Arrow or Parquet: {first_line(error)}"
        raise BadRowError(name, reason) from error
