"""Writes rows as JSON lines, CSV and Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeAlias

from semsearch.errors import ArgumentError

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

    Raises:
        ArgumentError: the numbers of a column do not fit one type.
    """
    import pyarrow
    import pyarrow.parquet

    types, mixed = _types(rows(), columns, further)
    schema = pyarrow.schema(list(types.items()))
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for block in _blocks(rows()):
            arrays = [
                _array(name, [row.get(name) for row in block], kind, name in mixed)
                for name, kind in types.items()
            ]
            writer.write_table(pyarrow.table(arrays, schema))
    return sorted(mixed)


def _types(
    rows: Iterable[Row], columns: Mapping[str, str], further: Iterable[str]
) -> tuple[dict[str, pyarrow.DataType], set[str]]:
    """The type of each column, and the columns to be written as JSON text."""
    import pyarrow

    types = {name: pyarrow.type_for_alias(kind) for name, kind in columns.items()}
    types |= dict.fromkeys(further, pyarrow.null())
    mixed: set[str] = set()
    for block in _blocks(rows):
        values: dict[str, list[Any]] = {}
        for row in block:
            for name in row.keys() - columns.keys() - mixed:
                values.setdefault(name, []).append(row[name])
        for name in sorted(values):
            kind = _merged(types.get(name, pyarrow.null()), _type(values[name]))
            types[name] = kind or pyarrow.string()
            if kind is None:
                mixed.add(name)
    for name, kind in types.items():
        if kind == pyarrow.null():
            types[name] = pyarrow.string()  # all values are null
    return types, mixed


def _type(values: Sequence[Any]) -> pyarrow.DataType | None:
    """The common type of values; None if there is none, or for objects."""
    import pyarrow

    try:
        kind = pyarrow.array(values).type
    except (pyarrow.ArrowException, OverflowError):
        return None
    item = kind
    while pyarrow.types.is_list(item):
        item = item.value_type
    return None if pyarrow.types.is_struct(item) else kind


def _merged(left: pyarrow.DataType, right: pyarrow.DataType | None) -> pyarrow.DataType | None:
    import pyarrow

    if right is None:
        return None
    schemas = [pyarrow.schema([("", kind)]) for kind in (left, right)]
    try:
        return pyarrow.unify_schemas(schemas, promote_options="permissive").types[0]
    except pyarrow.ArrowException:
        return None


def _array(
    name: str, values: Sequence[Any], kind: pyarrow.DataType, is_json: bool
) -> pyarrow.Array:
    import pyarrow

    if is_json:
        values = [
            None if value is None else json.dumps(value, ensure_ascii=False) for value in values
        ]
    try:
        return pyarrow.array(values, kind)
    except pyarrow.ArrowException:
        raise ArgumentError(
            f"field '{name}' holds fractions and integers too large for one Parquet column; write "
            "JSON lines"
        ) from None


def _blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    remaining = iter(rows)
    while block := list(islice(remaining, _ROWS_AT_ONCE)):
        yield block
