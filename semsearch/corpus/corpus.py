"""A corpus: files, folders, URLs, databases or standard input, read as documents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from semsearch.corpus.celltypes import DATES, DECIMALS
from semsearch.corpus.conversion import converter
from semsearch.corpus.database import open_query
from semsearch.corpus.documents import (
    DocumentReader,
    Items,
    Notify,
    OnBadRow,
    Readings,
    silent,
    table_documents,
)
from semsearch.corpus.files import FolderFiles
from semsearch.corpus.folder import Folder, find_files, folder_documents, is_table
from semsearch.corpus.formats import CorpusFormat, without_gz
from semsearch.corpus.readers import read
from semsearch.corpus.roles import Reading, Roles, resolve
from semsearch.corpus.sources import (
    Location,
    Progress,
    file_of,
    file_size,
    is_url,
    is_web,
    open_source,
    reading,
    recorded_name,
    shown_url,
)
from semsearch.corpus.table import COLUMNS, Row, Table
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    CorpusError,
    check_items,
    check_path,
    check_text,
    check_texts,
    raise_error,
    shown,
)
from semsearch.records import check_characters

CorpusPath = str | os.PathLike[str]

#: Options that select the rows of a file: with others, it is another corpus.
_SELECTORS = {"records", "sheet", "sql", "lines"}


class Corpus:
    r"""The documents of one or several files, read lazily.

    >>> from pathlib import Path
    >>> from semsearch import Corpus
    >>> _ = Path("films.csv").write_text("id,plot,year\n7,A heist goes wrong.,1995\n")
    >>> [document] = Corpus("films.csv", text_columns="plot")
    >>> document.id, document.text, document.metadata
    ('7', 'A heist goes wrong.', {'year': 1995})

    Args:
        paths: files, folders, URLs of files (http, https), or ``-`` for standard input; any of
            them may be compressed with gzip. With `sql`, SQLite files or database URLs as used by
            SQLAlchemy.
        id_column: the column with the ids of documents; guessed by its name.
        title_column: the column with their titles; guessed by its name.
        text_columns: the column with their texts, or several to be joined by line breaks; guessed
            by its name. All other columns become metadata.
        header: whether the first row of a CSV or TSV file names the columns; None to guess. The
            columns of a file without a header are ``column 1``, ``column 2`` …; any column of CSV
            and TSV can be named by its position (``"2"``), unless a column has that name.
        encoding: of all files except those with a byte order mark; UTF-8 by default.
        records: the path to the records in nested JSON: keys joined by dots (``data.articles``),
            or ``.`` if the whole value is an object of records.
        sheet: the name of the sheet of a workbook; the first by default.
        sql: the query that selects the rows of a database.
        lines: whether each line of a text file is a document, instead of the whole file.
        delimiter: the sign between the cells of a CSV file; guessed.
        skip_lines: how many lines of a CSV or TSV file are above its table; guessed.
        decimal: the sign before decimals in CSV and TSV, ``,`` or ``.``; guessed for each column.
        dates: ``day-first`` or ``month-first``, for dates such as 6/5/2025 in CSV and TSV; guessed
            for each column. Columns that may be either stay text.
        exclude: files of folders to exclude, as .gitignore patterns, in addition to those in the
            folder's file .semsearchignore.
        on_bad_row: called with the error of each row that cannot be used. By default it raises
            the error; if it returns, the row is skipped.
        notify: called with one line per file about how its columns are used.

    Iteration raises CorpusError if a file cannot be read at all. It can be repeated, except on
    standard input.
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
        records: str | None = None,
        sheet: str | None = None,
        sql: str | None = None,
        lines: bool = False,
        delimiter: str | None = None,
        skip_lines: int | None = None,
        decimal: str | None = None,
        dates: str | None = None,
        exclude: Sequence[str] = (),
        on_bad_row: OnBadRow = raise_error,
        notify: Notify = silent,
    ) -> None:
        one = isinstance(paths, (str, os.PathLike))
        given: list[Path | str] = [
            path if isinstance(path, str) and is_url(path) else check_path("paths", path)
            for path in ([paths] if one else check_items("paths", paths, "paths"))
        ]
        if not given:
            raise ArgumentError("a corpus needs at least one file")
        named = {"encoding": encoding, "records": records, "sheet": sheet, "sql": sql}
        for argument, value in named.items():
            if value is not None:
                check_text(argument, value)
        self._paths: list[Location] = [None if str(path) == "-" else path for path in given]
        if delimiter is not None and len(delimiter) != 1:
            raise ArgumentError(f"a delimiter is a single character, not {shown(delimiter)}")
        for argument, choice, known in (("decimal", decimal, DECIMALS), ("dates", dates, DATES)):
            if choice is not None and choice not in known:
                raise ArgumentError(f"{argument} must be {' or '.join(known)}, not {shown(choice)}")
        wanted = Roles.wanted(text_columns, title_column, id_column)
        options: dict[str, Any] = {
            **named,
            "id_column": id_column,
            "title_column": title_column,
            "text_columns": list(wanted.text) or None,
            "header": header,
            "lines": lines or None,
            "delimiter": delimiter,
            "skip_lines": skip_lines,
            "decimal": decimal,
            "dates": dates,
        }
        self._options = {name: value for name, value in options.items() if value is not None}
        self._exclude = check_texts("exclude", exclude)
        self._on_bad_row = on_bad_row
        self._notify = notify
        self._progress = Progress()

    @property
    def name(self) -> str:
        """The default name of its index, after its file or folder."""
        first, *others = self._paths
        if first is None:
            name = "stdin"
        elif isinstance(first, str):
            name = without_gz(file_of(first)).stem or shown_url(first).partition("://")[2]
        else:
            first = first.absolute()  # not resolved: a link keeps its own name
            name = first.name if _is_folder(first) else without_gz(first).stem
            folders = {isinstance(path, Path) and path.absolute().parent for path in others}
            if folders == {first.parent}:
                name = first.parent.name
        return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "corpus"

    @property
    def fraction_read(self) -> float | None:
        """How much has been read, from 0 to 1; None if unknown."""
        return self._progress.fraction

    def __iter__(self) -> DocumentReader:
        files, readings = FolderFiles(), Readings()
        return DocumentReader(self._items(files, readings), self._on_bad_row, files, readings)

    def _items(self, files: FolderFiles, readings: Readings) -> Items:
        opened = [(path, *self._options_for(path, readings)) for path in self._paths]
        folders: dict[Location, Folder] = {
            path: self._folder(path, options, how.wanted)
            for path, options, how in opened
            if how.sql is None and isinstance(path, Path) and _is_folder(path)
        }
        is_sql = any(how.sql is not None for _, _, how in opened)
        self._progress = Progress(None if is_sql else _total_size(self._paths, folders))
        try:
            for path, options, how in opened:
                name = recorded_name(path)
                if path in folders:
                    readings.note(name, options)
                    yield from folder_documents(
                        folders[path], how, files, self._progress, self._notify
                    )
                    continue
                try:
                    with self._open(path, how) as table:
                        roles = resolve(table, how.wanted)
                        columns = {
                            "text_columns": list(roles.text),
                            "id_column": roles.id or "",
                            "title": roles.title,  # these two are for exports
                            "columns": list(table.columns),
                        }
                        readings.note(name, options | ({} if table.is_document else columns))
                        yield from table_documents(table, roles, self._notify)
                except BadRowError as error:  # damaged at its beginning, or further down
                    yield error
        finally:
            converter.stop()

    def _options_for(self, path: Location, readings: Readings) -> tuple[dict[str, Any], Reading]:
        """The given arguments for a file, or else those of earlier runs; how it is read."""
        earlier = readings.earlier.get(recorded_name(path), {})
        if any(self._options[it] != earlier.get(it) for it in _SELECTORS & self._options.keys()):
            earlier = {}
        options = {**earlier, **self._options}
        wanted = Roles(
            tuple(options.get("text_columns", ())),
            options.get("title_column"),
            self._options.get("id_column"),
            earlier.get("id_column"),
        )
        return options, Reading(wanted, **{name: options.get(name) for name in Reading._fields[1:]})

    @contextmanager
    def _open(self, path: Location, how: Reading) -> Iterator[Table]:
        """The table of a single file or database."""
        if how.sql is not None:
            if path is None or (isinstance(path, str) and is_web(path)):
                raise CorpusError("--sql needs an SQLite file or the URL of a database")
            with open_query(path, how.sql) as table:
                yield table
        elif isinstance(path, str) and not is_web(path):
            raise CorpusError(
                f"{shown_url(path)}: files are read from a path, or an http or https URL; the "
                'rows of a database are chosen with --sql "SELECT …"'
            )
        else:
            with open_source(path, self._progress) as source:
                yield read(source, how)

    def _folder(self, path: Path, options: Mapping[str, Any], wanted: Roles) -> Folder:
        if {"records", "sheet", "lines"} & options.keys():
            raise CorpusError(
                f"{path} is a folder: --records, --sheet and --lines are for a single file"
            )
        folder = find_files(path, self._exclude)
        if not wanted.fit_documents and not any(map(is_table, folder.files.values())):
            raise CorpusError(
                f"{path} has no tables; documents only have the columns {', '.join(COLUMNS)}"
            )
        return folder


