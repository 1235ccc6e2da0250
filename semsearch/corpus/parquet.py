"""Reads Parquet, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from semsearch.corpus.sources import Source
from semsearch.corpus.table import Row, Table
from semsearch.errors import BadRowError, first_line

if TYPE_CHECKING:
    import pyarrow

_BATCH_ROWS = 1_000
_BUFFER_BYTES = 1 << 20


def read_parquet(source: Source) -> Table:
    """The table of a Parquet file, without columns of binary data, such as images.

    Raises:
        BadRowError: it is damaged at the beginning; later damage is reported as a bad row.
    """
    import pyarrow.parquet

    path = source.on_disk()
    with _parsing(source.name):
        # Buffers instead of whole row groups, which writers make as large as memory allows.
        file = pyarrow.parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        columns = [field.name for field in file.schema_arrow if "binary" not in str(field.type)]
    return Table(source.name, columns, _rows(file, columns, source, path.stat().st_size))


def _rows(
    file: pyarrow.parquet.ParquetFile, columns: list[str], source: Source, size: int
) -> Iterator[Row | BadRowError]:
    number = 0
    try:
        with _parsing(source.name):
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                for fields in _records(batch):
                    number += 1
                    place = f"{source.name}, row {number}"
                    if isinstance(fields, dict):
                        yield Row(place, fields)
                    else:
                        yield BadRowError(place, f"cannot be read: {fields}")
                source.progress.position = size * number // file.metadata.num_rows
    except BadRowError as error:  # the rows before it are kept
        place = f"{source.name}, after row {number}" if number else source.name
        yield BadRowError(place, error.reason)


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
        reason = f"cannot be read as Parquet: {first_line(error)}"
        raise BadRowError(name, reason) from error
