"""Recognises files that are not a corpus, or not in the format of their suffix."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from semsearch.corpus.delimited import guess_dialect, without_declaration
from semsearch.corpus.formats import CONTROLS, DOCUMENTS, CorpusFormat
from semsearch.corpus.header import USUAL_NAMES

LINES_AS_TEXTS = "--input-format lines reads each line as a text"

_UNPACK = "unpack it first (only gzip is read compressed)"
_TO_TEXT = "convert it to plain text (.txt) first"
_TEXT_ONLY = "semsearch reads only text"
_OFFICE = "an office document"

SQLITE_MAGIC = b"SQLite format 3\0"


class Likeness(NamedTuple):
    """What a file looks like, what to do about it, and the format to read it in, if any."""

    what: str
    advice: str
    format: CorpusFormat | None = None

    def __str__(self) -> str:
        return f"looks like {self.what}: {self.advice}"


def _readable(what: str, found: CorpusFormat) -> Likeness:
    return Likeness(what, f"add --input-format {found.value}", found)


_MAGIC = {
    b"%PDF-": _readable("a PDF document", CorpusFormat.PDF),
    b"{\\rtf": Likeness("a rich text document", _TO_TEXT),
    b"\xd0\xcf\x11\xe0": Likeness(
        "an encrypted or old office document",
        "save it without a password, in a current format",
    ),
    SQLITE_MAGIC: Likeness("an SQLite database", 'choose its rows with --sql "SELECT …"'),
    b"PAR1": _readable("a Parquet file", CorpusFormat.PARQUET),
    b"ARROW1": _readable("an Arrow file", CorpusFormat.ARROW),
    b"\x89PNG": Likeness("an image", _TEXT_ONLY),
    b"\xff\xd8\xff": Likeness("an image", _TEXT_ONLY),
    b"GIF8": Likeness("an image", _TEXT_ONLY),
    b"BZh": Likeness("a bzip2 file", _UNPACK),
    b"\xfd7zXZ\0": Likeness("an xz file", _UNPACK),
    b"\x28\xb5\x2f\xfd": Likeness("a zstd file", _UNPACK),
    b"7z\xbc\xaf": Likeness("a 7z archive", _UNPACK),
    b"Rar!": Likeness("a RAR archive", _UNPACK),
}
ZIP_MAGIC = b"PK\x03\x04"
#: Precedes the name of a file in a ZIP archive.
_ZIPPED_FILE = rb"PK\x03\x04.{26}"
#: By the names of files in an archive, or the contents of its first file.
_ZIPPED = {
    rb"application/epub\+zip": _readable("an e-book (EPUB)", CorpusFormat.EPUB),
    _ZIPPED_FILE + b"word/": _readable("a Word document (DOCX)", CorpusFormat.DOCX),
    _ZIPPED_FILE + b"xl/": _readable("an Excel workbook (XLSX)", CorpusFormat.XLSX),
    _ZIPPED_FILE + b"ppt/": _readable("a presentation (PPTX)", CorpusFormat.PPTX),
    b"opendocument.spreadsheet": Likeness("a spreadsheet (ODS)", "save the sheet as CSV first"),
    b"opendocument.": Likeness("an OpenDocument text (ODT)", _TO_TEXT),
    rb"\[Content_Types\].xml": Likeness(_OFFICE, "save it as CSV or plain text first"),
    b"": Likeness("a ZIP archive", "unpack it first, and name the files in it"),
}
_TAR = slice(257, 262), b"ustar"

# Of random bytes read as UTF-8, about half cannot be decoded and a tenth are control characters.
_MAX_UNDECODABLE, _MAX_CONTROLS = 0.1, 0.03
_MIN_UTF_16_CHARACTERS = 8

_ANY_CASE = re.IGNORECASE | re.DOTALL
_HTML = re.compile(r"\s*(?:<!--.{0,1000}?-->\s*)?<(?:!doctype html|html|head|body)\b", _ANY_CASE)
_XML = re.compile(r"\s*(?:<\?xml\b|<[a-z][\w:.-]*+[^<>]*+>(?=.*</))", _ANY_CASE)
_ARRAY_OF_OBJECTS = re.compile(r'\s*\[\s*\{\s*"')
_SMART = re.compile(r"\s*\.I[ \t]*\S+[ \t]*\r?\n\.[A-Z]\b")

# (?=(x?))\1 is x?+, which Python before 3.11.5 matches wrongly if x is a group (CPython 106052).
_LOG_LINE = re.compile(
    r"""
    \[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?=((?:[ ][AP]M)?))\1
        (?=((?:Z|[ ]?[-+]\d\d:?\d\d|[ ](?:UTC|GMT|[A-Z]{1,3}[SD]?T)\b)?))\2\]?[ ]+\S
    | (?:<\d+>)?[A-Z][a-z]{2}[ ]{1,2}\d{1,2}[ ]\d\d:\d\d:\d\d[ ]\S    # syslog
    | \S+[ ]\S+[ ]\S+[ ]\[\d\d/[A-Z][a-z]{2}/\d{4}:                    # web servers
    | \[[ ]*\d+\.\d{3,}\][ ]                                           # Linux
    | \[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\]?[ ]*[: ][ ]*\S
    """,
    re.VERBOSE,
)
_LOG_LINES_LOOKED_AT = 200

#: One text per line: at least this many lines, most of which have several words and begin with a
#: capital letter or a digit; the median is no longer than LINE_CHARACTERS.
MIN_TEXTS, MOST, LINE_CHARACTERS, MIN_UNSPACED = 10, 0.9, 200, 8
_OPENING_QUOTES = "\"'“„‘«¿¡"


def binary_likeness(head: bytes, encoding: str) -> Likeness | None:
    """What a file that begins with these bytes is, if it is not text.

    Args:
        head: its first bytes, uncompressed.
        encoding: the encoding to read it in.
    """
    for magic, likeness in _MAGIC.items():
        if head.startswith(magic):
            return likeness
    if head.startswith(ZIP_MAGIC):
        return next(
            likeness for mark, likeness in _ZIPPED.items() if re.search(mark, head, re.DOTALL)
        )
    place, mark = _TAR
    if head[place] == mark:
        return Likeness("a tar archive", _UNPACK)
    text = head.decode(encoding, "replace")
    for name, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        if encoding == "utf-8" and _is_utf_16(head[first::2], head[1 - first :: 2]):
            return Likeness("UTF-16 without a byte order mark", f"add --encoding {name}")
    undecodable, controls = text.count("\ufffd"), len(CONTROLS.findall(text))
    if undecodable > _MAX_UNDECODABLE * len(text) and controls > _MAX_CONTROLS * len(text):
        return Likeness("binary data", _TEXT_ONLY)
    return None


def _is_utf_16(high: bytes, low: bytes) -> bool:
    """Whether these high and low bytes are text of one script, with spaces, digits or newlines."""
    if 0 not in high or 0 in low or len(low) < _MIN_UTF_16_CHARACTERS:
        return False
    return sum(count for _, count in Counter(high).most_common(2)) >= MOST * len(high)


def text_likeness(
    text: str, by_name: CorpusFormat | None, *, columns_known: bool = False
) -> Likeness | None:
    """What a text that begins like this is, if it is not in the format of its suffix.

    Args:
        text: its beginning.
        by_name: the format of its suffix.
        columns_known: whether the user described its columns, so that it is a table.
    """
    if _SMART.match(text):
        return Likeness(
            "a SMART collection",
            "evaluate its folder with: semsearch eval ir --data FOLDER; to index it, "
            "convert its entries to JSON lines",
        )
    if _HTML.match(text):
        return _readable("HTML", CorpusFormat.HTML)
    if by_name in DOCUMENTS:
        return None
    if _XML.match(text):
        return Likeness("XML", "convert its records to CSV or JSON lines first")
    lines = whole_lines(text)
    if is_log(lines):
        return Likeness("a log", LINES_AS_TEXTS)
    if by_name not in (None, CorpusFormat.JSON) and (rows := _json_rows(text, lines)):
        what, name = rows
        if by_name is not name:
            return Likeness(what, f"add --input-format {name.value}")
    if by_name or columns_known or text.lstrip().startswith(("{", "[")) or is_table(lines):
        return None
    return Likeness(
        "plain text, not a table",
        f"--input-format text reads it as one document, {LINES_AS_TEXTS}; "
        "--input-format csv reads it as a table",
    )


def lines_remark(text: str) -> str:
    """A remark on a text that is read as one document but seems to hold many; else empty."""
    lines = whole_lines(text)
    if is_log(lines):
        return f"looks like a log and is read as one document; {LINES_AS_TEXTS}"
    if rows := _json_rows(text, lines) or _table_rows(lines):
        what, name = rows
        return (
            f"looks like {what} and is read as one document; "
            f"--input-format {name.value} reads its rows"
        )
    if _has_one_text_per_line(lines):
        return f"looks like one text per line and is read as one document; {LINES_AS_TEXTS}"
    return ""


def _json_rows(text: str, lines: Sequence[str]) -> tuple[str, CorpusFormat] | None:
    """The kind of JSON in a text, and its format, regardless of its suffix."""
    if _ARRAY_OF_OBJECTS.match(text):
        return "a JSON array", CorpusFormat.JSON
    if lines and _is_object(lines[0]):
        return "JSON lines", CorpusFormat.JSONL
    return None


def _table_rows(lines: Sequence[str]) -> tuple[str, CorpusFormat] | None:
    """The same for tables: lines with the same number of tabs, or a usual header."""
    tabs = [line.strip().count("\t") for line in lines if line.strip()]
    if len(tabs) >= MIN_TEXTS and tabs[0] > 0 and tabs.count(tabs[0]) >= MOST * len(tabs):
        return "a table", CorpusFormat.TSV
    records = _records(lines)
    if len(records) < MIN_TEXTS or len(records[0]) < 2:
        return None
    is_header = any(cell.strip().lower() in USUAL_NAMES for cell in records[0])
    even = sum(len(record) == len(records[0]) for record in records)
    return ("a table", CorpusFormat.CSV) if is_header and even >= MOST * len(records) else None


def _has_one_text_per_line(lines: Sequence[str]) -> bool:
    """Whether lines are independent texts, unlike those of paragraphs, lists and code."""
    texts = [line.strip() for line in lines if line.strip()]
    if len(texts) < MIN_TEXTS or len(texts) < MOST * len(lines):
        return False
    lengths = sorted(map(len, texts))
    beginnings = sum(
        text[0] in _OPENING_QUOTES or (text[0].isalnum() and not text[0].islower())
        for text in texts
    )
    words = sum(" " in text or len(text) >= MIN_UNSPACED for text in texts)
    return (
        lengths[len(lengths) // 2] <= LINE_CHARACTERS
        and beginnings >= MOST * len(texts)
        and words >= MOST * len(texts)
    )


def is_log(lines: Sequence[str]) -> bool:
    """Whether most lines, including the first, begin like those of log files."""
    found = [
        _LOG_LINE.match(line) is not None for line in lines[:_LOG_LINES_LOOKED_AT] if line.strip()
    ]
    return len(found) > 1 and found[0] and 3 * sum(found) >= 2 * len(found)


def is_table(lines: Sequence[str]) -> bool:
    """Whether lines are plausible records: several cells each, or a usual column name."""
    records = _records(lines)
    if not records or any(cell.strip().lower() in USUAL_NAMES for cell in records[0]):
        return True
    width = len(records[0])
    return width > 1 and 2 * sum(len(record) == width for record in records) >= len(records)


def _records(lines: Sequence[str]) -> list[list[str]]:
    records: list[list[str]] = []
    with suppress(csv.Error):  # a stray quote, or a truncated record at the end
        rows, delimiters = without_declaration(lines)
        records.extend(filter(None, guess_dialect(rows, delimiters).reader(rows)))
    return records


def whole_lines(text: str) -> list[str]:
    """The complete lines in the beginning of a file."""
    lines = text.splitlines(keepends=True)
    return lines[:-1] if len(lines) > 1 and not lines[-1].endswith("\n") else lines


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
