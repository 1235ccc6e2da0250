"""Writes documents, or passages with their vectors, to Parquet, JSON lines or CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from semsearch.errors import ArgumentError, check_path
from semsearch.filters import Condition
from semsearch.index import Index
from semsearch.records import Document, column_name
from semsearch.storage.interface import (
    Reader,
    Selection,
    parse_filter,
    unit_vectors,
    warn_if_none_match,
)
from semsearch.storage.spaces import Space, check_searchable

if TYPE_CHECKING:
    import pyarrow

Row: TypeAlias = Mapping[str, Any]

DOCUMENTS_AT_ONCE = 256

SUFFIXES = (".parquet", ".jsonl", ".csv")

#: The first columns, with the Arrow names of their types: of documents, before their metadata, and
#: of passages, before their vectors.
COLUMNS = {"id": "string", "title": "string", "text": "string"}
PASSAGE_COLUMNS = {"id": "string", "start": "int64", "end": "int64", "text": "string"}


class Exported(NamedTuple):
    """The result of an export."""

    file: Path
    rows: int  #: documents or passages
    as_json: tuple[str, ...] = ()  #: columns written as JSON text because no Parquet type fits


def export_index(
    index: Index,
    output: str | Path,
    *,
    vectors: bool = False,
    space: str | None = None,
    where: str | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Exported:
    """Write the documents of an index, or its passages with their vectors.

    Documents are read from one committed state. The file appears only when it is complete.

    >>> from semsearch import Document, Index, export_index
    >>> with Index.create("fish", "hashing:64") as index:
    ...     _ = index.add([Document("a", "a red fish"), Document("b", "a blue one")])
    ...     export_index(index, "fish.csv").rows
    2

    Args:
        index: the index.
        output: a file; its format is named by its suffix: .parquet, .jsonl or .csv.
        vectors: write a row for each passage, with its vector, instead of each document.
        space: the name of the embedding space of the vectors; None for the first.
        where: a filter over metadata.
        on_progress: called with the number of documents read and their total.

    Raises:
        ArgumentError: the suffix is unknown, or the file exists or cannot be written.
        FilterError: the filter is invalid.
        SpaceError: the space does not exist, or is not complete yet.
    """
    path = check_path("output", output)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(f"{path}: the suffix must be one of {', '.join(SUFFIXES)}")
    if vectors and suffix == ".csv":
        raise ArgumentError("CSV cannot hold vectors; write them as Parquet or JSON lines")
    if space is not None and not vectors:
        raise ArgumentError("a space can only be named for vectors, not for documents")
    if path.exists():
        raise ArgumentError(f"{path} exists; name another file, or remove it")
    wanted = index.space(space, complete=True) if vectors else None
    with _written(path) as draft, index.read() as state:
        condition = None if where is None else parse_filter(state, where)
        total = state.count(Selection(condition=condition))
        if condition is not None and not total:
            warn_if_none_match(state, condition)
        blocks = _blocks(state, condition, lambda done: on_progress(done, total))
        if wanted is None:
            rows, columns = _document_rows(blocks), COLUMNS
        else:
            rows, columns = _passage_rows(blocks, state, wanted), PASSAGE_COLUMNS
        if suffix == ".jsonl":
            return Exported(path, _write_lines(draft, rows))
        held = list(rows)
        if suffix == ".csv":
            _write_csv(draft, held, columns)
            return Exported(path, len(held))
        with draft.open("wb") as stream:
            return Exported(path, len(held), tuple(write_parquet(stream, held, columns)))


@contextmanager
def _written(path: Path) -> Iterator[Path]:
    """A temporary file, which becomes `path` when the block ends without an error.

    Raises:
        ArgumentError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)


