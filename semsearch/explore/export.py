"""Writes documents, or passages with their vectors, to files atomically."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from semsearch.errors import ArgumentError, check_path
from semsearch.explore.tables import json_line, write_csv, write_parquet
from semsearch.filters import Condition
from semsearch.index import Index
from semsearch.protocols import Matrix
from semsearch.records import Document, column_name
from semsearch.storage.interface import (
    Reader,
    Selection,
    parse_filter,
    unit_vectors,
    warn_if_none_match,
)
from semsearch.storage.spaces import Space, check_searchable

DOCUMENTS_AT_ONCE = 256

#: The columns of documents that precede their metadata, with the Arrow names of their types.
COLUMNS = {"id": "string", "title": "string", "text": "string"}


class ExportFormat(Enum):
    """Formats of exported files."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"  #: documents only
    DATASETS = "datasets"  #: a folder for Hugging Face's `datasets`
    NUMPY = "numpy"  #: the vectors, and their passages as JSON lines in a second file
    FAISS = "faiss"  #: the same with a flat FAISS index


ENDINGS = {
    ".parquet": ExportFormat.PARQUET,
    ".jsonl": ExportFormat.JSONL,
    ".csv": ExportFormat.CSV,
    ".npy": ExportFormat.NUMPY,
    ".faiss": ExportFormat.FAISS,
}

#: The file in a folder for `datasets`, named after its split.
_SPLIT = "train.parquet"


class Exported(NamedTuple):
    """The result of an export."""

    files: tuple[Path, ...]
    rows: int  #: documents or passages
    as_json: tuple[str, ...] = ()  #: columns written as JSON text because no Parquet type fits


class Block(NamedTuple):
    """A block of passages as rows, and their vectors."""

    rows: list[dict[str, Any]]
    vectors: Matrix


class Contents(NamedTuple):
    """The documents of one state, optionally filtered."""

    state: Reader
    condition: Condition | None
    total: int  #: the number of documents
    #: Called with the number of documents read, and `total`.
    on_progress: Callable[[int, int], None]

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """The documents as rows: id, title, text, and metadata."""
        for block in self._documents():
            for document in block.values():
                row = {"id": document.id, "title": document.title, "text": document.text}
                for name, value in document.metadata.items():
                    row[column_name(name, COLUMNS)] = value
                yield row

    def passages(self, space: Space) -> Iterator[Block]:
        """The passages of all documents in order, with their vectors.

        Raises:
            SpaceError: the space was dropped.
        """
        check_searchable(space, self.state.spaces())
        for block in self._documents():
            passages = self.state.passages_of(list(block))
            rows = [
                {"id": name, "start": passage.start, "end": passage.end, "text": passage.text}
                for name in block
                for passage in passages.get(name, ())
            ]
            hashes = [one.text_hash for name in block for one in passages.get(name, ())]
            yield Block(rows, unit_vectors(self.state, space, hashes))

    def _documents(self) -> Iterator[Mapping[str, Document]]:
        """Blocks of documents by id, in insertion order."""
        done = 0
        for documents in self.state.scan(DOCUMENTS_AT_ONCE):
            block = {str(document.id): document for document in documents}
            if self.condition is not None:
                wanted = Selection(ids=list(block), condition=self.condition)
                block = {name: block[name] for name in self.state.ids(wanted)}
            if block:
                yield block
                done += len(block)
                self.on_progress(done, self.total)


