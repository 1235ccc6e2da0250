"""Reads corpora: tables, documents, folders, databases, DataFrames.

The names below are loaded on first use: queries need no reader of files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semsearch.corpus.corpus import Corpus, good_rows, open_table
    from semsearch.corpus.frames import frame_documents, frame_text_columns
    from semsearch.corpus.plaintext import text_lines
    from semsearch.corpus.table import Row, Table

__all__ = [
    "Corpus",
    "Row",
    "Table",
    "frame_documents",
    "frame_text_columns",
    "good_rows",
    "open_table",
    "text_lines",
]

_MODULES = {
    **dict.fromkeys(("Corpus", "good_rows", "open_table"), "corpus"),
    **dict.fromkeys(("frame_documents", "frame_text_columns"), "frames"),
    **dict.fromkeys(("Row", "Table"), "table"),
    "text_lines": "plaintext",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
