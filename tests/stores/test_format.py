"""Indexes of older formats are migrated when they are opened.

``format-1`` was written by the first version of semsearch: seven documents, of which `doc-4` was
deleted.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from semsearch import Document, Index
from semsearch.errors import IndexFormatError
from semsearch.stores.local import migrations
from semsearch.stores.local.schema import FORMAT_VERSION


@pytest.fixture
def path(tmp_path):
    shutil.copytree(Path(__file__).parent / "format-1", tmp_path / "index")
    return tmp_path / "index"


def execute(path, *statements):
    with closing(sqlite3.connect(path / "index.sqlite")) as connection, connection:
        return [connection.execute(statement).fetchall() for statement in statements]


def format_of(path):
    [[(version,)]] = execute(path, "PRAGMA user_version")
    return version


def schema_of(path):
    [names] = execute(path, "SELECT name FROM sqlite_schema")
    columns = execute(path, *(f"PRAGMA table_xinfo('{name}')" for (name,) in names))
    return {
        name: sorted(row[1:6] for row in rows) for (name,), rows in zip(names, columns, strict=True)
    }


def test_the_first_format_is_migrated(path, tmp_path):
    with Index.open(path) as index:
        assert index.get("doc-2") == Document(
            "doc-2",
            "The orchard in winter, number 2.",
            "Orchard",
            {"number": 2, "tags": ["orchard", "winter"], "even": True},
        )
        hits = index.search("rivers", mode="bm25", where="even = true and tags = 'winter'")
        assert [hit.document_id for hit in hits] == ["doc-0"]
        assert index.add([Document("new", "A new river.")]).added == 1
        assert len(index) == 7
        with index.writer() as writer:
            assert writer.verify() == []
    assert format_of(path) == FORMAT_VERSION
    Index.create(tmp_path / "new", ["hashing:16"]).close()
    assert schema_of(path) == schema_of(tmp_path / "new")


def test_an_interrupted_migration_is_rolled_back(path, monkeypatch):
    def fail(connection):
        connection.exec_driver_sql("DELETE FROM documents")
        raise KeyboardInterrupt

    monkeypatch.setattr(migrations, "STEPS", migrations.STEPS | {FORMAT_VERSION - 1: fail})
    with pytest.raises(KeyboardInterrupt):
        Index.open(path)
    assert format_of(path) == 1
    assert execute(path, "SELECT count(*) FROM documents") == [[(6,)]]


@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1])
def test_other_formats_are_refused(path, version):
    execute(path, f"PRAGMA user_version = {version}")
    for use in (Index.open, lambda path: Index.create(path, ["hashing:16"])):
        with pytest.raises(IndexFormatError, match=f"format {version}"):
            use(path)
    assert format_of(path) == version
