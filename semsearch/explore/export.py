"""Writes documents, or passages with their vectors, to files atomically."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from semsearch.arguments import check_callable, check_choice, check_path
from semsearch.errors import ArgumentError
from semsearch.explore.contents import COLUMNS, Contents
from semsearch.explore.tables import json_line, write_csv, write_parquet
from semsearch.explore.vector_files import (
    write_faiss,
    write_numpy,
    write_vectors_as_json,
    write_vectors_as_parquet,
)
from semsearch.index import Index
from semsearch.storage.filtering import parse_filter, warn_if_none_match
from semsearch.storage.interface import Selection


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

VECTOR_WRITERS = {
    ExportFormat.JSONL: write_vectors_as_json,
    ExportFormat.NUMPY: write_numpy,
    ExportFormat.FAISS: write_faiss,
}

#: The file in a folder for `datasets`, named after its split.
_SPLIT = "train.parquet"


class Exported(NamedTuple):
    """The result of an export."""

    files: tuple[Path, ...]
    rows: int  #: documents or passages
    as_json: tuple[str, ...] = ()  #: columns written as JSON text because no Parquet type fits


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
    check_callable("on_progress", on_progress)
    kind = _by_suffix(path) if format is None else check_choice("format", ExportFormat, format)
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
