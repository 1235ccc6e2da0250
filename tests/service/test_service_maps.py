"""Maps and fields over HTTP."""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from semsearch.explore.map import make_map

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
from fastapi.testclient import TestClient

from semsearch.service import create_app

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
def client(path):
    app = create_app({"birds": path})
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def test_points_of_the_passages_that_are_still_there(client, path):
    with Index.open(path) as index:
        made = make_map(index)
        index.delete(["b"])
        index.add([Document("d", "a green frog")])
    answer = client.get(MAP).json()
    assert (answer["space"], answer["of"]) == ("hashing", 3)
    points = answer["points"]
    assert (points["id"], points["start"]) == (["a", "c"], [0, 0])
    assert points["label"] == ["Robin", "a red fish swims"]
    assert points["x"] == pytest.approx(made.points[[0, 2], 0].tolist(), abs=1e-4)
    assert points["y"] == pytest.approx(made.points[[0, 2], 1].tolist(), abs=1e-4)
    groups = [answer["groups"][group] for group in points["group"]]
    assert groups == [made.names[group] for group in made.groups[[0, 2]]]


def test_without_a_map(client, path):
    (path / "hashing.map").unlink()
    assert client.get(MAP).status_code == 404


def test_a_newer_map_of_another_space_is_shown(client, path):
    assert client.get(MAP).json()["space"] == "hashing"
    with Index.open(path) as index:
        made = make_map(index, "hashing-64")
    assert client.get(MAP).json()["space"] == "hashing"
    made.save(path)
    assert client.get(MAP).json()["space"] == "hashing-64"


def test_fields_with_values(client):
    answer = client.get("/v1/indexes/birds/fields").json()
    fields = {field["name"]: field for field in answer["fields"]}
    assert answer["documents"] == 3
    assert fields["tags"]["values"] == [["red", 2], ["small", 1]]
    assert (fields["year"]["least"], fields["year"]["greatest"]) == (1999, 2010)
    assert fields["year"]["values"] == []
    assert fields["seen"]["kinds"] == ["boolean"]
    assert client.get("/v1/indexes/other/fields").status_code == 404
    assert client.get("/v1/indexes/other/map").status_code == 404


def test_fields_of_documents_that_match(client):
    where = {"where": "year > 2000"}
    answer = client.get("/v1/indexes/birds/fields", params=where).json()
    fields = {field["name"]: field for field in answer["fields"]}
    assert answer["documents"] == 2
    assert fields["tags"]["values"] == [["red", 1]]
    assert (fields["year"]["least"], fields["year"]["greatest"]) == (2005, 2010)
    wrong = client.get("/v1/indexes/birds/fields", params={"where": "wings = 2"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid-filter")
