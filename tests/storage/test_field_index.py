"""Indexed metadata fields: filters use them, and writes keep them current.

`test_conditions` compares what filters find with and without them.
"""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from semsearch.errors import ArgumentError
from semsearch.storage.interface import parse_filter
from semsearch.storage.sqlite.restrictions import sql_condition


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", "hashing:8") as index:
        index.add(
            Document(
                f"d{n}",
                f"text {n}",
                f"T{n % 7}",
                {"year": 1990 + n % 10, "genres": ["Drama"][: n % 2], "seen": n % 2 == 0, "id": n},
            )
            for n in range(60)
        )
        yield index


def index_fields(index, *names):
    with index.writer() as writer:
        for name in names:
            writer.index_field(name)
        assert writer.verify() == []


def plan_of(index, where):
    """SQLite's query plan for a filter."""
    with index.read() as state:
        clause = sql_condition(state.connection, parse_filter(state, where))
        query = clause.compile(state.connection, compile_kwargs={"literal_binds": True})
        statement = f"EXPLAIN QUERY PLAN SELECT document_id FROM documents WHERE {query}"
        return " ".join(row[3] for row in state.connection.exec_driver_sql(statement))


def test_the_index_is_used(index):
    wheres = ["year > 1997", "year in (1990, 1992)", "seen = true"]
    assert all("SCAN documents" in plan_of(index, where) for where in wheres)
    index_fields(index, "year", "genres", "seen", "metadata.id")
    assert index.info().indexed_fields == ["genres", "id", "seen", "year"]
    assert all("SEARCH documents USING INDEX metadata." in plan_of(index, one) for one in wheres)
    assert "ix_documents_title" in plan_of(index, "title = 'T3'")
    assert "SCAN documents" in plan_of(index, "genres = 'Drama'")  # lists are not found by it


def test_unknown_fields(index):
    with index.writer() as writer:
        for name in ("yeer", "id", 3):
            with pytest.raises(ArgumentError):
                writer.index_field(name)
        assert index.info().indexed_fields == []
        writer.index_field("metadata.id")
        assert index.info().indexed_fields == ["id"]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\tb", ""])
def test_names_that_cannot_be_indexed(index, name):
    index.add([Document("odd", "text", metadata={name: 1, "it's": 2})])
    with index.writer() as writer:
        with pytest.raises(ArgumentError):
            writer.index_field(name)
        writer.index_field("it's")
    assert index.count('"it\'s" = 2') == 1
