"""Reads Parquet, a batch of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from semsearch.corpus.arrow import behind, parsing, records, row_of, types_shown
from semsearch.corpus.table import LOOK_AHEAD_ROWS, Row, Table
from semsearch.errors import BadRowError, EmptyCorpusError

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

    from semsearch.corpus.sources import Progress, Source

_BATCH_ROWS = 1_000
_BUFFER_BYTES = 1 << 20


def read_parquet(source: Source) -> Table:
    """The table of a Parquet file.

    Raises:
        BadRowError: it is none, or damaged; of later damage there is a row.
        CorpusError: it has no rows.
    """
    import pyarrow.parquet

    stored = source.seekable()
    size = stored.seek(0, os.SEEK_END)
    source.progress.position = 0  # rows count, and not the bytes that told the format
    with parsing(source.name, "Parquet"):
        # Buffers in place of whole row groups, which writers make as large as the memory allows.
        file = pyarrow.parquet.ParquetFile(stored, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        columns = file.schema_arrow.names
    if not file.metadata.num_rows:
        raise EmptyCorpusError(f"{source.name} has no rows")
    rows = _rows(file, source.name, source.progress, size)
    head = list(islice(rows, LOOK_AHEAD_ROWS))
    sample = [row for row in head if isinstance(row, Row)]
    remark = types_shown(file.schema_arrow)
    return Table(source.name, columns, chain(head, rows), remark=remark, sample=sample)


def _rows(
    file: pyarrow.parquet.ParquetFile, name: str, progress: Progress, size: int
) -> Iterator[Row | BadRowError]:
    number = 0
    batches = file.iter_batches(_BATCH_ROWS)
    while True:
        try:
            with parsing(behind(name, number), "Parquet"):
                batch = next(batches, None)
        except BadRowError as error:  # what has been read stays
            yield error
            return
        if batch is None:
            return
        for fields in records(batch):
            number += 1
            yield row_of(fields, f"{name}, row {number}")
        progress.position = size * number // file.metadata.num_rows