def export_index(
    index: Index,
    output: str | Path,
    *,
    vectors: bool = False,
    format: ExportFormat | str | None = None,  # noqa: A002 - the usual name
    space: str | None = None,
    where: str | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Exported:
    """Write the documents of an index, or its passages with their vectors.

    Documents are read in blocks from one committed state. Files appear only when they are complete.

    >>> from semsearch import Document, Index, export_index
    >>> with Index.create("fish", "hashing:64") as index:
    ...     _ = index.add([Document("a", "a red fish"), Document("b", "a blue one")])
    ...     exported = export_index(index, "fish.npy")
    >>> [file.name for file in exported.files]
    ['fish.npy', 'fish.npy.jsonl']
    >>> import numpy
    >>> numpy.load("fish.npy").shape
    (2, 64)

    Args:
        index: the index.
        output: a file, or a folder for ``datasets``.
        vectors: write a row for each passage, with its vector, instead of each document. ``numpy``
            and ``faiss`` always do.
        format: ``parquet``, ``jsonl``, ``csv``, ``datasets``, ``numpy`` or ``faiss``; None uses
            the suffix of `output`: .parquet, .jsonl, .csv, .npy or .faiss.
        space: the name of the embedding space of the vectors; None for the first.
        where: a filter over metadata.
        on_progress: called with the number of documents written and their total.

    Raises:
        ArgumentError: the format is unknown, or a file exists or cannot be written.
        FilterError: the filter is invalid.
        SpaceError: the space does not exist, or is not complete yet.
    """
    path = check_path("output", output)
    kind = _by_suffix(path) if format is None else ExportFormat(format)
    vectors = vectors or kind in (ExportFormat.NUMPY, ExportFormat.FAISS)
    if vectors and kind is ExportFormat.CSV:
        raise ArgumentError("CSV cannot hold vectors; write them as Parquet or JSON lines")
    if space is not None and not vectors:
        raise ArgumentError("a space can only be named for vectors, not for documents")
    targets = _targets(path, kind)
    for target in targets:
        if target.exists():
            raise ArgumentError(f"{target} exists; name another file, or remove it")
    wanted = index.space(space, complete=True) if vectors else None
    with _written(path, targets) as files, index.read() as state:
        condition = None if where is None else parse_filter(state, where)
        total = state.count(Selection(condition=condition))
        if condition is not None and not total:
            warn_if_none_match(state, condition)
        contents = Contents(state, condition, total, on_progress)
        if wanted is not None:
            write = VECTOR_WRITERS.get(kind, write_vectors_as_parquet)
            return Exported(targets, write(files, contents.passages(wanted), wanted.dimension))
        return Exported(targets, total, _write_documents(files[0], kind, contents))


def _write_documents(file: Path, kind: ExportFormat, contents: Contents) -> tuple[str, ...]:
    """Write the documents; returns the columns written as JSON text."""
    if kind is ExportFormat.JSONL:
        with file.open("w", encoding="utf-8", newline="\n") as lines:
            lines.writelines(map(json_line, contents.rows()))
    elif kind is ExportFormat.CSV:
        with file.open("w", encoding="utf-8", newline="") as lines:
            write_csv(lines, contents.rows, COLUMNS)
    else:
        with file.open("wb") as stream:
            return tuple(write_parquet(stream, contents.rows, COLUMNS))
    return ()


def _by_suffix(path: Path) -> ExportFormat:
    kind = ENDINGS.get(path.suffix.lower())
    if kind is None:
        raise ArgumentError(
            f"{path}: the suffix must be one of {', '.join(ENDINGS)}, unless --format names one"
        )
    return kind


def _targets(path: Path, kind: ExportFormat) -> tuple[Path, ...]:
    if kind is ExportFormat.DATASETS:
        return (path / _SPLIT,)
    if kind in (ExportFormat.NUMPY, ExportFormat.FAISS):
        return (path, path.with_name(f"{path.name}.jsonl"))
    return (path,)


@contextmanager
def _written(path: Path, targets: Sequence[Path]) -> Iterator[list[Path]]:
    """Temporary files, which replace the targets when the block ends without an error.

    Raises:
        ArgumentError: they cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".export-") as folder:
            drafts = [Path(folder, target.name) for target in targets]
            yield drafts
            for draft, target in zip(drafts, targets, strict=True):
                target.parent.mkdir(exist_ok=True)
                draft.replace(target)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror or error}") from error


def write_vectors_as_json(files: Sequence[Path], blocks: Iterable[Block], dimension: int) -> int:
    """Write a line for each passage; returns their number."""
    del dimension
    count = 0
    with files[0].open("w", encoding="utf-8", newline="\n") as lines:
        for block in blocks:
            for row, vector in zip(block.rows, block.vectors.tolist(), strict=True):
                lines.write(json_line({**row, "vector": vector}))
            count += len(block.rows)
    return count


def write_vectors_as_parquet(files: Sequence[Path], blocks: Iterable[Block], dimension: int) -> int:
    """Write a row for each passage; returns their number."""
    import pyarrow
    from pyarrow import parquet

    text, number = pyarrow.string(), pyarrow.int64()
    passages = pyarrow.schema([("id", text), ("start", number), ("end", number), ("text", text)])
    vector = pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), dimension))
    count = 0
    with parquet.ParquetWriter(files[0], passages.append(vector)) as writer:
        for block in blocks:
            rows = pyarrow.Table.from_pylist(block.rows, passages)
            values = pyarrow.array(block.vectors.ravel())
            vectors = pyarrow.FixedSizeListArray.from_arrays(values, dimension)
            writer.write_table(rows.append_column(vector, vectors))
            count += len(block.rows)
    return count


def write_numpy(files: Sequence[Path], blocks: Iterable[Block], dimension: int) -> int:
    """Write a float32 matrix, and the passages of its rows as JSON lines; returns their number."""
    file, passages = files
    vectors = [numpy.empty((0, dimension), numpy.float32)]
    with passages.open("w", encoding="utf-8", newline="\n") as lines:
        for block in blocks:
            vectors.append(block.vectors)
            lines.writelines(map(json_line, block.rows))
    matrix = numpy.concatenate(vectors)
    with file.open("wb") as stream:
        numpy.save(stream, matrix)
    return len(matrix)


def write_faiss(files: Sequence[Path], blocks: Iterable[Block], dimension: int) -> int:
    """Write a flat inner product index, and the passages of its ids; returns their number."""
    import faiss

    index = faiss.IndexFlatIP(dimension)
    file, passages = files
    with passages.open("w", encoding="utf-8", newline="\n") as lines:
        for block in blocks:
            index.add(block.vectors)
            lines.writelines(map(json_line, block.rows))
    with file.open("wb") as stream:
        faiss.write_index(index, faiss.PyCallbackIOWriter(stream.write))
    return int(index.ntotal)


#: Formats without a writer here are Parquet.
VECTOR_WRITERS = {
    ExportFormat.JSONL: write_vectors_as_json,
    ExportFormat.NUMPY: write_numpy,
    ExportFormat.FAISS: write_faiss,
}
