"""Indexed metadata fields: filters find the same documents, and writes keep the index current."""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from semsearch.errors import ArgumentError
from semsearch.storage.interface import parse_filter
from semsearch.storage.sqlite.restrictions import sql_condition

LONG = "x" * 100


def documents():
    for n in range(60):
        yield Document(
            f"d{n}",
            f"text {n}",
            title=f"T{n % 7}",
            metadata={
                "year": 1990 + n % 10,
                "genres": ["Drama", "Crime"][: n % 3],
                "seen": n % 2 == 0,
                "note": LONG + str(n) if n % 5 == 0 else f"note {n}",
                "id": n,
            },
        )


WHERES = [
    "year >= 1998.5 and seen = true",
    "year in (1990, 1991) or genres = 'Crime'",
    "genres not in ('Crime', 'Drama')",
    f"note = '{LONG}10'",
    "id = 'd7' or title = 'T3'",
    "genres is null or year is null",
]


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", "hashing:8") as index:
        index.add(documents())
        yield index


def answers(index):
    return [
        (
            index.count(where),
            sorted(hit.document_id for hit in index.search("text", 100, where=where)),
            sorted(hit.document_id for hit in index.search("text", 100, where=where, mode="bm25")),
        )
        for where in WHERES
    ]


def index_all_fields(index):
    with index.writer() as writer:
        for name in index.fields():
            writer.index_field(f"metadata.{name}")


def plan_of(index, where):
    """SQLite's query plan for a filter."""
    with index.read() as state:
        clause = sql_condition(state.connection, parse_filter(state, where))
        query = clause.compile(state.connection, compile_kwargs={"literal_binds": True})
        statement = f"EXPLAIN QUERY PLAN SELECT document_id FROM documents WHERE {query}"
        return " ".join(row[3] for row in state.connection.exec_driver_sql(statement))


@pytest.mark.parametrize("where", ["year > 1997", "note in ('note 1')", "seen = true"])
def test_the_index_is_used(index, where):
    assert "SCAN documents" in plan_of(index, where)
    before = answers(index)
    index_all_fields(index)
    assert answers(index) == before
    assert index.info().indexed_fields == ["genres", "id", "note", "seen", "year"]
    assert "SEARCH documents USING INDEX metadata." in plan_of(index, where)
    assert "ix_documents_title" in plan_of(index, "title = 'T3'")


def test_writes_keep_the_index_current(index, tmp_path):
    index_all_fields(index)
    changed = [Document(f"d{n}", f"text {n}", metadata={"year": 2020 + n}) for n in range(20)]
    index.add([*changed, Document("new", "text", metadata={"year": 2020, "genres": []})])
    index.delete(["d1", "d30"])
    index.delete(where="seen = true and year = 1992")
    with index.writer() as writer:
        assert writer.verify() == []
    assert index.count("year = 2020") == 2
    assert index.count("year = 2021") == 0
    with Index.create(tmp_path / "fresh", "hashing:8") as fresh:
        fresh.add(index)
        assert answers(fresh) == answers(index)


def test_unknown_fields(index):
    with index.writer() as writer:
        for name in ("yeer", "id", 3):
            with pytest.raises(ArgumentError):
                writer.index_field(name)
        assert index.info().indexed_fields == []
        writer.index_field("metadata.id")
        assert index.info().indexed_fields == ["id"]
