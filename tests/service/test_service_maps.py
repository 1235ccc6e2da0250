"""Maps and fields over HTTP."""

from __future__ import annotations

import threading

import pyarrow
import pytest

from semsearch import Document, Index
from semsearch.explore.map import make_map

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
pytest.importorskip("embedding_atlas", reason="a map needs the extra 'map'")
from fastapi.testclient import TestClient

from semsearch.service import Settings, create_app, maps

MAP = "/v1/indexes/birds/map"
DOCUMENTS = [
    Document("a", "a red bird sings", "Robin", {"year": 1999, "tags": ["red", "small"]}),
    Document("b", "a blue fish swims", "Carp", {"year": 2005, "tags": []}),
    Document("c", "a red fish swims", None, {"year": 2010, "tags": ["red"], "seen": True}),
]


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "birds", ["hashing", "hashing:64"]) as index:
        index.add(DOCUMENTS)
        make_map(index).save(index.path)
    return tmp_path / "birds"


@pytest.fixture
def settings():
    return Settings()


@pytest.fixture
def client(path, settings):
    app = create_app({"birds": path}, settings)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def ask(client, sql, kind="json"):
    return client.post(f"{MAP}/query", json={"type": kind, "sql": sql})


def test_map_description(client):
    about = client.get(MAP).json()
    assert (about["passages"], about["of"], about["space"]) == (3, 3, "hashing")
    assert about["data"]["table"] == "passages"
    assert about["fields"] == {"year": "year", "tags": "tags", "seen": "seen"}
    assert about["shown"].keys() == {"x", "y", "width", "height"}


def test_sql_queries(client):
    client.get(MAP)
    rows = ask(client, "SELECT id, year FROM passages ORDER BY year DESC").json()
    assert rows == [{"id": "c", "year": 2010}, {"id": "b", "year": 2005}, {"id": "a", "year": 1999}]
    answer = ask(client, "SELECT __x, __y FROM passages", "arrow")
    assert pyarrow.ipc.open_stream(answer.content).read_all().num_rows == 3
    added = 'ALTER TABLE passages ADD COLUMN "__colour" INTEGER; UPDATE passages SET "__colour" = 1'
    assert ask(client, added, "exec").json() == {}
    assert ask(client, 'SELECT sum("__colour")::INT AS n FROM passages').json() == [{"n": 3}]
    assert ask(client, "").json() == {}


FORBIDDEN = [
    "COPY passages TO 'stolen.csv'",
    "ATTACH 'other.db'",
    "INSTALL httpfs",
    "SET enable_external_access = true",
    "PRAGMA enable_progress_bar",
    "DELETE FROM passages",
    "SELECT 1; DROP TABLE passages",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT getenv('HOME')",
    "nonsense",
]


def test_sql_reaches_only_the_map(client):
    client.get(MAP)
    for sql in FORBIDDEN:
        answer = ask(client, sql)
        assert answer.status_code == 422, sql
        assert answer.headers["content-type"] == "application/problem+json"
        rows = ask(client, "SELECT id, text FROM passages ORDER BY id").json()
        assert rows == [{"id": one.id, "text": one.text} for one in DOCUMENTS], sql


def test_results_as_json(client):
    client.get(MAP)
    assert ask(client, "SELECT DATE '9999-12-31' AS d").json() == [{"d": "9999-12-31T00:00:00.000"}]
    assert ask(client, "EXPLAIN SELECT id FROM passages").status_code == 200


def test_a_query_that_takes_too_long_is_stopped(client, settings, monkeypatch):
    ended = threading.Event()

    def answer(*query):
        try:
            return real(*query)
        finally:
            ended.set()

    real = maps._answer
    monkeypatch.setattr(maps, "_answer", answer)
    client.get(MAP)
    object.__setattr__(settings, "seconds", 0.3)
    endless = (
        "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range = -b.range"
    )
    assert ask(client, endless).status_code == 504
    assert ended.wait(10)
    object.__setattr__(settings, "seconds", 30)
    assert len(ask(client, "SELECT id FROM passages").json()) == 3


def test_large_results_are_refused(client, monkeypatch):
    monkeypatch.setattr(maps, "MAX_ROWS", 1000)
    client.get(MAP)
    for kind in ("json", "arrow"):
        assert ask(client, "SELECT * FROM range(1000)", kind).status_code == 200
        assert ask(client, "SELECT * FROM range(1001)", kind).status_code == 422


def test_without_a_map(client, path):
    (path / "hashing.map").unlink()
    assert client.get(MAP).status_code == 404
    assert ask(client, "SELECT 1").status_code == 404


def test_a_newer_map_of_another_space_is_shown(client, path):
    assert client.get(MAP).json()["space"] == "hashing"
    with Index.open(path) as index:
        made = make_map(index, "hashing-64")
    assert client.get(MAP).json()["space"] == "hashing"
    made.save(path)
    assert client.get(MAP).json()["space"] == "hashing-64"


def test_fields_with_values(client):
    fields = {field["name"]: field for field in client.get("/v1/indexes/birds/fields").json()}
    assert fields["tags"]["values"] == [["red", 2], ["small", 1]]
    assert (fields["year"]["least"], fields["year"]["greatest"]) == (1999, 2010)
    assert fields["year"]["values"] == []
    assert fields["seen"]["kinds"] == ["boolean"]
    assert client.get("/v1/indexes/other/fields").status_code == 404
    assert client.get("/v1/indexes/other/map").status_code == 404
