"""The HTTP interface, called through its ASGI application."""

from __future__ import annotations

import json
import re
import shutil
from urllib.parse import quote

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
        ("documents/z", 404, "document-not-found"),
        ("search?query=x&k=many", 422, None),  # rejected before it reaches an index
        ("../cats/search?query=x", 404, None),
        ("nothing", 404, None),
    ):
        response = client.get(f"{BIRDS}/{place}")
        assert (response.status_code, response.json().get("code")) == (status, code), place


class TestSearch:
    def test_hits_are_those_of_the_index(self, client, path):
        with Index.open(path) as index:
            expected = index.search("red fish", k=2, where="year > 2000").to_dict()
        parameters = {"query": "red fish", "k": 2, "where": "year > 2000"}
        assert client.get(f"{BIRDS}/search", params=parameters).json() == expected
        assert client.post(f"{BIRDS}/search", json=parameters).json() == expected

    def test_required_phrases_and_operators(self, client, path):
        parameters = {"query": "red fish", "require": ["a red", "fish"]}
        with Index.open(path) as index:
            expected = index.search(**parameters).to_dict()
        assert 0 < len(expected["hits"]) < 3
        assert client.get(f"{BIRDS}/search", params=parameters).json() == expected
        assert client.post(f"{BIRDS}/search", json=parameters).json() == expected

    def test_why_a_filter_matches_nothing(self, client):
        for place, request in (
            ("search", {"query": "bird"}),
            ("compare", {"query": "bird"}),
            ("documents/a/similar", {}),
        ):
            sent = request | {"where": "tags = 'rde'"}
            for _ in range(2):  # it is repeated
                (warning,) = client.post(f"{BIRDS}/{place}", json=sent).json()["warnings"]
                assert warning == "where: no document matches"

    def test_several_queries(self, client):
        answers = client.post(f"{BIRDS}/search", json={"query": ["bird", "fish"], "k": 1}).json()
        assert [answer["query"] for answer in answers] == ["bird", "fish"]
        assert answers[0]["hits"][0]["id"] == "a"
        same = client.get(f"{BIRDS}/search", params={"query": ["bird", "fish"], "k": 1}).json()
        assert same == answers

    def test_mistakes(self, client):
        headers = {"Content-Type": "application/json"}
        for request in (
            {"query": "x", "k": 0},
            {"query": "x", "k": True},
            {"query": "x", "fusion": "rrf"},
            {"query": "x", "unknown": 1},
            {"query": ""},
            {"query": []},
            {"query": "x" * 10_001},
            {"query": ["x"] * 101},
            {"query": "x", "k": 900, "offset": 101},
            {"query": "x\ud800"},
            [],
        ):
            content = json.dumps(request).encode()
            assert is_problem(client.post(f"{BIRDS}/search", content=content, headers=headers), 422)

    def test_parameters_that_would_be_ignored(self, client):
        place = f"{BIRDS}/search"
        repeated = client.get(f"{place}?query=x&where=year=1999&where=year=2005")
        assert is_problem(repeated, 422, "where")
        beside = client.post(f"{place}?k=1", json={"query": "x"})
        assert is_problem(beside, 422)
        for place in (f"{BIRDS}/documents/a", f"{BIRDS}/fields", "/v1/indexes"):
            assert is_problem(client.get(f"{place}?k=3"), 422, "k")

    def test_parameters_that_writing_would_ignore(self, serve):
        client, place = serve(writable=True), f"{BIRDS}/documents/a"
        put = client.put(f"{place}?title=hi", json={"text": "x"})
        assert is_problem(put, 422)
        assert is_problem(client.delete(f"{place}?where=x"), 422, "where")
        assert client.get(place).json()["text"] != "x"

    def test_parameters_that_are_not_utf_8(self, client):
        assert is_problem(client.get(f"{BIRDS}/search?query=caf%e9"), 400, "UTF-8")
        assert client.get(f"{BIRDS}/search?query=caf%c3%a9").json()["query"] == "café"

    def test_body_that_is_not_json(self, client):
        place, content = f"{BIRDS}/search", b'{"query": '
        json_ = {"Content-Type": "application/json"}
        response = client.post(place, content=content, headers=json_)
        assert is_problem(response, 422, "character 10")
        response = client.post(place, content=content, headers={"Content-Type": "text/plain"})
        assert is_problem(response, 415)

    def test_an_unknown_path_and_method(self, client):
        assert is_problem(client.get("/v2"), 404)
        refused = client.patch(f"{BIRDS}/search")
        assert is_problem(refused, 405)
        assert refused.headers["allow"] == "GET, HEAD, POST"


