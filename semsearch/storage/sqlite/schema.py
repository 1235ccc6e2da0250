"""The tables of ``index.sqlite``, and the settings of an index.

    settings     settings of the whole index
    documents 1─1 texts, the documents' texts
    documents 1─n passages 1─n vectors n─1 spaces 1─1 snapshots
    fields       kinds of metadata values, to check filters and for messages
    passages_fts   the words of the passages, for BM25

The tables hold all primary data, vectors included; files beside the database are derived.
They are ``STRICT`` and have ``CHECK``s, so that code that reads values need not check them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import (
    JSON,
    REAL,
    BindParameter,
    CheckConstraint,
    Column,
    Computed,
    Connection,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    ScalarSelect,
    Select,
    Table,
    Text,
    bindparam,
    column,
    func,
    select,
    table,
)
from sqlalchemy.dialects.sqlite import dialect, insert

from semsearch.storage.interface import Settings
from semsearch.vector_indexes import IndexType

if TYPE_CHECKING:
    from semsearch.storage.words import Language

#: "SEMS": marks databases of semsearch (PRAGMA application_id).
APPLICATION_ID: Final = 0x53454D53
#: PRAGMA user_version; indexes of other formats are refused.
FORMAT_VERSION: Final = 1

tables = MetaData()


def _table(name: str, *columns: Column[Any], **options: Any) -> Table:
    """A table whose values SQLite checks."""
    return Table(name, tables, *columns, sqlite_strict=True, **options)


def _required(name: str, kind: Any, *constraints: CheckConstraint, **options: Any) -> Column[Any]:
    """A column without nulls."""
    return Column(name, kind, *constraints, nullable=False, **options)


def _owned_by(key: str, **options: Any) -> Column[Any]:
    """A column of a row that is deleted with the one whose key it has."""
    name = key.partition(".")[2]
    return Column(name, ForeignKey(key, ondelete="CASCADE"), nullable=False, **options)


settings = _table(
    "settings",
    Column("name", Text, primary_key=True),
    _required("value", Text, CheckConstraint("json_valid(value)")),
)

documents = _table(
    "documents",
    Column("document_id", Integer, primary_key=True),
    _required("external_id", Text, unique=True),
    Column("title", Text, index=True),
    _required("metadata", Text, CheckConstraint("json_type(metadata) = 'object'")),
    _required("text_hash", Text),
)

#: Apart from `documents`, so that filters, which read every document, read no text.
texts = _table(
    "texts", _owned_by("documents.document_id", primary_key=True), _required("text", Text)
)

passages = _table(
    "passages",
    # Ids only grow and are never reused: a snapshot covers all ids up to its highest.
    Column("passage_id", Integer, primary_key=True),
    _owned_by("documents.document_id", index=True),
    _required("start", Integer),  # characters [start, end) of the document
    _required("end", Integer),
    _required("text", Text),
    _required("text_hash", Text, index=True),
    Column("analysed", Text),  # the text that BM25 reads, if it differs
    Column("words", Text, Computed("coalesce(analysed, text)", persisted=False)),
    sqlite_autoincrement=True,
)

spaces = _table(
    "spaces",
    Column("space_id", Integer, primary_key=True),
    # Files are named after it.
    _required("name", Text, CheckConstraint("name NOT GLOB '*[^a-z0-9_-]*'"), unique=True),
    _required("spec", Text),
    _required("fingerprint", Text),
    _required("dimension", Integer, CheckConstraint("dimension > 0")),
    _required("complete", Integer),  # 0 while it lacks vectors of older passages
    _required("description", Text, CheckConstraint("json_type(description) = 'object'")),
    sqlite_autoincrement=True,
)

vectors = _table(
    "vectors",
    _owned_by("passages.passage_id", primary_key=True),
    _owned_by("spaces.space_id", primary_key=True),
    _required("vector", LargeBinary),  # float32, little-endian
)

snapshots = _table(
    "snapshots",
    _owned_by("spaces.space_id", primary_key=True),
    _required("generation", Integer),
    _required("bytes", Integer),
    _required("vectors", Integer),
    _required("last_passage_id", Integer),
    _required("deleted", Integer),  # passages deleted before it was written
    _required("kind", Text),
    _required("wanted_recall", REAL),
    _required("recall", REAL),  # recall@10 against exact search
)

fields = _table(
    "fields",
    Column("name", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("in_list", Integer, primary_key=True),  # 1 for elements of lists
    _required("documents", Integer),  # how many have a value of this kind
)

#: External content: only `passages` holds the texts. Rows are written together with those of
#: `passages`, many at once, which is faster than triggers.
_CREATE_FTS = """
CREATE VIRTUAL TABLE passages_fts USING fts5(
    words, content='passages', content_rowid='passage_id',
    tokenize="{tokenizer}"
)
"""
#: For inserting and deleting; the first column takes FTS5's own commands.
passages_fts = table(
    "passages_fts", column("passages_fts"), column("rowid", Integer), column("words")
)


def create_tables(connection: Connection) -> None:
    """Create the tables of an empty database and mark it as an index of this format."""
    tables.create_all(connection, checkfirst=False)
    create_words(connection)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT_VERSION}")


def create_words(connection: Connection, language: Language | None = None) -> None:
    """Create the empty BM25 index, with the tokenizer of a language."""
    from semsearch.storage.words import Analyser

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


def rows_for(
    connection: Connection, statement: Select[Any], value: str | Sequence[int]
) -> list[tuple[Any, ...]]:
    """The rows of a statement that is built once, for the value of its only parameter.

    The driver runs it: SQLAlchemy takes longer for that than SQLite, several times in a search.
    """
    raw: Any = connection.connection.driver_connection
    parameter = value if isinstance(value, str) else json.dumps(value)
    found: list[tuple[Any, ...]] = raw.execute(_compiled(statement), (parameter,)).fetchall()
    return found


@cache
def _compiled(statement: Select[Any]) -> str:
    return str(statement.compile(dialect=dialect()))


def insert_rows(
    connection: Connection,
    table: Table,
    names: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    *,
    key: str | None = None,
) -> None:
    """Insert rows with values of SQLite's own types, for columns in the order of the table.

    SQLAlchemy would process each value of each row, which takes longer than writing them. A row
    with the same value in the unique column `key` is updated.
    """
    if rows:
        statement = insert(table)
        if key is not None:
            others = {name: statement.excluded[name] for name in names if name != key}
            statement = statement.on_conflict_do_update(index_elements=[key], set_=others)
        compiled = statement.compile(connection.engine, column_keys=names)
        connection.exec_driver_sql(str(compiled), list(rows))


_SETTING = select(settings.c.value).where(settings.c.name == bindparam("name"))


def get_setting(connection: Connection, name: str, default: Any = None) -> Any:
    """A setting of the index."""
    found = rows_for(connection, _SETTING, name)
    return json.loads(found[0][0]) if found else default


def put_setting(connection: Connection, name: str, value: object) -> None:
    """Store a setting of the index, as JSON."""
    row = {"name": name, "value": json.dumps(value, default=dict)}
    connection.execute(
        insert(settings).values(row).on_conflict_do_update(index_elements=["name"], set_=row)
    )


def read_settings(connection: Connection) -> Settings:
    """The settings of the index."""
    rows = connection.execute(select(settings.c.name, settings.c.value))
    found = {row.name: json.loads(row.value) for row in rows if row.name in Settings._fields}
    if "index_type" in found:
        found["index_type"] = IndexType(**found["index_type"])
    if found.get("language"):
        from semsearch.storage.words import Language

        stored = found["language"]
        found["language"] = Language(stored["name"], tuple(stored["stop_words"]))
    return Settings(**found)


def write_settings(connection: Connection, changed: Settings) -> None:
    """Store the settings of the index."""
    for name, value in changed._asdict().items():
        is_record = isinstance(value, tuple)
        put_setting(connection, name, value._asdict() if is_record else value)


class Revision(NamedTuple):
    """A state of an index."""

    identity: str  #: another one after it was deleted and made anew at the same path
    number: int


def get_revision(connection: Connection) -> Revision:
    """The state that a connection reads."""
    return Revision(*get_setting(connection, "revision"))


def next_revision(connection: Connection) -> None:
    """Invalidate what readers have loaded."""
    identity, number = get_revision(connection)
    put_setting(connection, "revision", [identity, number + 1])
