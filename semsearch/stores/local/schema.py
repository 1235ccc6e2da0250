"""The tables of ``index.sqlite``, with column types that check the values they read.

    settings     settings of the whole index
    documents 1─1 texts, the documents' texts
    documents 1─n chunks 1─n vectors n─1 spaces 1─1 snapshots
    documents 1─n field_values n─1 indexed_fields, to find documents by metadata
    fields       kinds of metadata values, to check filters and for messages
    chunks_fts   the words of the chunks, for BM25

The tables hold all primary data, vectors included; files beside the database are derived.

SQLite stores any type in any column, and a damaged or manipulated database can hold anything. The
column types check values, so that the code that reads them need not.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from sqlalchemy import (
    JSON,
    BindParameter,
    Column,
    Computed,
    Connection,
    Dialect,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    ScalarSelect,
    Table,
    TableClause,
    Text,
    bindparam,
    column,
    func,
    select,
    table,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.types import UserDefinedType

from semsearch.errors import ArgumentError
from semsearch.vector_indexes import IndexType

if TYPE_CHECKING:
    from semsearch.analysis import Language

#: Far above any id, count or size, and low enough to add to.
INTEGER_LIMIT = 2**62

T = TypeVar("T")
_Check: TypeAlias = Callable[[Any], Any]


class DamageError(sqlite3.DatabaseError):
    """A stored value is invalid. Stores raise it as an IndexFormatError."""


class StoredInteger(Integer):
    """An integer below `INTEGER_LIMIT`."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """The check of values that are read."""
        return stored_integer


class StoredFloat(Float[float]):
    """A number."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """The check of values that are read."""
        return _float


class StoredText(Text):
    """A text."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """The check of values that are read."""
        return stored_text


class StoredTextOrNull(Text):
    """A text that may be missing."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """The check of values that are read."""
        return stored_text_or_null


class StoredBytes(LargeBinary):
    """Bytes."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """The check of values that are read."""
        return stored_bytes


class AnyValue(UserDefinedType[Any]):
    """A value of any SQLite type, without conversion."""

    cache_ok = True

    def get_col_spec(self, **options: Any) -> str:
        """The declared type of the column, under which SQLite converts nothing."""
        return "BLOB"


def stored_json(text: str, kind: type[T]) -> T:
    """The value of a stored JSON text.

    Raises:
        DamageError: it is invalid, of another type, or contains unpaired surrogates.
    """
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():  # JSON can contain unpaired surrogates, which cannot be printed
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        value = None
    if type(value) is not kind:
        raise DamageError(f"{text[:40]!r} found where JSON of type {kind.__name__} is expected")
    return value


def stored_integer(value: Any) -> Any:
    """An integer below `INTEGER_LIMIT`, checked."""
    if type(value) is int and -INTEGER_LIMIT < value < INTEGER_LIMIT:
        return value
    raise _misplaced(value, "a whole number")


def _float(value: Any) -> Any:
    if type(value) is float or type(value) is int:
        return value
    raise _misplaced(value, "a number")


def stored_text(value: Any) -> Any:
    """A text, checked."""
    if type(value) is str:
        return value
    raise _misplaced(value, "a text")


def stored_text_or_null(value: Any) -> Any:
    """A text or None, checked."""
    if value is None or type(value) is str:
        return value
    raise _misplaced(value, "a text")


def stored_bytes(value: Any) -> Any:
    """Bytes, checked."""
    if type(value) is bytes:
        return value
    raise _misplaced(value, "a vector")


def _misplaced(value: Any, wanted: str) -> DamageError:
    shown = repr(value[:40] if isinstance(value, (str, bytes)) else value)
    return DamageError(f"{shown} found where {wanted} is expected")


#: "SEMS": marks databases of semsearch (PRAGMA application_id).
APPLICATION_ID: Final = 0x53454D53
#: PRAGMA user_version; indexes of other formats are refused.
FORMAT_VERSION: Final = 1

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
)

#: Apart from `documents`, so that filters, which read every document, read no text.
texts = Table(
    "texts",
    tables,
    Column(
        "document_id", ForeignKey("documents.document_id", ondelete="CASCADE"), primary_key=True
    ),
    Column("text", StoredText, nullable=False),
)

chunks = Table(
    "chunks",
    tables,
    # Ids only grow and are never reused: a snapshot covers all ids up to its highest.
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
    Column("analysed", StoredTextOrNull),  # the text that BM25 reads, if it differs
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
    Column("recall", StoredFloat, nullable=False),  # recall@10 against exact search
)

fields = Table(
    "fields",
    tables,
    Column("name", StoredText, primary_key=True),
    Column("kind", StoredText, primary_key=True),
    Column("in_list", StoredInteger, primary_key=True),  # 1 for elements of lists
    Column(
        "documents", StoredInteger, nullable=False
    ),  # the number of documents with a value of this kind
)

indexed_fields = Table(
    "indexed_fields",
    tables,
    Column("field_id", StoredInteger, primary_key=True),
    Column("name", StoredText, nullable=False, unique=True),
)

#: The values of these fields and the elements of their lists; derived.
field_values = Table(
    "field_values",
    tables,
    Column("field_id", ForeignKey("indexed_fields.field_id", ondelete="CASCADE"), primary_key=True),
    Column("value", AnyValue, primary_key=True),  # the beginning of long texts
    Column(
        "document_id",
        ForeignKey("documents.document_id", ondelete="CASCADE"),
        primary_key=True,
        index=True,
    ),
    Column("kind", StoredText, primary_key=True),  # JSON's, with integer for all numbers
    sqlite_with_rowid=False,
)

#: External content: only `chunks` holds the texts. Rows are written together with those of
#: `chunks`, not by triggers, which SQLite before 3.42 refuses under ``trusted_schema = OFF``.
_CREATE_FTS = """
CREATE VIRTUAL TABLE chunks_fts USING fts5(
    words, content='chunks', content_rowid='chunk_id',
    tokenize="{tokenizer}"
)
"""
#: For inserting and deleting; the first column takes FTS5's own commands.
chunks_fts = table("chunks_fts", column("chunks_fts"), column("rowid"), column("words"))


def create_tables(connection: Connection) -> None:
    """Create the tables of an empty database and mark it as an index of this format."""
    tables.create_all(connection, checkfirst=False)
    create_words(connection)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT_VERSION}")


def create_words(connection: Connection, language: Language | None = None) -> None:
    """Create the empty BM25 index, with the tokenizer of a language."""
    from semsearch.analysis import Analyser

    tokenizer = Analyser(language).tokenizer
    connection.exec_driver_sql(_CREATE_FTS.format(tokenizer=tokenizer))


def values(items: Iterable[int | str | None]) -> ScalarSelect[Any]:
    """A list for ``column.in_(values(…))`` in one parameter; SQLite limits their number."""
    return _elements(json.dumps(list(items)))


def values_later(name: str) -> ScalarSelect[Any]:
    """Like `values`, for a statement that is built once: executions pass a list by this name."""
    return _elements(bindparam(name, type_=JSON))


def _elements(array: str | BindParameter[Any]) -> ScalarSelect[Any]:
    each = func.json_each(array).table_valued("value")
    return select(each.c.value).scalar_subquery()


def insert_rows(
    connection: Connection,
    table: TableClause,
    names: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    *,
    key: str | None = None,
) -> None:
    """Insert rows with values of SQLite's own types.

    SQLAlchemy would process each value of each row, which takes longer than writing them.

    Args:
        connection: in a transaction.
        table: the table.
        names: its columns that the rows have.
        rows: the rows.
        key: a unique column; a row with its value is updated.
    """
    if rows:
        quoted = {name: f'"{table.columns[name].name}"' for name in names}
        places = ", ".join("?" * len(names))
        statement = f'INSERT INTO "{table.name}" ({", ".join(quoted.values())}) VALUES ({places})'  # noqa: S608 - ours
        if key is not None:
            others = ", ".join(
                f"{quoted[name]} = excluded.{quoted[name]}" for name in names if name != key
            )
            statement += f" ON CONFLICT ({quoted[key]}) DO UPDATE SET {others}"
        connection.exec_driver_sql(statement, list(rows))


@contextmanager
def read_rows(
    connection: Connection, statement: str, parameters: Sequence[Any]
) -> Iterator[sqlite3.Cursor]:
    """Run a query whose rows are read without SQLAlchemy, which takes longer than SQLite does."""
    raw: Any = connection.connection.driver_connection
    with closing(raw.execute(statement, parameters)) as cursor:
        yield cursor


def checked_columns(rows: Sequence[tuple[Any, ...]], *checks: _Check) -> list[tuple[Any, ...]]:
    """The columns of one or more rows that `read_rows` read, with values that pass these checks.

    Raises:
        DamageError: a value does not.
    """
    columns = list(zip(*rows, strict=True))
    for found, check in zip(columns, checks, strict=True):
        for value in dict(zip(map(type, found), found, strict=True)).values():
            check(value)  # one of each type stands for all
        if check is stored_integer:
            check(min(found))
            check(max(found))
    return columns


_SETTING = select(settings.c.value).where(settings.c.name == bindparam("name"))


def get_setting(connection: Connection, name: str, default: int | None = None) -> int:
    """An integer setting of the index.

    Raises:
        DamageError: it is missing and has no default, or is not an integer.
    """
    value = connection.scalar(_SETTING, {"name": name})
    if value is not None:
        return stored_json(value, int)
    if default is None:
        raise DamageError(f"the setting '{name}' is missing")
    return default


def settings_faults(connection: Connection) -> Iterator[str]:
    """What is wrong with the settings of the index, one description each."""
    names = set(connection.scalars(select(settings.c.name)))
    special = {"index_type": get_index_type, "language": get_language, "corpora": get_corpora}
    for name in sorted(names | {"chunk_max_tokens"}):
        try:
            special[name](connection) if name in special else get_setting(connection, name)
        except DamageError as error:
            yield f"the setting '{name}' cannot be read ({error})"


def put_setting(connection: Connection, name: str, value: object) -> None:
    """Store a setting of the index, as JSON."""
    row = {"name": name, "value": json.dumps(value)}
    connection.execute(
        insert(settings).values(row).on_conflict_do_update(index_elements=["name"], set_=row)
    )


def get_index_type(connection: Connection) -> IndexType:
    """The requested type of vector index, which may be one that is no longer supported."""
    value = connection.scalar(_SETTING, {"name": "index_type"})
    if value is None:
        return IndexType()
    try:
        found = IndexType(**stored_json(value, dict))
        found.supported().checked()
        return found
    except (TypeError, ArgumentError) as error:
        raise DamageError(f"the setting 'index_type' is damaged ({error})") from error


def put_index_type(connection: Connection, wanted: IndexType) -> None:
    """Store the requested type of vector index."""
    put_setting(connection, "index_type", wanted._asdict())


def get_language(connection: Connection) -> Language | None:
    """The language of BM25's stemmer and stop words."""
    value = connection.scalar(_SETTING, {"name": "language"})
    if value is None:
        return None
    from semsearch.analysis import Language

    found = stored_json(value, dict)
    name, stop_words = found.get("name"), found.get("stop_words")
    if not isinstance(name, str) or not isinstance(stop_words, list):
        raise DamageError("the setting 'language' is damaged")
    return Language(name, tuple(map(str, stop_words)))


def put_language(connection: Connection, language: Language) -> None:
    """Store the language of BM25's stemmer and stop words."""
    put_setting(connection, "language", language._asdict())


def get_corpora(connection: Connection) -> dict[str, dict[str, Any]]:
    """How corpora were read."""
    value = connection.scalar(_SETTING, {"name": "corpora"})
    return {} if value is None else stored_json(value, dict)


def next_revision(connection: Connection) -> None:
    """Invalidate what readers have loaded."""
    put_setting(connection, "revision", get_setting(connection, "revision", 0) + 1)
