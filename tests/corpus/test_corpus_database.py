"""Rows of real databases: SQLite files and a PostgreSQL server."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

import psycopg
import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, CorpusError, MissingExtraError
from semsearch.records import Document

FILMS = "SELECT id, name AS title, plot AS text, year FROM films ORDER BY id"
DOCUMENTS = [
    Document("1", "A heist: 100 % wrong.", "Heat", {"year": 1995}),
    Document("2", "Two friends.", None, {"year": None}),
]


@pytest.fixture
def films(write, tmp_path):
    """An SQLite file with two films."""
    write("x", "")
    with closing(sqlite3.connect(tmp_path / "films.db")) as connection:
        connection.execute("CREATE TABLE films (id INTEGER, name TEXT, plot TEXT, year INTEGER)")
        connection.execute("CREATE VIEW old AS SELECT * FROM films WHERE year < 2000")
        rows = [(1, "Heat", "A heist: 100 % wrong.", 1995), (2, None, "Two friends.", None)]
        connection.executemany("INSERT INTO films VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    return "films.db"


def message(path, **options):
    with pytest.raises(CorpusError) as error:
        list(Corpus(path, **options))
    assert "\n" not in str(error.value)
    return str(error.value)


class TestSqlite:
    def test_a_query(self, films):
        notices = []
        documents = list(Corpus(films, sql=FILMS, notify=notices.append))
        assert documents == DOCUMENTS
        assert [one.source for one in documents] == ["films.db, row 1", "films.db, row 2"]
        assert notices == [
            "films.db: text from 'text', title from 'title', id from 'id'; metadata: year; "
            "from sqlite"
        ]
        assert Corpus(films, sql=FILMS).name == "films"

    def test_a_url(self, films, tmp_path):
        assert list(Corpus(f"sqlite:///{tmp_path}/films.db", sql=FILMS)) == DOCUMENTS

    @pytest.mark.parametrize(
        "url",
        [
            "sqlite:///films.db?timeout=5",
            "sqlite:///films.db?mode=ro",
            "sqlite:///films.db?uri=true",
            "sqlite:///file:films.db?uri=true",
            "sqlite:///file:films.db?mode=rwc&cache=private&uri=true",
        ],
    )
    def test_urls_with_options(self, films, url):
        assert list(Corpus(url, sql=FILMS)) == DOCUMENTS

    @pytest.mark.parametrize(
        "location",
        [
            "{}",
            "sqlite:///{}",
            "sqlite+pysqlite:///{}",
            "sqlite:///{}?timeout=5",
            "sqlite:///{}?uri=true",
            "sqlite:///file:{}?uri=true",
            "sqlite:///file:{}?mode=rwc&uri=true",
            "sqlite://",
        ],
    )
    @pytest.mark.parametrize("sql", ["DROP TABLE films", "ATTACH 'made.db' AS made"])
    def test_no_file_is_changed_or_made(self, films, tmp_path, monkeypatch, location, sql):
        monkeypatch.chdir(tmp_path)
        before = (tmp_path / "films.db").read_bytes()
        for name in ("films.db", "absent.db"):
            with pytest.raises(CorpusError):
                list(Corpus(location.format(tmp_path / name), sql=sql))
        assert sorted(file.name for file in tmp_path.iterdir()) == ["films.db", "x"]
        assert (tmp_path / "films.db").read_bytes() == before

    def test_colons_and_percent_signs_are_not_parameters(self, films):
        query = "SELECT plot FROM films WHERE plot LIKE '%: 100 % w%' OR plot = ':x'"
        assert len(list(Corpus(films, sql=query, text_columns="plot"))) == 1

    def test_without_a_query(self, films):
        assert message(films) == (
            "films.db looks like an SQLite database (tables: films, old): choose its rows with "
            '--sql "SELECT … FROM …"'
        )

    def test_bytes_that_are_not_text(self, films, tmp_path):
        with closing(sqlite3.connect(tmp_path / films)) as connection:
            connection.execute("INSERT INTO films VALUES (3, 'x', CAST(x'636166e9' AS TEXT), 1)")
            connection.execute("INSERT INTO films VALUES (4, 'x', x'00ff', 1)")
            connection.commit()
        bad: list[BadRowError] = []
        assert list(Corpus(films, sql=FILMS, on_bad_row=bad.append)) == DOCUMENTS
        assert [error.source for error in bad] == ["films.db, row 3", "films.db, row 4"]
        assert bad[0].reason == "text holds byte 0xe9, which is not UTF-8"
        assert bad[1].reason == "'text' is not a string but of type bytes"

    @pytest.mark.parametrize(
        "query",
        [
            "DELETE FROM films",
            "DROP TABLE films",
            "INSERT INTO films VALUES (9, 'x', 'x', 9) RETURNING id, plot AS text",
            "ATTACH 'other.db' AS other",
            "SELECT 1; DROP TABLE films",
        ],
    )
    def test_nothing_is_written(self, films, tmp_path, query):
        before = (tmp_path / films).read_bytes()
        message(films, sql=query)
        assert (tmp_path / films).read_bytes() == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["films.db", "x"]

    def test_errors(self, films, write):
        assert message(films, sql="SELEC") == 'films.db: near "SELEC": syntax error'
        assert message(films, sql="SELECT * FROM film") == "films.db: no such table: film"
        nothing = "SELECT plot AS text FROM films WHERE 0"
        assert message(films, sql=nothing) == "films.db: the query selects no rows"
        assert message("no.db", sql=FILMS) == "no such file: no.db"
        write("text.db", "not a database" * 99)
        assert message("text.db", sql=FILMS) == "text.db: file is not a database"
        assert message("-", sql=FILMS).startswith("--sql needs an SQLite file or the URL")
        assert message(films, sql="SELECT plot, plot FROM films").startswith("films.db: 2 columns")

    def test_a_damaged_file(self, films, tmp_path):
        content = bytearray((tmp_path / films).read_bytes())
        content[4096:8192] = b"\xff" * 4096
        (tmp_path / films).write_bytes(content)
        assert "malformed" in message(films, sql=FILMS)


@pytest.fixture(scope="module")
def server(postgresql):
    """PostgreSQL with the same films."""
    with psycopg.connect(postgresql) as connection:
        connection.execute("CREATE TABLE films (id int, name text, plot text, year int)")
        connection.execute(
            "INSERT INTO films VALUES (1, 'Heat', 'A heist: 100 % wrong.', 1995),"
            " (2, NULL, 'Two friends.', NULL)"
        )
    return postgresql


class TestPostgresql:
    def test_a_query(self, server):
        notices = []
        documents = list(Corpus(server, sql=FILMS, notify=notices.append))
        assert documents == DOCUMENTS
        assert documents[0].source == "postgresql://postgres@/postgres, row 1"
        assert notices[0].endswith("; from postgresql")
        assert Corpus(server, sql=FILMS).name == "postgres"

    def test_types(self, server):
        query = (
            "SELECT 7::bigint AS id, 'A text.' AS text, 1.50::numeric AS price, now()::date AS day,"
            " ARRAY['a', 'b'] AS tags, '{\"a\": [1]}'::jsonb AS fields, true AS seen,"
            " gen_random_uuid() AS other"
        )
        (document,) = Corpus(server, sql=query)
        assert document.id == "7"
        assert document.metadata["price"] == 1.5
        assert document.metadata["tags"] == ["a", "b"]
        assert document.metadata["fields"] == {"a": [1]}
        assert document.metadata["seen"] is True
        assert len(document.metadata["day"]) == 10
        assert len(document.metadata["other"]) == 36

    def test_keys_and_unusual_values(self, server):
        query = (
            "SELECT '3d7a8f1e-0000-4000-8000-000000000001'::uuid AS id, date '2024-05-01' AS title,"
            " 'A text.' AS text, inet '10.0.0.1' AS ip, int4range(1, 5) AS years,"
            " 'infinity'::timestamptz AS until, '0044-03-15 BC'::date AS died, bytea 'ab' AS raw,"
            " '24:00'::time AS closes, '24:00+00'::timetz AS shuts, interval '9999999 years' AS age"
        )
        notices = []
        (document,) = Corpus(server, sql=query, notify=notices.append)
        assert document.id == "3d7a8f1e-0000-4000-8000-000000000001"
        assert document.title == "2024-05-01"
        assert document.metadata == {
            "ip": "10.0.0.1",
            "years": "[1, 5)",
            "until": "infinity",
            "died": "0044-03-15 BC",
            "closes": "24:00:00",
            "shuts": "24:00:00+00",
            "age": "9999999 years",
        }
        assert notices[1].endswith(": binary data is left out: raw")

    def test_rows_are_read_lazily(self, server):
        """The query has infinitely many."""
        query = (
            "WITH RECURSIVE endless (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless)"
            " SELECT n AS id, 'A text.' AS text FROM endless"
        )
        documents = iter(Corpus(server, sql=query))
        assert [next(documents).id for _ in range(3)] == ["1", "2", "3"]

    def test_nothing_is_written(self, server):
        """Not even by a function that a SELECT calls."""
        assert "syntax error" in message(server, sql="DELETE FROM films")
        with psycopg.connect(server) as connection:
            connection.execute(
                "CREATE FUNCTION forget() RETURNS text LANGUAGE sql"
                " AS 'DELETE FROM films RETURNING plot'"
            )
        error = message(server, sql="SELECT forget() AS text")
        assert error.endswith("cannot execute DELETE in a read-only transaction")
        assert list(Corpus(server, sql=FILMS)) == DOCUMENTS

    def test_errors(self, server):
        assert message(server, sql="SELECT * FROM film") == (
            'postgresql://postgres@/postgres: relation "film" does not exist'
        )
        assert message(server).startswith("postgresql://postgres@/postgres: choose its rows with")

    def test_a_failing_row_ends_reading(self, server):
        query = "SELECT n AS id, (10 / (5000 - n))::text AS text FROM generate_series(1, 9000) AS n"
        documents = iter(Corpus(server, sql=query))
        with pytest.raises(CorpusError, match=r"division by zero$"):
            for _ in documents:
                pass


class TestUrls:
    SECRET = "postgresql://me:secret@127.0.0.1:1/db?connect_timeout=2"

    def test_passwords_are_not_shown(self):
        error = message(self.SECRET, sql=FILMS)
        assert error.startswith("postgresql://me:***@127.0.0.1:1/db: connection failed")
        assert "secret" not in error
        assert "secret" not in message(self.SECRET)

    @pytest.mark.parametrize("password", ["se/cret", "se#cret", "s?e:cret"])
    def test_passwords_with_the_marks_of_urls(self, password):
        """The driver takes them, so they are no mistake."""
        url = f"postgresql://me:{password}@127.0.0.1:1/db?connect_timeout=2"
        error = message(url, sql=FILMS)
        assert error.startswith("postgresql://me:***@127.0.0.1:1/db: connection failed")
        assert "cret" not in error

    def test_a_port_that_is_no_number(self):
        error = message("postgresql://me:secret@h:port/db", sql=FILMS)
        assert error == "postgresql://me:***@h:port/db: the port is not a number"

    def test_a_user_name_with_an_at_sign(self):
        """As Azure's are."""
        error = message("postgresql://me@corp:secret@127.0.0.1:1/db", sql=FILMS)
        assert error.startswith("postgresql://me@corp:***@127.0.0.1:1/db: connection failed")

    @pytest.mark.parametrize("password", ["se@cret", "s@e@cret"])
    def test_a_password_with_an_at_sign(self, password):
        """The driver takes what follows the first as the host."""
        error = message(f"postgresql://me:{password}@127.0.0.1:1/db", sql=FILMS)
        assert error == (
            "postgresql://me:***@127.0.0.1:1/db: write @ in a user name or password as %40"
        )

    def test_a_password_with_an_at_sign_and_a_colon(self):
        error = message("postgresql://me:s@e:cret@127.0.0.1:1/db", sql=FILMS)
        assert error == "postgresql://me:***@127.0.0.1:1/db: the port is not a number"

    def test_invalid_parameters(self, films):
        assert message("sqlite:///films.db?timeout=abc", sql=FILMS) == (
            "sqlite:///films.db: could not convert string to float: 'abc'"
        )

    def test_unsupported_urls(self):
        assert message("nosuch://x/y", sql=FILMS).startswith("nosuch://x/y: Can't load plugin")
        assert message("mysql://me:secret@h/db", sql=FILMS) == (
            "mysql://me:***@h/db needs a driver: pip install mysqlclient"
        )
        assert "--sql needs" in message("https://example.org/films.db", sql=FILMS)

    @pytest.mark.parametrize("url", ["file:///films.csv", "ftp://h/films.csv", "S3://b/films.csv"])
    def test_files_at_other_urls(self, url):
        assert message(url) == f"{url}: files are read from a path, or an http or https URL"

    def test_without_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(MissingExtraError, match=r"^reading PostgreSQL needs psycopg: pip inst"):
            list(Corpus(self.SECRET, sql=FILMS))
