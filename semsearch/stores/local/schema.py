"""The tables of ``index.sqlite``, and the types that check what is read from them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
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

#: No id, count or size comes near it, and one more than any of them still fits into SQLite.
INTEGER_LIMIT = 2**62

T = TypeVar("T")
_Check: TypeAlias = Callable[[Any], Any]


class DamageError(sqlite3.DatabaseError):
    """A stored value is none that semsearch wrote. It leaves a store as an IndexFormatError."""


class StoredInteger(Integer):
    """A whole number that can be counted on from."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _integer


class StoredFloat(Float[float]):
    """A number."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _float


class StoredText(Text):
    """A text."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _text


class StoredTextOrNull(Text):
    """A text that may be missing."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _text_or_null


class StoredBytes(LargeBinary):
    """Bytes."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _bytes


class AnyValue(UserDefinedType[Any]):
    """A value of any of SQLite's types, which is kept as it is."""

    cache_ok = True

    def get_col_spec(self, **options: Any) -> str:
        """What the column is declared as: nothing is converted in it."""
        return "BLOB"


def stored_json(text: str, kind: type[T]) -> T:
    """The value of a stored JSON text.

    Raises:
        DamageError: it is none, or not of that kind, or holds what UTF-8 has no form for.
    """
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():  # an unpaired surrogate can be written in JSON, but not printed
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        value = None
    if type(value) is not kind:
        raise DamageError(f"{text[:40]!r} stands where JSON of type {kind.__name__} belongs")
    return value


def _integer(value: Any) -> Any:
    if type(value) is int and -INTEGER_LIMIT < value < INTEGER_LIMIT:
        return value
    raise _misplaced(value, "a whole number")


def _float(value: Any) -> Any:
    if type(value) is float or type(value) is int:
        return value
    raise _misplaced(value, "a number")


def _text(value: Any) -> Any:
    if type(value) is str:
        return value
    raise _misplaced(value, "a text")


def _text_or_null(value: Any) -> Any:
    if value is None or type(value) is str:
        return value
    raise _misplaced(value, "a text")


def _bytes(value: Any) -> Any:
    if type(value) is bytes:
        return value
    raise _misplaced(value, "a vector")


def _misplaced(value: Any, wanted: str) -> DamageError:
    shown = repr(value[:40] if isinstance(value, (str, bytes)) else value)
    return DamageError(f"{shown} stands where {wanted} belongs")


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


def create_words(connection: Connection, language: Language | None = None) -> None:
    """Create the empty BM25 index, with the tokenizer of a language."""
    from semsearch.analysis import Analyser

    tokenizer = Analyser(language).tokenizer
    connection.exec_driver_sql(_CREATE_FTS.format(tokenizer=tokenizer))


def values(items: Iterable[int | str | None]) -> ScalarSelect[Any]:
    """For the right side of ``column.in_(values(…))``; SQLite limits how many `?` there can be."""
    return _elements(json.dumps(list(items)))


def values_later(name: str) -> ScalarSelect[Any]:
    """The same for a statement that is built once: each execution brings a list of that name."""
    return _elements(bindparam(name, type_=JSON))


def _elements(array: str | BindParameter[Any]) -> ScalarSelect[Any]:
    each = func.json_each(array).table_valued("value")
    return select(each.c.value).scalar_subquery()


def insert_rows(
    connection: Connection,
    table: TableClause,
    names: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert rows whose values are in SQLite's own types.

    SQLAlchemy looks at each value of each row; over a corpus that takes longer than the writing.
    """
    if rows:
        columns = ", ".join(f'"{table.columns[name].name}"' for name in names)
        places = ", ".join("?" * len(names))
        statement = f'INSERT INTO "{table.name}" ({columns}) VALUES ({places})'  # noqa: S608 - ours
        connection.exec_driver_sql(statement, list(rows))


_SETTING = select(settings.c.value).where(settings.c.name == bindparam("name"))


def get_setting(connection: Connection, name: str, default: int | None = None) -> int:
    """A number that holds for the whole index.

    Raises:
        DamageError: it is missing and has no default, or is no number.
    """
    value = connection.scalar(_SETTING, {"name": name})
    if value is not None:
        return stored_json(value, int)
    if default is None:
        raise DamageError(f"the setting '{name}' is missing")
    return default


def put_setting(connection: Connection, name: str, value: int) -> None:
    """Remember a number for the whole index."""
    _put(connection, name, value)


def _put(connection: Connection, name: str, value: object) -> None:
    row = {"name": name, "value": json.dumps(value)}
    connection.execute(
        insert(settings).values(row).on_conflict_do_update(index_elements=["name"], set_=row)
    )


def get_index_type(connection: Connection) -> IndexType:
    """The vector index that was asked for."""
    value = connection.scalar(_SETTING, {"name": "index_type"})
    if value is None:
        return IndexType()
    try:
        return IndexType(**stored_json(value, dict)).checked()
    except (TypeError, ArgumentError) as error:
        raise DamageError(f"the setting 'index_type' is damaged ({error})") from error


def put_index_type(connection: Connection, wanted: IndexType) -> None:
    """Remember which vector index is asked for."""
    _put(connection, "index_type", wanted._asdict())


def get_language(connection: Connection) -> Language | None:
    """Whose stems and stop words BM25 uses."""
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
    """Remember whose stems and stop words BM25 uses."""
    _put(connection, "language", language._asdict())


def next_revision(connection: Connection) -> None:
    """Invalidate what readers have loaded."""
    put_setting(connection, "revision", get_setting(connection, "revision", 0) + 1)
