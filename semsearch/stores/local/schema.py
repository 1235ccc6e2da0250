"""The tables of ``index.sqlite``, format 4.

    settings     what holds for the whole index
    documents 1─n chunks 1─n vectors n─1 spaces 1─1 snapshots
    documents 1─n field_values n─1 indexed_fields, to find documents by metadata
    fields       what the metadata holds, to check filters and for messages
    chunks_fts   the words of the chunks, for BM25

Whatever the vectors can be computed from, and the vectors themselves, are here; files beside the
database are derived from it.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Column,
    Computed,
    Connection,
    ForeignKey,
    MetaData,
    Table,
    column,
    table,
)

from semsearch.analysis import Analyser
from semsearch.stores.local.stored import (
    AnyValue,
    StoredBytes,
    StoredFloat,
    StoredInteger,
    StoredText,
    StoredTextOrNull,
)

#: "SEMS": tells our databases from other people's (PRAGMA application_id).
APPLICATION_ID: Final = 0x53454D53
#: PRAGMA user_version; grows with every change that older programs could not read.
FORMAT_VERSION: Final = 5

tables = MetaData()

settings = Table(
    "settings",
    tables,
    Column("name", StoredText, primary_key=True),
    Column("value", StoredText, nullable=False),  # JSON
)

documents = Table(
    "documents",
    tables,
    Column("document_id", StoredInteger, primary_key=True),
    Column("external_id", StoredText, nullable=False, unique=True),
    Column("title", StoredTextOrNull, index=True),
    Column("metadata", StoredText, nullable=False),  # a JSON object
    Column("text_hash", StoredText, nullable=False),
    # The characters of the text that are in no chunk, in order; NULL where they are not known.
    Column("rest", StoredTextOrNull),
)

chunks = Table(
    "chunks",
    tables,
    # Ids only grow and are never used again: a snapshot covers all up to its highest.
    Column("chunk_id", StoredInteger, primary_key=True),
    Column(
        "document_id",
        ForeignKey("documents.document_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("start", StoredInteger, nullable=False),  # characters [start, end) of the document
    Column("end", StoredInteger, nullable=False),
    Column("text", StoredText, nullable=False),
    Column("text_hash", StoredText, nullable=False, index=True),
    Column("analysed", StoredTextOrNull),  # what BM25 reads, where it is not the text itself
    Column("words", StoredText, Computed("coalesce(analysed, text)", persisted=False)),
    sqlite_autoincrement=True,
)

spaces = Table(
    "spaces",
    tables,
    Column("space_id", StoredInteger, primary_key=True),
    Column("name", StoredText, nullable=False, unique=True),
    Column("spec", StoredText, nullable=False),
    Column("fingerprint", StoredText, nullable=False),
    Column("dimension", StoredInteger, nullable=False),
    Column("dtype", StoredText, nullable=False),
    Column("complete", StoredInteger, nullable=False),  # 0 while it lacks vectors of older chunks
    Column("description", StoredText, nullable=False),  # a JSON object
    sqlite_autoincrement=True,
)

vectors = Table(
    "vectors",
    tables,
    Column("chunk_id", ForeignKey("chunks.chunk_id", ondelete="CASCADE"), primary_key=True),
    Column("space_id", ForeignKey("spaces.space_id", ondelete="CASCADE"), primary_key=True),
    Column("vector", StoredBytes, nullable=False),  # little-endian, of the space's dtype
)

snapshots = Table(
    "snapshots",
    tables,
    Column("space_id", ForeignKey("spaces.space_id", ondelete="CASCADE"), primary_key=True),
    Column("generation", StoredInteger, nullable=False),
    Column("file", StoredText, nullable=False),
    Column("bytes", StoredInteger, nullable=False),
    Column("sha256", StoredText, nullable=False),
    Column("vectors", StoredInteger, nullable=False),
    Column("last_chunk_id", StoredInteger, nullable=False),
    Column("kind", StoredText, nullable=False),
    Column("recall", StoredFloat, nullable=False),  # of the 10 nearest, against exact search
)

fields = Table(
    "fields",
    tables,
    Column("name", StoredText, primary_key=True),
    Column("kind", StoredText, primary_key=True),
    Column("in_list", StoredInteger, primary_key=True),  # 1 for elements of lists
    Column("documents", StoredInteger, nullable=False),  # how many have a value of this kind
)

indexed_fields = Table(
    "indexed_fields",
    tables,
    Column("field_id", StoredInteger, primary_key=True),
    Column("name", StoredText, nullable=False, unique=True),
)

#: The values of these fields and of their lists; derived.
field_values = Table(
    "field_values",
    tables,
    Column("field_id", ForeignKey("indexed_fields.field_id", ondelete="CASCADE"), primary_key=True),
    Column("value", AnyValue, primary_key=True),  # of a long text, the beginning
    Column(
        "document_id",
        ForeignKey("documents.document_id", ondelete="CASCADE"),
        primary_key=True,
        index=True,
    ),
    Column("kind", StoredText, primary_key=True),  # JSON's, with integer for all numbers
    sqlite_with_rowid=False,
)

#: External content: the texts stand in `chunks` alone. Its rows are written beside those of
#: `chunks` and not by triggers, which SQLite before 3.42 refuses under ``trusted_schema = OFF``.
_CREATE_FTS = """
CREATE VIRTUAL TABLE chunks_fts USING fts5(
    words, content='chunks', content_rowid='chunk_id',
    tokenize="{tokenizer}"
)
"""
#: For inserting and deleting; the first column takes FTS5's own commands.
chunks_fts = table("chunks_fts", column("chunks_fts"), column("rowid"), column("words"))


def create_tables(connection: Connection) -> None:
    """Make the tables of an empty database and mark it as an index of this format."""
    tables.create_all(connection, checkfirst=False)
    create_words(connection)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT_VERSION}")


def create_words(connection: Connection, tokenizer: str = Analyser().tokenizer) -> None:
    """Make the empty BM25 index."""
    connection.exec_driver_sql(_CREATE_FTS.format(tokenizer=tokenizer))
