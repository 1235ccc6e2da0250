"""Writes documents, or passages with their vectors, to Parquet, JSON lines, CSV or XLSX."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from semsearch.errors import ArgumentError, check_path
from semsearch.explore.spreadsheet import (
    GROUP_COLUMNS,
    Layout,
    groups_of,
    with_columns,
    write_workbook,
)
from semsearch.filters import Condition
from semsearch.index import Index
from semsearch.records import Document, Hits, Where
from semsearch.storage.interface import (
    Passages,
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

SUFFIXES = (".parquet", ".jsonl", ".csv", ".xlsx")

#: The first columns of passages, before their vectors, with the Arrow names of their types.
PASSAGE_COLUMNS = {"id": "string", "start": "int64", "end": "int64", "text": "string"}


class Exported(NamedTuple):
    """The result of an export."""

    file: Path
    rows: int  #: documents or passages
    as_json: tuple[str, ...] = ()  #: columns written as JSON text because no Parquet type fits
    cut: int = 0  #: texts cut because a cell of a workbook holds no more characters


def export_index(
    index: Index,
    output: str | Path,
    *,
    vectors: bool = False,
    space: str | None = None,
    where: Where | None = None,
    groups: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Exported:
    """Write the documents of an index, or its passages with their vectors.

    Documents are read from one committed state. The file appears only when it is complete. An index
    that was made from one table is written with its columns, in their order; JSON lines always have
    id, title, text and metadata, as other exports of other indexes.

    >>> from semsearch import Document, Index, export_index
    >>> with Index.create("fish", "hashing:64") as index:
    ...     _ = index.add([Document("a", "a red fish"), Document("b", "a blue one")])
    ...     export_index(index, "fish.csv").rows
    2

    Args:
        index: the index.
        output: a file; its format is named by its suffix: .parquet, .jsonl, .csv or .xlsx.
        vectors: write a row for each passage, with its vector, instead of each document.
        space: the name of the embedding space of the vectors or groups; None for the first.
        where: a filter over metadata.
        groups: add the columns ``group`` and ``duplicate-of``; see `groups_of`.
        on_progress: called with the number of documents read and their total.

    Raises:
        ArgumentError: the suffix is unknown, or the file exists or cannot be written.
        FilterError: the filter is invalid.
        SpaceError: the space does not exist, or is not complete yet.
    """
    path = check_path("output", output)
    suffix = path.suffix.lower()
    if vectors and (groups or suffix in (".csv", ".xlsx")):
        raise ArgumentError("vectors are written as Parquet or JSON lines, without groups")
    if space is not None and not vectors and not groups:
        raise ArgumentError("a space can only be named for vectors or groups, not for documents")
    wanted = index.space(space, complete=True) if vectors or groups else None
    with written(path) as draft, index.read() as state:
        condition = None if where is None else parse_filter(state, where)
        total = state.count(Selection(condition=condition))
        if condition is not None and not total:
            warn_if_none_match(state, condition)
        blocks = _blocks(state, condition, lambda done: on_progress(done, total))
        if vectors and wanted is not None:
            rows = _passage_rows(blocks, state, wanted)
            if suffix == ".jsonl":
                return Exported(path, _write_lines(draft, rows))
            return write_table(draft, path, list(rows), PASSAGE_COLUMNS)
        layout = Layout() if suffix == ".jsonl" else Layout.of(state)
        documents = (document for block in blocks for document in block.values())
        if suffix == ".jsonl" and not groups:
            return Exported(path, _write_lines(draft, map(layout.row, documents)))
        ids, held = [], []
        for document in documents:
            ids.append(str(document.id))
            held.append(layout.row(document))
        columns = list(layout.columns)
        if groups and wanted is not None:
            passages = state.passages(wanted, condition)
            columns += _add_groups(index, passages, ids, held, layout)
        return write_table(draft, path, held, columns, layout.id)


def _add_groups(
    index: Index,
    passages: Passages,
    ids: Sequence[str],
    rows: Sequence[dict[str, Any]],
    layout: Layout,
) -> list[str]:
    """Add the group and the original of duplicates to rows; returns the names of the columns."""
    names = with_columns(layout.columns, GROUP_COLUMNS)
    numbers = {name: number for number, name in enumerate(ids, 2)}  # below the header
    found = groups_of(index, passages, numbers, has_ids=layout.id is not None)
    for name, row in zip(ids, rows, strict=True):
        row.update(zip(names, found.get(name, (None, None)), strict=True))
    return names


def write_table(
    draft: Path,
    path: Path,
    rows: Sequence[Row],
    columns: Iterable[str],
    id_column: str | None = None,
) -> Exported:
    """Write rows to `draft` in the format that the suffix of `path` names.

    Args:
        draft: the file to write.
        path: its final name.
        rows: the rows; their further columns follow the first ones, sorted.
        columns: the first columns, which a mapping names the Arrow types of.
        id_column: the column of ids, which workbooks may hold as numbers.
    """
    if path.suffix.lower() == ".jsonl":
        return Exported(path, _write_lines(draft, rows))
    if path.suffix.lower() == ".csv":
        _write_csv(draft, rows, columns)
        return Exported(path, len(rows))
    if path.suffix.lower() == ".xlsx":
        plain = [{name: _plain(value) for name, value in row.items()} for row in rows]
        cut = write_workbook(draft, _names(rows, columns), plain, id_column)
        return Exported(path, len(rows), cut=cut)
    types = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, None)
    with draft.open("wb") as stream:
        return Exported(path, len(rows), tuple(write_parquet(stream, rows, types)))


def export_hits(index: Index, results: Iterable[Hits], output: str | Path) -> Exported:
    """Write the hits of queries: query, rank, score, passage, and the columns of their documents.

    >>> from semsearch import Document, Index
    >>> from semsearch.explore.export import export_hits
    >>> with Index.create("birds", "hashing:64") as index:
    ...     _ = index.add([Document("a", "a red bird"), Document("b", "a blue one")])
    ...     export_hits(index, [index.search("red", k=1)], "hits.csv").rows
    1

    Args:
        index: the index that was searched.
        results: the hits of each query.
        output: a file, as for `export_index`; all texts are whole documents but the passage.

    Raises:
        ArgumentError: the suffix is unknown, or the file exists or cannot be written.
    """
    path = check_path("output", output)
    with written(path) as draft:
        layout, columns, rows = hit_table(index, results)
        return write_table(draft, path, list(rows), columns, layout.id)


def hit_table(
    index: Index, results: Iterable[Hits], more: Sequence[str] = ()
) -> tuple[Layout, list[str], Iterator[Row]]:
    """The layout of the index, and the columns and rows of hits, read one query after the other.

    Args:
        index: the index that was searched.
        results: the hits of each query.
        more: components of the score to add.
    """
    with index.read() as state:
        layout = Layout.of(state)
    found = ("query", "rank", "score", *more, "passage")
    names = with_columns(layout.columns, found)
    own = [*layout.columns, *sorted(map(layout.column, index.fields()))]

    def rows() -> Iterator[Row]:
        for hits in results:
            with index.read() as state:
                documents = state.documents([hit.document_id for hit in hits])
            for hit in hits:
                document = documents.get(hit.document_id)  # None if it was just removed
                values = hit.to_dict() | hit.scores.to_dict()
                values |= {"query": hits.query, "passage": hit.text}
                row = {} if document is None else layout.row(document)
                yield {name: values.get(key) for name, key in zip(names, found, strict=True)} | row

    return layout, list(dict.fromkeys([*names, *own])), rows()


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A temporary file, which becomes `path` when the block ends without an error.

    Raises:
        ArgumentError: the suffix is unknown, or the file exists or cannot be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ArgumentError(f"{path}: the suffix must be one of {', '.join(SUFFIXES)}")
    if path.exists():
        raise ArgumentError(f"{path} exists; name another file, or remove it")
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
    """Write rows as CSV.

    It begins with a byte order mark, without which Excel takes it for another encoding.
    """
    with file.open("w", encoding="utf-8-sig", newline="") as lines:
        writer = csv.DictWriter(lines, _names(rows, columns))
        writer.writeheader()
        for row in rows:
            writer.writerow({name: csv_cell(value) for name, value in row.items()})


def csv_cell(value: Any) -> str | None:
    """A string or None unchanged; other values as JSON."""
    return value if value is None or isinstance(value, str) else _json(value)


def _names(rows: Iterable[Row], columns: Iterable[str]) -> list[str]:
    """The names of these columns, then of the further ones of rows, sorted."""
    first = list(columns)
    return first + sorted({name for row in rows for name in row}.difference(first))


def _plain(value: Any) -> Any:
    """A string, number or None unchanged; other values as JSON."""
    return value if value is None or isinstance(value, (str, int, float)) else _json(value)


def _json(value: Any) -> str:
    """A value as JSON; arrays become lists."""
    return json.dumps(value, ensure_ascii=False, default=lambda array: array.tolist())


def write_parquet(
    stream: IO[bytes],
    rows: Sequence[Row],
    columns: Mapping[str, str | None],
) -> list[str]:
    """Write rows as Parquet; returns the names of the columns written as JSON text.

    These have values without a common Arrow type (strings and numbers), or objects.

    Args:
        stream: open for writing; it need not be seekable.
        rows: the rows; their further columns follow the first ones, sorted.
        columns: the first columns, with the Arrow names of their types; None to tell from values.
    """
    import pyarrow
    from pyarrow import parquet

    arrays, as_json = {}, []
    for name in _names(rows, columns):
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