def test_internal_error_reveals_no_details(client, path, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("a secret")

    monkeypatch.setattr(Index, "search_many", broken)
    response = client.get(f"{BIRDS}/search", params={"query": "x"})
    assert is_problem(response, 500)
    assert "secret" not in response.text


def test_encoder_error_is_reported(client, monkeypatch):
    def broken(*arguments, **options):
        raise EncoderError("the model is gone")

    monkeypatch.setattr(Index, "search_many", broken)
    assert is_problem(client.get(f"{BIRDS}/search", params={"query": "x"}), 503, "is gone")


class TestDocuments:
    def test_a_document_as_it_was_added(self, client):
        assert client.get(f"{BIRDS}/documents/c/1").json() == {
            "id": "c/1",
            "title": None,
            "text": "a red fish swims",
            "metadata": {"year": 2010, "tags": ["red"]},
        }
        assert client.get(f"{BIRDS}/documents/c%2F1").json()["id"] == "c/1"
        assert is_problem(client.get(f"{BIRDS}/documents/z"), 404)

    def test_similar_documents(self, client, path):
        with Index.open(path) as index:
            expected = [hit.to_dict() for hit in index.more_like("a", 1)]
        answer = client.get(f"{BIRDS}/documents/a/similar", params={"k": 1}).json()
        assert answer == {"id": "a", "hits": expected}
        assert client.post(f"{BIRDS}/documents/a/similar", json={"k": 1}).json() == answer
        assert is_problem(client.get(f"{BIRDS}/documents/z/similar"), 404)
        assert is_problem(client.get(f"{BIRDS}/documents/a/similar", params={"k": 9999}), 422)

    def test_ids_of_any_characters(self, serve):
        client = serve(writable=True)
        for name in ("50%2Fb", "a b+c", "ä?#;", "a/../b"):
            place = f"{BIRDS}/documents/{quote(name, safe='')}"
            assert client.put(place, json={"text": "a green bird"}).status_code == 204
            assert client.get(place).json()["id"] == name
            assert client.get(f"{place}/similar").json()["id"] == name

    def test_an_id_that_is_not_utf_8_is_refused(self, serve):
        client = serve(writable=True)
        for name in ("M%FCller", "%ED%A0%80"):
            place = f"{BIRDS}/documents/{name}"
            assert is_problem(client.put(place, json={"text": "a green bird"}), 400)
            assert is_problem(client.get(place), 400)
        assert client.get("/v1/indexes").json()[0]["documents"] == len(DOCUMENTS)

    def test_compare(self, client):
        answer = client.post(f"{BIRDS}/compare", json={"query": "red bird", "k": 1}).json()
        assert set(answer["systems"]) == {"hashing", "bm25"}
        assert [hits[0]["id"] for hits in answer["systems"].values()] == ["a", "a"]
        assert is_problem(client.post(f"{BIRDS}/compare", json={"query": ["a", "b"]}), 422)

    def test_read_only_by_default(self, client):
        assert is_problem(client.put(f"{BIRDS}/documents/z", json={"text": "x"}), 405)
        assert is_problem(client.delete(f"{BIRDS}/documents/a"), 405)

    def test_writing(self, serve):
        client = serve(writable=True)
        document = {"text": "a green bird", "title": "Finch", "metadata": {"year": 2020}}
        assert client.put(f"{BIRDS}/documents/new", json=document).status_code == 204
        assert client.get(f"{BIRDS}/documents/new").json() == {"id": "new", **document}
        found = client.get(f"{BIRDS}/search", params={"query": "green bird", "k": 1}).json()
        assert found["hits"][0]["id"] == "new"
        assert client.delete(f"{BIRDS}/documents/new").status_code == 204
        assert is_problem(client.delete(f"{BIRDS}/documents/new"), 404)
        assert is_problem(client.put(f"{BIRDS}/documents/new", json={"text": " "}), 422)

    def test_second_writer_is_refused(self, serve, path, writing_elsewhere):
        client = serve(writable=True)
        with writing_elsewhere(path):
            response = client.put(f"{BIRDS}/documents/new", json={"text": "x"})
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
    assert is_problem(client.get(f"{BIRDS}/documents/a"), 404)


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


def test_metrics(client):
    client.get(f"{BIRDS}/search", params={"query": "bird"})
    client.get(f"{BIRDS}/search")
    client.request("BREW", "/health")
    client.get("/health", headers={"Host": "evil.example"})
    metrics = client.get("/metrics").text
    route = 'route="/v1/indexes/{name}/search"'
    assert f'semsearch_requests_total{{method="GET",{route},status="200"}} 1.0' in metrics
    assert f'semsearch_requests_total{{method="GET",{route},status="422"}} 1.0' in metrics
    assert 'method="other"' in metrics
    assert 'semsearch_requests_total{method="GET",route="none",status="403"} 1.0' in metrics
    assert "BREW" not in metrics
    assert "semsearch_queries_encoded_together_count 1.0" in metrics


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
    assert "HTTPValidationError" not in json.dumps(schema["paths"])
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert list(operation["responses"]["422"]["content"]) == ["application/problem+json"]
    assert schema["components"].get("securitySchemes", {}).keys() == (schemes or set())


def test_the_hits_of_an_answer_are_limited(serve):
    client = serve(max_answer=100)
    for queries, k, status in [(10, 10, 200), (10, 11, 422), (1, 1000, 200)]:
        body = {"query": ["red"] * queries, "k": k}
        answer = client.post(f"{BIRDS}/search", json=body)
        assert answer.status_code == status
