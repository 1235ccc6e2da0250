"""Reads the texts to search in: CSV, TSV, JSON lines, JSON, Parquet, folders of text, frames."""

from semsearch.corpus.corpus import Corpus, open_table
from semsearch.corpus.formats import CorpusFormat
from semsearch.corpus.frames import frame_documents
from semsearch.corpus.lines import text_lines

__all__ = ["Corpus", "CorpusFormat", "frame_documents", "open_table", "text_lines"]
