"""Writes rows as JSON lines, CSV and Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeAlias

if TYPE_CHECKING:
    import pyarrow

Row: TypeAlias = Mapping[str, Any]

_ROWS_AT_ONCE = 1_000


def json_line(row: Row) -> str:
    """A row as a line of JSON, with its newline."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def write_csv(file: TextIO, rows: Callable[[], Iterable[Row]], columns: Collection[str]) -> None:
    """Write rows as CSV; further columns are collected from the rows.

    Strings are written unchanged, other values as JSON, missing values and None as empty cells.

    Args:
        file: open for writing with ``newline=""``.
        rows: returns the rows, the same each time.
        columns: the first columns.
    """
    names = [*columns, *sorted({name for row in rows() for name in row} - set(columns))]
    writer = csv.writer(file)
    writer.writerow(names)
    for row in rows():
        writer.writerow([_cell(row.get(name)) for name in names])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_parquet(
    file: IO[bytes],
    rows: Callable[[], Iterable[Row]],
    columns: Mapping[str, str],
    further: Iterable[str] = (),
) -> list[str]:
    """Write rows as Parquet; further columns and their types are collected from the rows.

    Rows are read twice: first to infer the column types, then to write them. Columns without a
    common Arrow type (strings and numbers, objects) are written as JSON text.

    Args:
        file: open for writing; it need not be seekable.
        rows: returns the rows, the same each time.
        columns: the first columns, with the Arrow names of their types.
        further: those of the further columns that are written even if no row has them.

    Returns:
        The names of the columns written as JSON text.
    """
    import pyarrow
    from pyarrow import parquet

    types = {name: pyarrow.type_for_alias(kind) for name, kind in columns.items()}
    types |= dict.fromkeys(further, pyarrow.null())
    for block in _blocks(rows()):
        for name in sorted({name for row in block for name in row} - columns.keys()):
            known = types.get(name, pyarrow.null())
            values = [row[name] for row in block if name in row]
            types[name] = None if known is None else _common_type(known, values)
    as_json = sorted(name for name, kind in types.items() if kind is None)
    text = pyarrow.string()  # also for columns of nulls
    schema = pyarrow.schema(
        [
            (name, text if kind is None or kind == pyarrow.null() else kind)
            for name, kind in types.items()
        ]
    )
    with parquet.ParquetWriter(file, schema) as writer:
        for block in _blocks(rows()):
            arrays = [
                _array(field, [row.get(field.name) for row in block], field.name in as_json)
                for field in schema
            ]
            writer.write_table(pyarrow.table(arrays, schema))
    return as_json


def _common_type(known: pyarrow.DataType, values: Sequence[Any]) -> pyarrow.DataType | None:
    """The type for values of a known type and others; None if there is none, or for objects."""
    import pyarrow

    try:
        schemas = [pyarrow.schema([("", kind)]) for kind in (known, pyarrow.array(values).type)]
        kind = pyarrow.unify_schemas(schemas, promote_options="permissive").types[0]
    except (pyarrow.ArrowException, OverflowError):
        return None
    item = kind
    while pyarrow.types.is_list(item):
        item = item.value_type
    return None if pyarrow.types.is_struct(item) else kind


def _array(field: pyarrow.Field, values: Sequence[Any], is_json: bool) -> pyarrow.Array:
    import pyarrow

    if is_json:
        values = [
            None if value is None else json.dumps(value, ensure_ascii=False) for value in values
        ]
    return pyarrow.array(values, field.type)


def _blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    remaining = iter(rows)
    while block := list(islice(remaining, _ROWS_AT_ONCE)):
        yield block
