"""Which format a file has: by its name, else by how it begins."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import PurePath


class CorpusFormat(Enum):
    """The formats that a corpus can be read from; each of them may be packed with gzip."""

    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    JSON = "json"
    PARQUET = "parquet"
    TEXT = "text"


_BY_SUFFIX = {
    ".csv": CorpusFormat.CSV,
    ".tsv": CorpusFormat.TSV,
    ".jsonl": CorpusFormat.JSONL,
    ".ndjson": CorpusFormat.JSONL,
    ".json": CorpusFormat.JSON,
    ".parquet": CorpusFormat.PARQUET,
    ".txt": CorpusFormat.TEXT,
    ".md": CorpusFormat.TEXT,
}

_PARQUET_MAGIC = b"PAR1"
# Characters that no text has: those of executables, archives, office documents.
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def without_gz(path: PurePath) -> PurePath:
    """``corpus.csv`` of ``corpus.csv.gz``."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def format_by_name(path: PurePath) -> CorpusFormat | None:
    """The format that a file's suffix stands for."""
    return _BY_SUFFIX.get(without_gz(path).suffix.lower())


def format_by_content(head: bytes, encoding: str) -> CorpusFormat | None:
    """The format of a file that begins with these bytes; None for what is no text."""
    if head.startswith(_PARQUET_MAGIC):
        return CorpusFormat.PARQUET
    text = head.decode(encoding, "replace").lstrip()
    if text.startswith("{"):
        return CorpusFormat.JSONL
    if text.startswith("["):
        return CorpusFormat.JSON
    return None if _BINARY.search(text) else CorpusFormat.CSV
