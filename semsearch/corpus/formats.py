"""Detects the format of a file, by its name or first bytes."""

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
#: Tables in binary formats.
BINARY_TABLES = (CorpusFormat.PARQUET, CorpusFormat.ARROW, CorpusFormat.XLSX)
#: Formats that are ZIP archives.
ZIPPED = (CorpusFormat.XLSX, CorpusFormat.DOCX, CorpusFormat.PPTX, CorpusFormat.EPUB)


_OFFICE = "application/vnd.openxmlformats-officedocument"

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

_BY_MEDIA_TYPE = {
    "text/csv": CorpusFormat.CSV,
    "text/tab-separated-values": CorpusFormat.TSV,
    "application/json": CorpusFormat.JSON,
    "application/jsonl": CorpusFormat.JSONL,
    "application/x-ndjson": CorpusFormat.JSONL,
    "application/vnd.apache.parquet": CorpusFormat.PARQUET,
    "application/vnd.apache.arrow.file": CorpusFormat.ARROW,
    "application/vnd.apache.arrow.stream": CorpusFormat.ARROW,
    "text/markdown": CorpusFormat.TEXT,
    "text/html": CorpusFormat.HTML,
    "application/xhtml+xml": CorpusFormat.HTML,
    "application/pdf": CorpusFormat.PDF,
    "application/epub+zip": CorpusFormat.EPUB,
    f"{_OFFICE}.spreadsheetml.sheet": CorpusFormat.XLSX,
    f"{_OFFICE}.wordprocessingml.document": CorpusFormat.DOCX,
    f"{_OFFICE}.presentationml.presentation": CorpusFormat.PPTX,
}

#: Control characters, which occur in binary files, not in texts.
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def without_gz(path: PurePath) -> PurePath:
    """``corpus.csv`` for ``corpus.csv.gz``."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def format_by_name(path: PurePath) -> CorpusFormat | None:
    """The format of a file by its suffix."""
    return _BY_SUFFIX.get(without_gz(path).suffix.lower())


def format_by_media_type(media_type: str) -> CorpusFormat | None:
    """The format of a media type declared by a web server; plain text may be anything."""
    return _BY_MEDIA_TYPE.get(media_type)


def format_by_content(head: bytes, encoding: str) -> CorpusFormat | None:
    """The format of a text that begins with these bytes; None for binary data."""
    text = head.decode(encoding, "replace").lstrip()
    if text.startswith("{"):
        return CorpusFormat.JSONL
    if text.startswith("["):
        return CorpusFormat.JSON
    return None if CONTROLS.search(text) else CorpusFormat.CSV
