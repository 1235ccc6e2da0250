"""A corpus: files, folders or standard input, read as documents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from semsearch.arguments import check_callable, check_items, check_path, check_text
from semsearch.corpus.columns import TEXT_NAMES, Roles
from semsearch.corpus.delimited import read_delimited
from semsearch.corpus.dialect import DELIMITERS
from semsearch.corpus.documents import (
    DocumentReader,
    Notify,
    OnBadRow,
    silent,
    table_documents,
)
from semsearch.corpus.formats import CorpusFormat, format_by_content, format_by_name, without_gz
from semsearch.corpus.jsonoutline import nested_object
from semsearch.corpus.jsonrows import read_json_array, read_json_lines
from semsearch.corpus.parquet import read_parquet
from semsearch.corpus.plaintext import read_folder, read_text, text_files
from semsearch.corpus.plugin_readers import plugin_table
from semsearch.corpus.recognition import binary_likeness, text_likeness
from semsearch.corpus.sources import (
    HEAD_BYTES,
    Progress,
    Source,
    file_size,
    open_source,
    reading,
)
from semsearch.corpus.table import Table
from semsearch.corpus.textstream import TextStream, encoding_of
from semsearch.errors import ArgumentError, CorpusError, refuse
from semsearch.records import Document

CorpusPath = str | os.PathLike[str]

_FORMATS = ", ".join(known.value for known in CorpusFormat)


class _Reading(NamedTuple):
    """How files are read; what is None is found out."""

    format: CorpusFormat | None = None
    encoding: str | None = None
    header: bool | None = None
    names: Sequence[str] = ()  # columns that the user named


class Corpus:
    r"""The documents of one or several files, read while they are asked for.

    >>> from pathlib import Path
    >>> from semsearch import Corpus
    >>> _ = Path("films.csv").write_text("id,plot,year\n7,A heist goes wrong.,1995\n")
    >>> [document] = Corpus("films.csv", text_columns="plot")
    >>> document.id, document.text, document.metadata
    ('7', 'A heist goes wrong.', {'year': 1995})

    Args:
        paths: files, folders of .txt and .md files, or ``-`` for standard input; any of them may
            be packed with gzip. A file whose ending a plugin reads is read by that.
        id_column: the column that names the documents; guessed where there is one called so.
        title_column: the column of their titles; guessed likewise.
        text_columns: the column of their texts, or several to be joined by line breaks; guessed
            where it is plain. All other columns become metadata.
        header: whether the first row of a CSV or TSV file names the columns; None guesses. The
            columns of a file without a header are ``column 1``, ``column 2`` …; any column of CSV
            and TSV can be named by its place alone (``"2"``), unless one is called so.
        encoding: of all files but those that begin with a byte order mark; UTF-8 by default.
        format: of all files; by default guessed from their names, or from how they begin.
        on_bad_row: is called with the error of each row that cannot be used. By default it raises
            it; where it returns, reading goes on behind the row.
        notify: is called with one line a file: which columns are used for what.

    Iterating raises CorpusError when a file cannot be read at all. All but standard input can be
    iterated several times.
    """

    def __init__(
        self,
        paths: CorpusPath | Iterable[CorpusPath],
        *,
        id_column: str | None = None,
        title_column: str | None = None,
        text_columns: str | Sequence[str] = (),
        header: bool | None = None,
        encoding: str | None = None,
        format: CorpusFormat | str | None = None,  # noqa: A002 - what it is called everywhere
        on_bad_row: OnBadRow = refuse,
        notify: Notify = silent,
    ) -> None:
        one = isinstance(paths, (str, os.PathLike))
        given = [
            check_path("paths", path)
            for path in ([paths] if one else check_items("paths", paths, "paths"))
        ]
        if not given:
            raise ArgumentError("a corpus needs at least one file")
        if encoding is not None:
            check_text("encoding", encoding)
        check_callable("on_bad_row", on_bad_row)
        check_callable("notify", notify)
        self._paths = [None if str(path) == "-" else path for path in given]
        self._wanted = Roles.wanted(text_columns, title_column, id_column)
        chosen = None if format is None else _format(format)
        self._reading = _Reading(chosen, encoding, header, self._wanted.names)
        self._on_bad_row = on_bad_row
        self._notify = notify
        self._progress = Progress(None)

    @property
    def name(self) -> str:
        """The default name of its index: that of its file or folder."""
        # Not resolved, for a link is called what its user calls it.
        paths = [path and Path(os.path.abspath(path)) for path in self._paths]  # noqa: PTH100
        first = paths[0]
        if first is None:
            name = "stdin"
        elif len(paths) > 1 and all(path and path.parent == first.parent for path in paths):
            name = first.parent.name
        else:
            name = first.name if _is_folder(first) else without_gz(first).stem
        return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "corpus"

    @property
    def fraction_read(self) -> float | None:
        """How much of it is behind the reader, from 0 to 1; None when that cannot be known."""
        return self._progress.fraction

    def __iter__(self) -> DocumentReader:
        return DocumentReader(self._read, self._on_bad_row)

    def _read(self, on_bad_row: OnBadRow) -> Iterator[Document]:
        self._progress = Progress(_total_size(self._paths))
        for path in self._paths:
            if path is not None and _is_folder(path):
                yield from self._documents(self._read_folder(path), on_bad_row)
                continue
            with open_source(path, self._progress) as source:
                table = _read(source, self._reading)
                yield from self._documents(table, on_bad_row)

    def _documents(self, table: Table, on_bad_row: OnBadRow) -> Iterator[Document]:
        return table_documents(table, self._wanted, on_bad_row, self._notify)

    def _read_folder(self, path: Path) -> Table:
        if self._reading.format not in (None, CorpusFormat.TEXT):
            raise CorpusError(f"{path} is a folder; only texts are read from folders")
        return read_folder(path, self._reading.encoding, self._progress)


@contextmanager
def open_table(path: Path, header: bool | None = None) -> Iterator[Table]:
    """The rows of one file, which need not be documents; its format is found out.

    Args:
        path: the file.
        header: whether the first row of CSV names the columns; None guesses.

    Raises:
        CorpusError: there is no such file, or it cannot be read.
    """
    with open_source(path, Progress(None)) as source:
        yield _read(source, _Reading(header=header))


def _format(name: CorpusFormat | str) -> CorpusFormat:
    try:
        return CorpusFormat(name)
    except ValueError:
        raise ArgumentError(f"no such format: {name!r} (formats: {_FORMATS})") from None


def _total_size(paths: Iterable[Path | None]) -> int | None:
    total = 0
    for path in paths:
        if path is None:
            return None
        for file in text_files(path) if _is_folder(path) else (path,):
            size = file_size(file)
            if size is None:
                return None
            total += size
    return total


def _is_folder(path: Path) -> bool:
    with reading(str(path)):
        return path.is_dir()


def _refuse_foreign(source: Source, reading: _Reading) -> None:
    """Raise CorpusError for a file that is no corpus; of a text, the user may say that it is."""
    encoding = encoding_of(source.head, reading.encoding)
    likeness = binary_likeness(source.head, encoding)
    if likeness is None and reading.format is None:
        likeness = text_likeness(
            source.head.decode(encoding, "replace"),
            format_by_name(Path(source.name)),
            columns_known=reading.header is not None or bool(reading.names),
        )
    if likeness:
        raise CorpusError(f"{source.name} {likeness}")


def _refuse_nested(source: Source, reading: _Reading) -> None:
    """Raise CorpusError for a file that is one large object, and not an object a line."""
    head = source.head.decode(encoding_of(source.head, reading.encoding), "replace")
    by_name = None if reading.format else format_by_name(Path(source.name))
    text_columns = reading.names or TEXT_NAMES
    nested = nested_object(
        head.lstrip("\ufeff \t\r\n"),
        is_whole=len(source.head) < HEAD_BYTES,
        has_long_lines=by_name is not CorpusFormat.JSON,
        text_columns=text_columns,
    )
    if nested:
        raise CorpusError(nested.advice(source.name, text_columns))


def _read(source: Source, reading: _Reading) -> Table:
    """The table of an open source."""
    if not source.head:
        raise CorpusError(f"{source.name} is empty")
    if reading.format is None and (table := plugin_table(source)) is not None:
        return table
    text = partial(TextStream, source, reading.encoding)
    encoding, header, names = reading.encoding, reading.header, reading.names
    sniffed = format_by_content(source.head, encoding_of(source.head, encoding))
    found = reading.format or format_by_name(Path(source.name)) or sniffed
    if found is not CorpusFormat.PARQUET or sniffed is not found:
        _refuse_foreign(source, reading)
    match found:
        case CorpusFormat.CSV:
            return read_delimited(text(newline=""), DELIMITERS, header, names)
        case CorpusFormat.TSV:
            return read_delimited(text(newline=""), "\t", header, names)
        case CorpusFormat.JSON if sniffed is not CorpusFormat.JSONL:
            return read_json_array(text(newline="\n"))
        case CorpusFormat.JSON | CorpusFormat.JSONL:
            _refuse_nested(source, reading)
            return read_json_lines(text(newline="\n"))
        case CorpusFormat.PARQUET:
            return read_parquet(source)
        case CorpusFormat.TEXT:
            return read_text(source, encoding, doubted=reading.format is None)
        case None:
            raise CorpusError(f"{source.name}: not in a format that can be read ({_FORMATS})")
