"""Chooses the reader of an open file, or rejects the file and says what it is."""

from __future__ import annotations

from pathlib import PurePath

from semsearch.corpus.conversion import MODULES, is_readable, read_document
from semsearch.corpus.delimited import DELIMITERS, read_delimited
from semsearch.corpus.encodings import TextStream, encoding_of
from semsearch.corpus.formats import DOCUMENTS, CorpusFormat, detect_format, foreign
from semsearch.corpus.jsonrows import read_json
from semsearch.corpus.parquet import read_parquet
from semsearch.corpus.plaintext import read_lines, read_text
from semsearch.corpus.roles import Reading
from semsearch.corpus.sources import Source, is_url
from semsearch.corpus.table import Table
from semsearch.corpus.workbook import read_workbook
from semsearch.errors import BadRowError, CorpusError, MissingExtraError
from semsearch.records import ESCAPED_BYTE

_JSON = (CorpusFormat.JSON, CorpusFormat.JSONL)
_WITH_HEADER = (CorpusFormat.CSV, CorpusFormat.TSV, CorpusFormat.XLSX)
_BINARY_TABLES = (CorpusFormat.PARQUET, CorpusFormat.XLSX)


def read(
    source: Source,
    reading: Reading,
    identifier: str | None = None,
    format: CorpusFormat | None = None,  # noqa: A002 - the usual name
) -> Table:
    """The table of an open source.

    A document has this id, or else the name of its source; a format is that of the suffix or the
    first bytes unless it is given.

    Raises:
        BadRowError: it is damaged.
        CorpusError: it cannot be read, or not with these options.
        MissingExtraError: the extra ``files`` is not installed.
    """
    if not source.head:
        raise CorpusError(f"{source.name} is empty")
    found = _format(source, reading, format or source.format)
    table = _table(source, reading, identifier, found)
    if any(map(ESCAPED_BYTE.search, table.columns)):
        raise CorpusError(f"{source.name}: the names of its columns cannot be decoded")
    if not table.head:
        advice = "; if its first row is data, add --no-header" if found in _WITH_HEADER else ""
        raise CorpusError(f"{table.name} has no rows{advice}")
    return table


def _table(source: Source, reading: Reading, identifier: str | None, found: CorpusFormat) -> Table:
    if reading.records is not None and found not in _JSON:
        raise CorpusError(f"{source.name} is not JSON: --records is for nested JSON")
    if reading.sheet is not None and found is not CorpusFormat.XLSX:
        raise CorpusError(f"{source.name} is not a workbook: --sheet is for XLSX")
    if not is_readable(found):
        raise MissingExtraError(MODULES[found], "files", f"reading {found.value.upper()}")
    if identifier is None:
        identifier = source.name if is_url(source.name) else PurePath(source.name).as_posix()
    match found:
        case CorpusFormat.JSON | CorpusFormat.JSONL:
            text = TextStream(source, reading.encoding, newline="\n")
            is_line = found is CorpusFormat.JSONL or _beginning(source, reading).startswith("{")
            return read_json(text, reading.records, is_array=not is_line)
        case CorpusFormat.CSV | CorpusFormat.TSV:
            delimiters = DELIMITERS if found is CorpusFormat.CSV else "\t"
            text = TextStream(source, reading.encoding, newline="")
            return read_delimited(text, delimiters, reading)
        case CorpusFormat.PARQUET:
            return read_parquet(source)
        case CorpusFormat.XLSX:
            return read_workbook(source, reading)
        case CorpusFormat.TEXT if reading.lines:
            return read_lines(source, reading.encoding)
        case CorpusFormat.TEXT:
            return read_text(source, identifier, reading.encoding)
        case _:
            return read_document(source, identifier, found, reading.encoding)


def _format(source: Source, reading: Reading, named: CorpusFormat | None) -> CorpusFormat:
    """The format of a file: as it is named, or by its first bytes.

    Raises:
        BadRowError: the first bytes of a binary table are those of another format.
        CorpusError: those of a text are, or no format is found.
    """
    if reading.lines:
        return CorpusFormat.TEXT
    if named in DOCUMENTS and named is not CorpusFormat.TEXT:
        return named  # if it is damaged, that is a bad row
    if named is None and isinstance(detected := detect_format(source.head), CorpusFormat):
        return detected
    if appearance := foreign(source.head, named):
        if named in _BINARY_TABLES:
            raise BadRowError(source.name, appearance)
        raise CorpusError(f"{source.name} {appearance}")
    if named is not None:
        return named
    first, *_ = _beginning(source, reading).splitlines() or [""]
    if first.startswith(("{", "[")):
        return CorpusFormat.JSONL if first.startswith("{") else CorpusFormat.JSON
    has_options = reading.wanted.names or reading.header is not None
    if has_options or any(mark in first for mark in DELIMITERS):
        return CorpusFormat.CSV
    raise CorpusError(
        f"{source.name}: its format is unknown; give it the suffix of its format, such as .txt "
        "or .csv"
    )


def _beginning(source: Source, reading: Reading) -> str:
    encoding = encoding_of(source.head, reading.encoding)
    return source.head.decode(encoding, "replace").lstrip("\ufeff \t\r\n")
