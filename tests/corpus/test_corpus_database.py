"""Rows of real databases: SQLite files and a PostgreSQL server."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

import psycopg
import pytest

from semsearch.corpus import Corpus
from semsearch.errors import MissingExtraError
from semsearch.records import Document
from tests.corpus.conftest import read, refused

FILMS = (
    "SELECT id, name AS title, plot AS text, year FROM films"
    " WHERE plot LIKE '%: 100 % w%' OR plot != ':x' ORDER BY id"  # these are no parameters
)
CREATE = (
    "CREATE TABLE films (id INTEGER, name TEXT, plot TEXT, year INTEGER);"
    "INSERT INTO films VALUES (1, 'Heat', 'A heist: 100 % wrong.', 1995),"
    " (2, NULL, 'Two friends.', NULL);"
)
DOCUMENTS = [
    Document("1", "A heist: 100 % wrong.", "Heat", {"year": 1995}),
    Document("2", "Two friends.", None, {"year": None}),
]


@pytest.fixture
def films(write, tmp_path):
    """An SQLite file with two films."""
    write("x", "")
    with closing(sqlite3.connect(tmp_path / "films.db")) as connection:
        connection.executescript(CREATE)
    return "films.db"


class TestSqlite:
    def test_a_query(self, films):
        documents, _, [notice] = read(films, sql=FILMS)
        assert documents == DOCUMENTS
        assert [one.source for one in documents] == ["films.db, row 1", "films.db, row 2"]
        assert notice.startswith("films.db: text from 'text', title from 'title', id from 'id'; ")
        assert notice.endswith("; from sqlite")
        assert Corpus(films, sql=FILMS).name == "films"

    def test_bytes_that_are_not_text(self, films, tmp_path):
        with closing(sqlite3.connect(tmp_path / films)) as connection:
            rows = "(3, 'x', CAST(x'636166e9' AS TEXT), 1), (4, 'x', x'00ff', 1)"
            connection.executescript(f"INSERT INTO films VALUES {rows}")
        documents, bad, _ = read(films, sql=FILMS)
        assert documents == DOCUMENTS
        assert [str(error) for error in bad] == [
            "films.db, row 3: text holds byte 0xe9, which is not UTF-8",
            "films.db, row 4: 'text' is not a string but of type bytes",
        ]

    def test_nothing_is_written(self, films, tmp_path):
        before = (tmp_path / films).read_bytes()
        for query in ("DROP TABLE films", "SELECT 1; DROP TABLE films"):
            for location in (films, f"sqlite:///file:{tmp_path}/absent.db?mode=rwc&uri=true"):
                refused(location, sql=query)
        assert (tmp_path / films).read_bytes() == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["films.db", "x"]

    def test_errors(self, films, write):
        for selected in ("plot FROM film", "plot FROM films WHERE 0", "plot, plot FROM films"):
            assert refused(films, sql=f"SELECT {selected}").startswith("films.db")
        write("text.db", "not a database" * 99)
        assert refused("text.db", sql=FILMS).startswith("text.db")
        refused("no.db", sql=FILMS)
        refused("-", sql=FILMS)


@pytest.fixture(scope="module")
def server(postgresql):
    """PostgreSQL with the same films, and a function that deletes them."""
    with psycopg.connect(postgresql) as connection:
        forget = "CREATE FUNCTION forget() RETURNS text LANGUAGE sql AS "
        connection.execute(f"{CREATE} {forget} 'DELETE FROM films RETURNING plot'")
    return postgresql


class TestPostgresql:
    def test_a_query(self, server):
        documents, _, notices = read(server, sql=FILMS)
        assert documents == DOCUMENTS
        assert documents[0].source == "postgresql://postgres@/postgres, row 1"
        assert notices[0].endswith("; from postgresql")
        assert Corpus(server, sql=FILMS).name == "postgres"

    def test_types(self, server):
        query = (
            "SELECT '3d7a8f1e-0000-4000-8000-000000000001'::uuid AS id, date '2024-05-01' AS title,"
            " 'A text.' AS text, 1.50::numeric AS price, date '2024-05-02' AS day,"
            " ARRAY['a', 'b'] AS tags, '{\"a\": [1]}'::jsonb AS fields, true AS seen,"
            " gen_random_uuid() AS other, inet '10.0.0.1' AS ip, bytea 'ab' AS raw"
        )
        (document,) = Corpus(server, sql=query)
        name = "3d7a8f1e-0000-4000-8000-000000000001"
        assert (document.id, document.title) == (name, "2024-05-01")
        assert len(document.metadata.pop("other")) == 36
        found = {"price": 1.5, "day": "2024-05-02", "tags": ["a", "b"], "fields": {"a": [1]}}
        assert document.metadata == found | {"seen": True, "ip": "10.0.0.1"}

    def test_rows_are_read_lazily(self, server, forgetful):
        """The query has a billion."""
        query = "SELECT generate_series(1, 1000000000) AS id, 'A text.' AS text"
        documents = iter(Corpus(server, sql=query))
        assert [next(documents).id for _ in range(3)] == ["1", "2", "3"]

    def test_nothing_is_written(self, server):
        """Not even by a function that a SELECT calls."""
        refused(server, sql="DELETE FROM films")
        error = refused(server, sql="SELECT forget() AS text")
        assert error.endswith("cannot execute DELETE in a read-only transaction")
        assert list(Corpus(server, sql=FILMS)) == DOCUMENTS


@pytest.mark.parametrize("password", ["secret", "se/cret", "se#cret", "s?e:cret"])
def test_passwords_are_not_shown(password):
    """Marks of URLs in them are no mistake: the driver takes them."""
    url = f"postgresql://me:{password}@127.0.0.1:1/db?connect_timeout=2"
    error = refused(url, sql=FILMS)
    assert error.startswith("postgresql://me:***@127.0.0.1:1/db: connection failed")
    assert "cret" not in error
    assert "cret" not in refused(url)


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError):
        list(Corpus("postgresql://me:secret@127.0.0.1:1/db", sql=FILMS))
