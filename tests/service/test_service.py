"""The HTTP interface, called through its ASGI application."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from birds import BASE, BIRDS, DOCUMENTS, is_problem

from semsearch import Document, Index
from semsearch.errors import EncoderError

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
from fastapi.testclient import TestClient

from semsearch.service import Settings, create_app


def test_errors_have_codes(client):
    for place, status, code in (
        ("search?query=x&where=yaer>1", 422, "invalid-filter"),
        ("search?query=x&where=year>", 422, "invalid-filter"),
        ("search?query=x&space=minilm", 422, "unusable-space"),
        ("documents?id=z", 404, "document-not-found"),
        ("search?query=x&k=many", 422, None),  # rejected before it reaches an index
        ("../cats/search?query=x", 404, None),
        ("nothing", 404, None),
    ):
        response = client.get(f"{BIRDS}/{place}")
        assert (response.status_code, response.json().get("code")) == (status, code), place


class TestSearch:
    @pytest.mark.parametrize(
        "parameters",
        [
            {"query": "red fish", "k": 2, "where": "year > 2000"},
            {"query": "red fish", "require": ["a red", "fish"]},
            {"query": "red fish", "mode": "hybrid", "offset": 1},
            {"query": "red fish", "min_score": 0.6, "mmr": 0.5, "collapse_duplicates": True},
        ],
    )
    def test_hits_are_those_of_the_index(self, client, path, parameters):
        with Index.open(path) as index:
            expected = index.search(**parameters).to_dict()
        assert 0 < len(expected["hits"]) < 3
        assert client.get(f"{BIRDS}/search", params=parameters).json() == expected
        assert client.post(f"{BIRDS}/search", json=parameters).json() == expected

    def test_why_a_filter_matches_nothing(self, client):
        for place, request in (
            ("search", {"query": "bird"}),
            ("compare", {"query": "bird"}),
            ("similar", {"id": "a"}),
        ):
            sent = request | {"where": "tags = 'rde'"}
            for _ in range(2):  # it is repeated
                (warning,) = client.post(f"{BIRDS}/{place}", json=sent).json()["warnings"]
                assert warning == "where: no document matches"

    def test_several_queries(self, client):
        answers = client.post(f"{BIRDS}/search", json={"query": ["bird", "fish"], "k": 1}).json()
        assert [answer["query"] for answer in answers] == ["bird", "fish"]
        assert answers[0]["hits"][0]["id"] == "a"

    def test_mistakes(self, client):
        headers = {"Content-Type": "application/json"}
        for request in (
            {"query": "x", "k": 0},
            {"query": "x", "unknown": 1},
            {"query": ""},
            {"query": []},
            {"query": "x" * 10_001},
            {"query": ["x"] * 101},
            {"query": "x", "k": 900, "offset": 101},
            {"query": ["red"] * 40, "k": 501},
            {"query": "x\ud800"},
            [],
        ):
            content = json.dumps(request).encode()
            assert is_problem(client.post(f"{BIRDS}/search", content=content, headers=headers), 422)

    def test_what_is_unknown(self, client):
        assert is_problem(client.get(f"{BIRDS}/search?query=x&filter=y"), 422, "filter")
        assert is_problem(client.get(f"{BIRDS}/similar?id=a&mode=bm25"), 422, "mode")
        assert is_problem(client.get("/v2"), 404)
        assert is_problem(client.patch(f"{BIRDS}/search"), 405)

    def test_errors_of_an_index(self, client, monkeypatch):
        def broken(*arguments, **options):
            raise error

        monkeypatch.setattr(Index, "search_many", broken)
        error = EncoderError("the model is gone")
        assert is_problem(client.get(f"{BIRDS}/search?query=x"), 503, "is gone")
        error = RuntimeError("a secret")
        response = client.get(f"{BIRDS}/search?query=x")
        assert response.status_code == 500
        assert "secret" not in response.text


class TestDocuments:
    def test_a_document_as_it_was_added(self, client):
        assert client.get(f"{BIRDS}/documents?id=c/1").json() == {
            "id": "c/1",
            "title": None,
            "text": "a red fish swims",
            "metadata": {"year": 2010, "tags": ["red"]},
        }
        assert is_problem(client.get(f"{BIRDS}/documents?id=z"), 404)

    def test_similar_documents(self, client, path):
        with Index.open(path) as index:
            expected = [hit.to_dict() for hit in index.more_like("a", 1)]
        answer = client.get(f"{BIRDS}/similar?id=a&k=1").json()
        assert answer == {"id": "a", "hits": expected}
        assert client.post(f"{BIRDS}/similar", json={"id": "a", "k": 1}).json() == answer
        assert is_problem(client.get(f"{BIRDS}/similar?id=z"), 404)
        assert is_problem(client.get(f"{BIRDS}/similar?id=a&k=9999"), 422)

    def test_ids_of_any_characters(self, serve):
        client = serve(writable=True)
        for name in ("50%2Fb", "a b+c", "ä?#;&", "a/../b", ""):
            parameters = {"params": {"id": name}}
            put = client.put(f"{BIRDS}/documents", json={"text": "a green bird"}, **parameters)
            assert put.status_code == (204 if name else 422)
            if name:
                assert client.get(f"{BIRDS}/documents", **parameters).json()["id"] == name
                assert client.get(f"{BIRDS}/similar", **parameters).json()["id"] == name

    def test_compare(self, client):
        answer = client.post(f"{BIRDS}/compare", json={"query": "red bird", "k": 1}).json()
        assert set(answer["systems"]) == {"hashing", "bm25"}
        assert [hits[0]["id"] for hits in answer["systems"].values()] == ["a", "a"]
        assert is_problem(client.post(f"{BIRDS}/compare", json={"query": ["a", "b"]}), 422)

    def test_read_only_by_default(self, client):
        assert is_problem(client.put(f"{BIRDS}/documents?id=z", json={"text": "x"}), 405)
        assert is_problem(client.delete(f"{BIRDS}/documents?id=a"), 405)

    def test_writing(self, serve):
        client = serve(writable=True)
        document = {"text": "a green bird", "title": "Finch", "metadata": {"year": 2020}}
        assert client.put(f"{BIRDS}/documents?id=new", json=document).status_code == 204
        assert client.get(f"{BIRDS}/documents?id=new").json() == {"id": "new", **document}
        found = client.get(f"{BIRDS}/search", params={"query": "green bird", "k": 1}).json()
        assert found["hits"][0]["id"] == "new"
        assert client.delete(f"{BIRDS}/documents?id=new").status_code == 204
        assert is_problem(client.delete(f"{BIRDS}/documents?id=new"), 404)
        assert is_problem(client.put(f"{BIRDS}/documents?id=new", json={"text": " "}), 422)

    def test_second_writer_is_refused(self, serve, path, writing_elsewhere):
        client = serve(writable=True)
        with writing_elsewhere(path):
            response = client.put(f"{BIRDS}/documents?id=new", json={"text": "x"})
        assert is_problem(response, 409)


def test_a_commit_of_another_process_is_found(client, path):
    with Index.open(path) as index:
        index.add([Document("new", "a purple whale")])
    hits = client.get(f"{BIRDS}/search", params={"query": "purple whale", "k": 1}).json()["hits"]
    assert hits[0]["id"] == "new"


def test_recreated_index_is_reopened(client, path):
    shutil.rmtree(path)
    gone = client.get(f"{BIRDS}/search", params={"query": "bird"})
    assert is_problem(gone, 503)
    with Index.create(path, "hashing:64") as index:
        index.add([Document("new", "a green bird")])
        expected = index.search("bird").to_dict()
    assert client.get(f"{BIRDS}/search", params={"query": "bird"}).json() == expected
    assert is_problem(client.get(f"{BIRDS}/documents?id=a"), 404)


def test_indexes_health_and_schema(client):
    (served,) = client.get("/v1/indexes").json()
    assert served["name"] == "birds"
    assert served["documents"] == 3
    assert served["spaces"][0]["name"] == "hashing"
    assert served["fields"]["tags"]
    assert client.get("/health").json()["status"] == "ok"
    paths = client.get("/openapi.json").json()["paths"]
    assert "/v1/indexes/{name}/search" in paths


def test_documentation_loads_nothing_from_other_hosts(client):
    page = client.get("/docs").text
    used = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert used
    for place in used:
        assert client.get(place).status_code == 200, place  # no other host: they are paths


def test_one_unavailable_index_does_not_hide_the_others(path, tmp_path):
    with Index.create(tmp_path / "fish", "hashing") as index:
        index.add(DOCUMENTS)
    app = create_app({"birds": path, "fish": tmp_path / "fish"})
    with TestClient(app, base_url=BASE) as client:
        (tmp_path / "fish").rename(tmp_path / "elsewhere")
        assert [one["name"] for one in client.get("/v1/indexes").json()] == ["birds"]
        assert is_problem(client.get("/v1/indexes/fish/search?query=red"), 503)
        path.rename(tmp_path / "gone")
        assert is_problem(client.get("/v1/indexes"), 503)


@pytest.mark.parametrize(("token", "schemes"), [(None, None), ("secret", {"HTTPBearer"})])
def test_the_schema_describes_errors_and_the_token(path, token, schemes):
    schema = create_app({"birds": path}, Settings(token=token)).openapi()
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert list(operation["responses"]["4XX"]["content"]) == ["application/problem+json"]
    assert schema["components"].get("securitySchemes", {}).keys() == (schemes or set())
