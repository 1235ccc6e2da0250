"""Detects the format of a file by its suffix or its first bytes."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import PurePath


class CorpusFormat(Enum):
    """The formats of corpora; each may be compressed with gzip."""

    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    JSON = "json"
    PARQUET = "parquet"
    XLSX = "xlsx"
    TEXT = "text"
    HTML = "html"
    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"


#: Documents: one text, or several by page or section.
DOCUMENTS = (
    CorpusFormat.TEXT,
    CorpusFormat.HTML,
    CorpusFormat.PDF,
    CorpusFormat.DOCX,
    CorpusFormat.PPTX,
)

#: The suffixes of formats, besides that with the name of the format.
_SUFFIXES = {
    CorpusFormat.JSONL: ("jsonl", "ndjson"),
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


_PACKED = "an archive; unpack it first (only gzip is read compressed)"
#: What a file is by its first bytes: its format, or a description if it cannot be read.
_MAGIC: dict[bytes, CorpusFormat | str] = {
    b"%PDF-": CorpusFormat.PDF,
    b"PAR1": CorpusFormat.PARQUET,
    b"\xd0\xcf\x11\xe0": "an encrypted or old office document; save it in a current format",
    b"SQLite format 3\0": 'an SQLite database; choose its rows with --sql "SELECT …"',
    **dict.fromkeys((b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!"), _PACKED),
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), "an image"),
}
_ZIP_MAGIC = b"PK\x03\x04"
#: By the names of files in an archive.
_IN_ZIP = {
    b"word/": CorpusFormat.DOCX,
    b"xl/": CorpusFormat.XLSX,
    b"ppt/": CorpusFormat.PPTX,
}
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|title|body)\b", re.IGNORECASE)


def detect_format(head: bytes) -> CorpusFormat | str | None:
    """The format of a file by its first bytes, or what it is instead; None if they tell nothing."""
    for magic, detected in _MAGIC.items():
        if head.startswith(magic):
            return detected
    if head.startswith(_ZIP_MAGIC):
        return next((detected for mark, detected in _IN_ZIP.items() if mark in head), _PACKED)
    return CorpusFormat.HTML if _HTML.match(head) else None


def foreign(head: bytes, named: CorpusFormat | None) -> str | None:
    """What a file looks like by its first bytes, if it is not in the format that is named for it.

    The first bytes of a ZIP archive need not show which kind it is.
    """
    detected = detect_format(head)
    is_some_zip = detected is _PACKED and head.startswith(_ZIP_MAGIC) and named in _IN_ZIP.values()
    is_text = detected is CorpusFormat.HTML and named is CorpusFormat.TEXT
    if detected is None or detected is named or is_some_zip or is_text:
        return None
    if isinstance(detected, CorpusFormat):
        detected = f"{detected.value.upper()}; rename it to .{detected.value}"
    return f"looks like {detected}"
