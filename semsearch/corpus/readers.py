"""Chooses the reader of an open file, or rejects the file and says what it looks like.

Other packages can add readers: an entry point of `GROUP`, named like the suffix of the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import NamedTuple

from semsearch.corpus.arrow import read_arrow, read_parquet
from semsearch.corpus.columns import TEXT_NAMES
from semsearch.corpus.converters import read_document
from semsearch.corpus.delimited import DELIMITERS, read_delimited
from semsearch.corpus.formats import (
    BINARY_TABLES,
    DOCUMENTS,
    CorpusFormat,
    format_by_content,
    format_by_name,
    without_gz,
)
from semsearch.corpus.jsonoutline import nested_object
from semsearch.corpus.jsonrows import read_json_array, read_json_lines, read_records
from semsearch.corpus.plaintext import read_lines, read_text
from semsearch.corpus.recognition import ZIP_MAGIC, Likeness, binary_likeness, text_likeness
from semsearch.corpus.sources import HEAD_BYTES, Source, identifier_of
from semsearch.corpus.table import Row, Table
from semsearch.corpus.textstream import TextStream, encoding_of
from semsearch.corpus.workbook import read_workbook
from semsearch.errors import BadRowError, CorpusError
from semsearch.plugins import Plugin, find_plugin

GROUP = "semsearch.readers"

#: The names of the formats, for messages.
FORMATS = ", ".join(known.value for known in CorpusFormat)


class Reading(NamedTuple):
    """How files are read; None means detected."""

    format: CorpusFormat | None = None
    encoding: str | None = None
    header: bool | None = None
    names: Sequence[str] = ()  # columns named by the user
    records: str | None = None  # the path to them in JSON
    sheet: str | None = None  # of a workbook


def read(source: Source, reading: Reading) -> Table | BadRowError:
    """The table of an open source; an error in place of a damaged one.

    Raises:
        CorpusError: it cannot be read, or not with these options.
    """
    if not source.head:
        raise CorpusError(f"{source.name} is empty")
    if reading.format is None and (table := _plugin_table(source)) is not None:
        return table
    sniffed = format_by_content(source.head, encoding_of(source.head, reading.encoding))
    found = _format(source, reading, sniffed)
    if isinstance(found, BadRowError):
        return found
    _check_options(source, reading, found)
    try:
        return _read(source, reading, found, sniffed)
    except BadRowError as error:
        if found in BINARY_TABLES:
            return error
        raise  # none of the first rows can be used


def _read(
    source: Source,
    reading: Reading,
    found: CorpusFormat | None,
    sniffed: CorpusFormat | None,
) -> Table:
    encoding, header, names = reading.encoding, reading.header, reading.names
    text = partial(TextStream, source, encoding)
    match found:
        case CorpusFormat.CSV:
            return read_delimited(text(newline=""), DELIMITERS, header, names)
        case CorpusFormat.TSV:
            return read_delimited(text(newline=""), "\t", header, names)
        case CorpusFormat.JSON | CorpusFormat.JSONL:
            return _read_json(
                source,
                reading,
                array=found is CorpusFormat.JSON and sniffed is not CorpusFormat.JSONL,
            )
        case CorpusFormat.PARQUET:
            return read_parquet(source)
        case CorpusFormat.ARROW:
            return read_arrow(source)
        case CorpusFormat.XLSX:
            return read_workbook(source, reading.sheet, header, names)
        case CorpusFormat.LINES:
            return read_lines(text(newline=None))
        case CorpusFormat.TEXT:
            return read_text(source, encoding, doubted=reading.format is None)
        case None:
            raise CorpusError(f"{source.name}: not in a supported format ({FORMATS})")
        case _:
            return read_document(source, identifier_of(source.name), found, encoding)


def _read_json(source: Source, reading: Reading, *, array: bool) -> Table:
    text = TextStream(source, reading.encoding, newline="\n")
    if reading.records is not None:
        return read_records(text, reading.records)
    if array:
        return read_json_array(text)
    _refuse_nested(source, reading)
    return read_json_lines(text)


def _format(
    source: Source, reading: Reading, sniffed: CorpusFormat | None
) -> CorpusFormat | BadRowError | None:
    """The format of a file; the user may declare a text file to be in another one.

    Raises:
        CorpusError: it is not a corpus, or not in the format of its suffix.
    """
    named = reading.format or source.format
    if named in DOCUMENTS and named is not CorpusFormat.TEXT:
        return named  # if it is damaged, that is a bad row
    likeness = _likeness(source, reading)
    if likeness is None:
        return named or sniffed
    if likeness.format is not None and named in (None, likeness.format):
        return likeness.format
    is_some_zip = likeness.format is None and source.head.startswith(ZIP_MAGIC)
    if named is CorpusFormat.XLSX and is_some_zip:
        return named  # its first bytes need not show its contents
    if named in BINARY_TABLES:
        return BadRowError(source.name, str(likeness))
    raise CorpusError(f"{source.name} {likeness}")


def _likeness(source: Source, reading: Reading) -> Likeness | None:
    encoding = encoding_of(source.head, reading.encoding)
    likeness = binary_likeness(source.head, encoding)
    if likeness is None and reading.format is None and reading.records is None:
        return text_likeness(
            source.head.decode(encoding, "replace"),
            source.format,
            columns_known=reading.header is not None or bool(reading.names),
        )
    return likeness


def _check_options(source: Source, reading: Reading, found: CorpusFormat | None) -> None:
    """Raise CorpusError for options that do not apply to the format."""
    if reading.records is not None and found not in (CorpusFormat.JSON, CorpusFormat.JSONL):
        raise CorpusError(f"{source.name} is not JSON: --records is for nested JSON")
    if reading.sheet is not None and found is not CorpusFormat.XLSX:
        raise CorpusError(f"{source.name} is not a workbook: --sheet is for XLSX")


def _refuse_nested(source: Source, reading: Reading) -> None:
    """Raise CorpusError for a file that is one large object, not one object per line."""
    head = source.head.decode(encoding_of(source.head, reading.encoding), "replace")
    by_name = None if reading.format else source.format
    text_columns = reading.names or TEXT_NAMES
    nested = nested_object(
        head.lstrip("\ufeff \t\r\n"),
        is_whole=len(source.head) < HEAD_BYTES,
        has_long_lines=by_name is not CorpusFormat.JSON,
        text_columns=text_columns,
    )
    if nested:
        raise CorpusError(nested.advice(source.name, text_columns))


def _plugin_table(source: Source) -> Table | None:
    """The table of a file from the plugin for its suffix.

    None if there is no such plugin, or semsearch reads such files itself.

    Raises:
        CorpusError: the plugin fails, now or later while its rows are read.
    """
    path = PurePath(source.name)
    ending = without_gz(path).suffix.lower().removeprefix(".")
    if not ending or format_by_name(path) is not None:
        return None
    plugin = find_plugin(GROUP, ending)
    if plugin is None:
        return None
    with plugin.running(source.name, CorpusError):
        table = plugin.load(source)
        if not isinstance(table, Table):
            raise TypeError(f"returned {type(table).__name__}, not a Table")
    return replace(table, rows=_plugin_rows(plugin, table))


def _plugin_rows(plugin: Plugin, table: Table) -> Iterator[Row | BadRowError]:
    with plugin.running(table.name, CorpusError):
        for row in table.rows:
            if not isinstance(row, (Row, BadRowError)):
                raise TypeError(f"yielded {type(row).__name__}, not a Row")
            yield row