def _blocks(
    state: Reader, condition: Condition | None, on_progress: Callable[[int], None]
) -> Iterator[dict[str, Document]]:
    """Blocks of documents by id, in insertion order."""
    done = 0
    for documents in state.scan(DOCUMENTS_AT_ONCE):
        block = {str(document.id): document for document in documents}
        if condition is not None:
            wanted = Selection(ids=list(block), condition=condition)
            block = {name: block[name] for name in state.ids(wanted)}
        if block:
            yield block
            done += len(block)
            on_progress(done)


def _document_rows(blocks: Iterable[Mapping[str, Document]]) -> Iterator[Row]:
    for block in blocks:
        for document in block.values():
            row = {"id": document.id, "title": document.title, "text": document.text}
            for name, value in document.metadata.items():
                row[column_name(name, COLUMNS)] = value
            yield row


def _passage_rows(
    blocks: Iterable[Mapping[str, Document]], state: Reader, space: Space
) -> Iterator[Row]:
    """The passages of documents, with their vectors.

    Raises:
        SpaceError: the space was dropped.
    """
    check_searchable(space, state.spaces())
    for block in blocks:
        found = state.passages_of(list(block))
        passages = [(name, passage) for name in block for passage in found.get(name, ())]
        vectors = unit_vectors(state, space, [passage.text_hash for _, passage in passages])
        for (name, passage), vector in zip(passages, vectors, strict=True):
            start, end, text = passage.start, passage.end, passage.text
            yield {"id": name, "start": start, "end": end, "text": text, "vector": vector}


def _write_lines(file: Path, rows: Iterable[Row]) -> int:
    """Write rows as JSON lines; returns their number."""
    count = 0
    with file.open("w", encoding="utf-8", newline="\n") as lines:
        for count, row in enumerate(rows, 1):  # noqa: B007
            lines.write(_json(row) + "\n")
    return count


def _write_csv(file: Path, rows: Sequence[Row], columns: Iterable[str]) -> None:
    """Write rows as CSV: strings unchanged, None as empty cells, other values as JSON."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, _names(rows, columns))
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {
                    name: value if value is None or isinstance(value, str) else _json(value)
                    for name, value in row.items()
                }
            )


def _names(rows: Iterable[Row], columns: Iterable[str]) -> list[str]:
    """The names of these columns, then of the further ones of rows, sorted."""
    first = list(columns)
    return first + sorted({name for row in rows for name in row}.difference(first))


def _json(value: Any) -> str:
    """A value as JSON; arrays become lists."""
    return json.dumps(value, ensure_ascii=False, default=lambda array: array.tolist())


def write_parquet(
    stream: IO[bytes],
    rows: Sequence[Row],
    columns: Mapping[str, str],
    further: Iterable[str] = (),
) -> list[str]:
    """Write rows as Parquet; returns the names of the columns written as JSON text.

    These have values without a common Arrow type (strings and numbers), or objects.

    Args:
        stream: open for writing; it need not be seekable.
        rows: the rows; their further columns follow the first ones, sorted.
        columns: the first columns, with the Arrow names of their types.
        further: those of the further columns that are written even if no row has them.
    """
    import pyarrow
    from pyarrow import parquet

    arrays, as_json = {}, []
    for name in _names([*rows, dict.fromkeys(further)], columns):
        values = [row.get(name) for row in rows]
        array = _array(values, columns.get(name))
        if array is None:
            as_json.append(name)
            array = pyarrow.array([None if one is None else _json(one) for one in values])
        arrays[name] = array
    parquet.write_table(pyarrow.table(arrays), stream)
    return as_json


def _array(values: list[Any], kind: str | None) -> pyarrow.Array | None:
    """Values of one type, of strings if all are null; None if there is no such type."""
    import pyarrow

    try:
        array = pyarrow.array(values, kind and pyarrow.type_for_alias(kind))
    except (pyarrow.ArrowException, OverflowError):
        return None
    item = array.type
    while pyarrow.types.is_list(item):
        item = item.value_type
    if pyarrow.types.is_struct(item):
        return None
    return array.cast(pyarrow.string()) if pyarrow.types.is_null(array.type) else array
