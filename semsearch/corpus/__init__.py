"""Reads corpora: CSV, TSV, JSON lines, JSON, Parquet, documents, folders, DataFrames."""

from semsearch.corpus.corpus import Corpus, good_rows, open_table
from semsearch.corpus.formats import CorpusFormat
from semsearch.corpus.frames import frame_documents, frame_text_columns
from semsearch.corpus.plaintext import text_lines
from semsearch.corpus.sources import Source
from semsearch.corpus.table import Row, Table

__all__ = [
    "Corpus",
    "CorpusFormat",
    "Row",
    "Source",
    "Table",
    "frame_documents",
    "frame_text_columns",
    "good_rows",
    "open_table",
    "text_lines",
]
