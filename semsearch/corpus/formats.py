"""Detects the format of a file by its suffix or its first bytes."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import PurePath
from typing import NamedTuple


class CorpusFormat(Enum):
    """The formats of corpora; each may be compressed with gzip."""

    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"
    XLSX = "xlsx"
    LINES = "lines"
    TEXT = "text"
    HTML = "html"
    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    EPUB = "epub"


#: Documents: one text, or several by page or section.
DOCUMENTS = (
    CorpusFormat.TEXT,
    CorpusFormat.HTML,
    CorpusFormat.PDF,
    CorpusFormat.DOCX,
    CorpusFormat.PPTX,
    CorpusFormat.EPUB,
)
#: Formats that are ZIP archives.
_ZIPPED = (CorpusFormat.XLSX, CorpusFormat.DOCX, CorpusFormat.PPTX, CorpusFormat.EPUB)


_BY_SUFFIX = {
    ".csv": CorpusFormat.CSV,
    ".tsv": CorpusFormat.TSV,
    ".jsonl": CorpusFormat.JSONL,
    ".ndjson": CorpusFormat.JSONL,
    ".json": CorpusFormat.JSON,
    ".parquet": CorpusFormat.PARQUET,
    ".arrow": CorpusFormat.ARROW,
    ".arrows": CorpusFormat.ARROW,
    ".feather": CorpusFormat.ARROW,
    ".xlsx": CorpusFormat.XLSX,
    ".xlsm": CorpusFormat.XLSX,
    ".txt": CorpusFormat.TEXT,
    ".md": CorpusFormat.TEXT,
    ".html": CorpusFormat.HTML,
    ".htm": CorpusFormat.HTML,
    ".xhtml": CorpusFormat.HTML,
    ".pdf": CorpusFormat.PDF,
    ".docx": CorpusFormat.DOCX,
    ".pptx": CorpusFormat.PPTX,
    ".epub": CorpusFormat.EPUB,
}


def without_gz(path: PurePath) -> PurePath:
    """``corpus.csv`` for ``corpus.csv.gz``."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def format_by_name(path: PurePath) -> CorpusFormat | None:
    """The format of a file by its suffix."""
    return _BY_SUFFIX.get(without_gz(path).suffix.lower())


class DetectedFormat(NamedTuple):
    """What a file is by its first bytes, what to do about it, and its format if it is readable."""

    what: str
    advice: str
    format: CorpusFormat | None = None

    def __str__(self) -> str:
        return f"looks like {self.what}: {self.advice}"


def _readable(what: str, found: CorpusFormat) -> DetectedFormat:
    return DetectedFormat(what, f"add --input-format {found.value}", found)


_UNPACK = "unpack it first (only gzip is read compressed)"
_TO_TEXT = "convert it to plain text (.txt) first"
_NOT_TEXT = "semsearch reads only text"
_MAGIC = {
    b"%PDF-": _readable("a PDF document", CorpusFormat.PDF),
    b"{\\rtf": DetectedFormat("a rich text document", _TO_TEXT),
    b"\xd0\xcf\x11\xe0": DetectedFormat(
        "an encrypted or old office document", "save it without a password, in a current format"
    ),
    b"SQLite format 3\0": DetectedFormat(
        "an SQLite database", 'choose its rows with --sql "SELECT …"'
    ),
    b"PAR1": _readable("a Parquet file", CorpusFormat.PARQUET),
    b"ARROW1": _readable("an Arrow file", CorpusFormat.ARROW),
    b"\x89PNG": DetectedFormat("an image", _NOT_TEXT),
    b"\xff\xd8\xff": DetectedFormat("an image", _NOT_TEXT),
    b"GIF8": DetectedFormat("an image", _NOT_TEXT),
    b"BZh": DetectedFormat("a bzip2 file", _UNPACK),
    b"\xfd7zXZ\0": DetectedFormat("an xz file", _UNPACK),
    b"\x28\xb5\x2f\xfd": DetectedFormat("a zstd file", _UNPACK),
    b"7z\xbc\xaf": DetectedFormat("a 7z archive", _UNPACK),
    b"Rar!": DetectedFormat("a RAR archive", _UNPACK),
}
_ZIP_MAGIC = b"PK\x03\x04"
#: By the names of files in an archive, or the contents of its first file.
_IN_ZIP = {
    b"application/epub+zip": _readable("an e-book (EPUB)", CorpusFormat.EPUB),
    b"word/": _readable("a Word document (DOCX)", CorpusFormat.DOCX),
    b"xl/": _readable("an Excel workbook (XLSX)", CorpusFormat.XLSX),
    b"ppt/": _readable("a presentation (PPTX)", CorpusFormat.PPTX),
    b"opendocument.": DetectedFormat("an OpenDocument file", "save it as CSV or plain text first"),
    b"": DetectedFormat("a ZIP archive", "unpack it first, and name the files in it"),
}
_TAR = slice(257, 262), b"ustar"
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|title|body)\b", re.IGNORECASE)


def detect_format(head: bytes) -> DetectedFormat | None:
    """What a file that begins with these bytes is, by its magic number; None if it has none."""
    for magic, detected in _MAGIC.items():
        if head.startswith(magic):
            return detected
    if head.startswith(_ZIP_MAGIC):
        return next(detected for mark, detected in _IN_ZIP.items() if mark in head)
    place, mark = _TAR
    if head[place] == mark:
        return DetectedFormat("a tar archive", _UNPACK)
    return _readable("HTML", CorpusFormat.HTML) if _HTML.match(head) else None


def is_foreign(head: bytes, named: CorpusFormat | None) -> DetectedFormat | None:
    """What a file is by its first bytes, if it is not in the format that is named for it.

    The first bytes of a ZIP archive need not show which kind it is.
    """
    detected = detect_format(head)
    if detected is None or detected.format is named or named is CorpusFormat.LINES:
        return None
    is_any_zip = head.startswith(_ZIP_MAGIC) and detected.format is None
    is_text = detected.format is CorpusFormat.HTML and named is CorpusFormat.TEXT
    return None if (is_any_zip and named in _ZIPPED) or is_text else detected
