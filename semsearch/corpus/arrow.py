"""Reads Arrow IPC files and streams (Feather is the former), a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from semsearch.corpus.columns import shortened
from semsearch.corpus.table import LOOK_AHEAD_ROWS, Row, Table
from semsearch.errors import BadRowError, EmptyCorpusError, first_line

if TYPE_CHECKING:
    import pyarrow

    from semsearch.corpus.sources import Source

_FILE_MAGIC, _OLD_MAGIC = b"ARROW1", b"FEA1"
_BATCH_ROWS = 1_000

TYPES_SHOWN, TYPE_CHARACTERS = 8, 40


def read_arrow(source: Source) -> Table:
    """The table of an Arrow file or stream.

    Raises:
        BadRowError: it is none, or damaged; of later damage there is a row.
        CorpusError: it has no rows.
    """
    import pyarrow.ipc

    if source.head.startswith(_OLD_MAGIC):
        raise BadRowError(source.name, "is Feather version 1: write it again as version 2")
    stored = source.seekable()
    with parsing(source.name, "Arrow"):
        batches: Iterable[pyarrow.RecordBatch]
        if source.head.startswith(_FILE_MAGIC):
            file = pyarrow.ipc.open_file(stored)
            schema, kind = file.schema, "an Arrow file"
            batches = (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            stream = pyarrow.ipc.open_stream(stored)
            schema, kind, batches = stream.schema, "an Arrow stream", stream
        columns, remark = schema.names, f"{kind}, {types_shown(schema)}"
    rows = _rows(batches, source.name)
    head = list(islice(rows, LOOK_AHEAD_ROWS))
    if not head:
        raise EmptyCorpusError(f"{source.name} has no rows")
    sample = [row for row in head if isinstance(row, Row)]
    return Table(source.name, columns, chain(head, rows), remark=remark, sample=sample)


def records(batch: pyarrow.RecordBatch) -> Iterator[dict[str, Any] | Exception]:
    """The rows of a batch; in place of one whose values Python cannot hold, the reason."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError) as error:  # wrong UTF-8, a date beyond the year 9999
        if batch.num_rows == 1:
            yield error
            return
        for row in range(batch.num_rows):
            yield from records(batch.slice(row, 1))


def row_of(fields: dict[str, Any] | Exception, source: str) -> Row | BadRowError:
    """One of these as it is handed on."""
    if isinstance(fields, dict):
        return Row(source, fields)
    return BadRowError(source, f"cannot be read: {fields}")


def behind(name: str, number: int) -> str:
    """Where a file is damaged of which so many rows were read."""
    return f"{name}, behind row {number}" if number else name


def types_shown(schema: pyarrow.Schema) -> str:
    """``types: text string, year int64``."""
    shown = [shortened(f"{field.name} {field.type}", TYPE_CHARACTERS) for field in schema]
    return f"types: {', '.join(shown[:TYPES_SHOWN])}{', …' if len(shown) > TYPES_SHOWN else ''}"


@contextmanager
def parsing(name: str, what: str) -> Iterator[None]:
    """Turns what pyarrow raises into a BadRowError that names the file."""
    import pyarrow

    try:
        yield
    # A name in wrong UTF-8, too, and lengths in a damaged file that no memory holds.
    except (pyarrow.ArrowException, ValueError, OSError, MemoryError) as error:
        raise BadRowError(name, f"cannot be read as {what}: {first_line(error)}") from error


def _rows(batches: Iterable[pyarrow.RecordBatch], name: str) -> Iterator[Row | BadRowError]:
    number = 0
    remaining = iter(batches)
    while True:
        try:
            with parsing(behind(name, number), "Arrow"):
                batch = next(remaining, None)
                if batch is not None:
                    batch.validate(full=True)  # offsets of damaged files point anywhere
        except BadRowError as error:  # what has been read stays
            yield error
            return
        if batch is None:
            return
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            for fields in records(batch.slice(start, _BATCH_ROWS)):
                number += 1
                yield row_of(fields, f"{name}, row {number}")
