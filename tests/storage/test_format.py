"""The file format, and files that are none of it or damaged.

`test_verification` checks what verify finds and repairs, `test_snapshot` damaged snapshots.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from semsearch import Document, Index
from semsearch.errors import (
    DamagedIndexError,
    IndexBusyError,
    IndexFormatError,
    IndexNotFoundError,
    IndexStoreError,
)
from semsearch.storage import create_store, open_store


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "x", ["hashing:16"]) as index:
        index.add(
            Document(str(number), f"The cat {number} hunts.", f"Cat {number}", {"legs": 4})
            for number in range(30)
        )
    return tmp_path / "x"


def execute(path, *statements):
    with closing(sqlite3.connect(path / "index.sqlite", isolation_level=None)) as connection:
        return [connection.execute(statement).fetchall() for statement in statements]


SCHEMA = """
SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT GLOB 'passages_fts_*' ORDER BY name
"""


def test_the_tables_of_format_1(path):
    """Another format needs another number."""
    [tables] = execute(path, SCHEMA)
    expected = Path(__file__).with_name("format-1.sql").read_text("utf-8").splitlines()
    assert [" ".join(sql.split()) + ";" for (sql,) in tables] == expected
    pragmas = ["application_id", "user_version", "page_size", "journal_mode"]
    found = execute(path, *(f"PRAGMA {name}" for name in pragmas))
    assert [rows[0][0] for rows in found] == [0x53454D53, 1, 8192, "wal"]


def test_settings_of_connections(path):
    names = ["busy_timeout", "foreign_keys", "synchronous", "secure_delete"]
    names += ["cache_size", "wal_autocheckpoint"]
    with open_store(path).database.writing() as connection:
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]
    assert found == [10_000, 1, 2, 1, -64 * 1024, 16_384]


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda content: b"", IndexNotFoundError),
        (lambda content: content[:5000], DamagedIndexError),
        (lambda content: b"\x80" * 16_384 + content[16_384:], DamagedIndexError),
        (lambda content: content[:4096] + b"\x80" * 16_384 + content[20_480:], DamagedIndexError),
    ],
)
def test_a_damaged_file(path, damage, error):
    file = path / "index.sqlite"
    file.write_bytes(damage(file.read_bytes()))
    for snapshot in path.glob("*.faiss"):
        snapshot.unlink()
    with pytest.raises(error), Index.open(path) as index:
        index.search("cat", mode="hybrid")


def test_text_that_is_not_utf_8(path):
    execute(path, "UPDATE documents SET title = CAST(x'ff' AS TEXT)")
    with Index.open(path) as index, pytest.raises(DamagedIndexError):
        index.search("cat 1", k=30)


@pytest.mark.parametrize(
    "statement", ["user_version = 0", "user_version = 2", "application_id = 1346458196"]
)
def test_other_formats_are_refused_and_left_as_they_are(path, statement):
    execute(path, f"PRAGMA {statement}")
    before = (path / "index.sqlite").read_bytes()
    for use in (Index.open, lambda path: Index.create(path, "hashing:16")):
        with pytest.raises(IndexFormatError) as caught:
            use(path)
        assert type(caught.value) is IndexFormatError
    assert (path / "index.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("none", IndexNotFoundError),
        ("empty", IndexNotFoundError),
        ("locks", IndexNotFoundError),
        ("file", IndexFormatError),
        ("file/x", IndexNotFoundError),
        ("others", IndexFormatError),
        ("x" * 300, IndexStoreError),
    ],
)
def test_paths_without_an_index(tmp_path, name, error):
    for folder, file in [("empty", ""), ("locks", "writer.lock"), ("others", "a.txt")]:
        (tmp_path / folder).mkdir()
        if file:
            (tmp_path / folder / file).touch()
    (tmp_path / "file").touch()
    with pytest.raises(IndexStoreError) as caught:
        open_store(tmp_path / name)
    assert type(caught.value) is error
    assert not (tmp_path / "none").exists()


def test_creation_in_missing_folders_and_relative_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Index.create(Path("a/b"), "hashing:16") as index:
        monkeypatch.chdir("/")
        index.add([Document("1", "one")])
        assert index.path == tmp_path / "a" / "b"
    (tmp_path / "file").touch()
    with pytest.raises(IndexStoreError):
        Index.create(tmp_path / "file" / "x", "hashing:16")


def test_a_model_is_loaded_before_the_index_is_created(tmp_path, hashing):
    class Slow:
        def description(self):
            assert not list(tmp_path.iterdir())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create_store(tmp_path, 128, [Slow()])


def test_a_locked_database(path, monkeypatch):
    monkeypatch.setattr("semsearch.storage.sqlite.database._PRAGMAS", ("PRAGMA busy_timeout = 1",))
    with (
        closing(sqlite3.connect(path / "index.sqlite", isolation_level=None)) as other,
        Index.open(path) as index,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexBusyError):
            index.delete(["1"])
        assert len(index) == 30
    with Index.open(path) as index, pytest.raises(TypeError):
        index._store.writer(1)


def test_errors_of_sqlite_name_the_file(path):
    with pytest.raises(IndexStoreError) as caught, open_store(path).database.read() as connection:
        connection.exec_driver_sql("SELECT nothing")
    assert type(caught.value) is IndexStoreError
    assert str(path / "index.sqlite") in str(caught.value)
