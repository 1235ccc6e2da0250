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

#: The suffixes of formats, besides that with the name of the format.
_SUFFIXES = {
    CorpusFormat.JSONL: ("jsonl", "ndjson"),
    CorpusFormat.ARROW: ("arrow", "arrows", "feather"),
    CorpusFormat.XLSX: ("xlsx", "xlsm"),
    CorpusFormat.TEXT: ("txt", "md"),
    CorpusFormat.HTML: ("html", "htm", "xhtml"),
}
_BY_SUFFIX = {
    f".{suffix}": kind for kind in CorpusFormat for suffix in _SUFFIXES.get(kind, (kind.value,))
}


def without_gz(path: PurePath) -> PurePath:
    """``corpus.csv`` for ``corpus.csv.gz``."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def format_by_name(path: PurePath) -> CorpusFormat | None:
    """The format of a file by its suffix."""
    return _BY_SUFFIX.get(without_gz(path).suffix.lower())


class DetectedFormat(NamedTuple):
    """What a file is by its first bytes, its format if it is readable, and else what to do."""

    what: str
    format: CorpusFormat | None = None
    advice: str = "it cannot be read"

    def __str__(self) -> str:
        advice = f"rename it to .{self.format.value}" if self.format else self.advice
        return f"looks like {self.what}: {advice}"


_OLD_OFFICE = DetectedFormat(
    "an encrypted or old office document",
    advice="save it without a password, in a current format",
)
_SQLITE = DetectedFormat("an SQLite database", advice='choose its rows with --sql "SELECT …"')
_PACKED = DetectedFormat("an archive", advice="unpack it first (only gzip is read compressed)")
_MAGIC = {
    b"%PDF-": DetectedFormat("a PDF document", CorpusFormat.PDF),
    b"PAR1": DetectedFormat("a Parquet file", CorpusFormat.PARQUET),
    b"ARROW1": DetectedFormat("an Arrow file", CorpusFormat.ARROW),
    b"\xd0\xcf\x11\xe0": _OLD_OFFICE,
    b"SQLite format 3\0": _SQLITE,
    **dict.fromkeys((b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!"), _PACKED),
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), DetectedFormat("an image")),
}
_ZIP_MAGIC = b"PK\x03\x04"
#: By the names of files in an archive, or the contents of its first file.
_IN_ZIP = {
    b"application/epub+zip": DetectedFormat("an e-book (EPUB)", CorpusFormat.EPUB),
    b"word/": DetectedFormat("a Word document (DOCX)", CorpusFormat.DOCX),
    b"xl/": DetectedFormat("an Excel workbook (XLSX)", CorpusFormat.XLSX),
    b"ppt/": DetectedFormat("a presentation (PPTX)", CorpusFormat.PPTX),
    b"": _PACKED,
}
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|title|body)\b", re.IGNORECASE)


def detect_format(head: bytes) -> DetectedFormat | None:
    """What a file that begins with these bytes is, by its magic number; None if it has none."""
    for magic, detected in _MAGIC.items():
        if head.startswith(magic):
            return detected
    if head.startswith(_ZIP_MAGIC):
        return next(detected for mark, detected in _IN_ZIP.items() if mark in head)
    return DetectedFormat("HTML", CorpusFormat.HTML) if _HTML.match(head) else None


def is_foreign(head: bytes, named: CorpusFormat | None) -> DetectedFormat | None:
    """What a file is by its first bytes, if it is not in the format that is named for it.

    The first bytes of a ZIP archive need not show which kind it is.
    """
    detected = detect_format(head)
    if detected is None or detected.format is named:
        return None
    zipped = (CorpusFormat.XLSX, CorpusFormat.DOCX, CorpusFormat.PPTX, CorpusFormat.EPUB)
    is_any_zip = head.startswith(_ZIP_MAGIC) and detected is _PACKED and named in zipped
    is_text = detected.format is CorpusFormat.HTML and named is CorpusFormat.TEXT
    return None if is_any_zip or is_text else detected