def _total_size(paths: Iterable[Location], folders: Mapping[Location, Folder]) -> int | None:
    """The size of all files; None if one is a pipe or a URL."""
    total = 0
    for path in paths:
        for file in folders[path].files.values() if path in folders else [path]:
            with suppress(CorpusError):  # reported when it is read
                size = file_size(file) if isinstance(file, Path) else None
                if size is None:
                    return None
                total += size
    return total


@contextmanager
def open_table(path: Path, *, header: bool | None = None) -> Iterator[Table]:
    """The rows of a file that is a table, whatever its columns; its format is detected.

    Args:
        path: the file; a text, such as ``pairs.txt``, is read as CSV.
        header: whether the first row of CSV or TSV names the columns; None to guess.

    Raises:
        CorpusError: the file does not exist or cannot be read.
    """
    with open_source(path, Progress()) as source:
        is_text = source.format in (None, CorpusFormat.TEXT) and source.head[:1] not in b"{["
        named = CorpusFormat.CSV if is_text else None
        yield read(source, Reading(header=header), format=named)


def good_rows(table: Table) -> Iterator[Row]:
    """The rows of a table, for callers that need all of them.

    Raises:
        BadRowError: a row cannot be read, or holds bytes that cannot be decoded.
    """
    for row in table.rows:
        if isinstance(row, BadRowError):
            raise row
        for column, value in row.fields.items():
            if isinstance(value, str):
                check_characters(value, f"column '{column}'", row.source)
        yield row


def _is_folder(path: Path) -> bool:
    with reading(str(path)):
        return path.is_dir()
