"""The HTTP interface, called through its ASGI application."""

from __future__ import annotations

import json
import re
import shutil
from hashlib import sha256

import pytest
from birds import BIRDS, DOCUMENTS, asking, is_problem

from semsearch import Document, Index

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
from semsearch.service import Settings, create_app


def test_errors(client):
    for place, status, code, detail in (
        ("search?query=x&where=yaer>1", 422, "invalid-filter", "yaer"),
        ("search?query=x&where=year>", 422, "invalid-filter", ""),
        ("search?query=x&space=minilm", 422, "unusable-space", "minilm"),
        ("documents?id=z", 404, "document-not-found", ""),
        ("similar?id=z", 404, "document-not-found", ""),
        ("similar?id=a&k=9999", 422, None, "k"),  # rejected before it reaches an index
        ("similar?id=a&mode=bm25", 422, None, "mode"),
        ("search?query=x&k=many", 422, None, "k"),
        ("search?query=x&filter=y", 422, None, "filter"),
        ("../cats/search?query=x", 404, None, "cats"),
        ("../cats/overview", 404, None, "cats"),
        ("nothing", 404, None, ""),
    ):
        response = client.get(f"{BIRDS}/{place}")
        assert is_problem(response, status, detail)
        assert response.json().get("code") == code, place
    assert is_problem(client.patch(f"{BIRDS}/search"), 405)
    for method in ("PUT", "POST", "DELETE"):  # it is read-only
        sent = {"params": {"id": "a"}, "json": {"text": "x"}}
        response = client.request(method, f"{BIRDS}/documents", **sent)
        assert is_problem(response, 403, "--writable")
    assert client.get(f"{BIRDS}/documents").json()["total"] == 3


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
        several = client.post(f"{BIRDS}/search", json=parameters | {"query": ["bird", "red fish"]})
        assert several.json()[1] == expected

    def test_why_a_filter_matches_nothing(self, client):
        for place, request in (
            ("search", {"query": "bird"}),
            ("compare", {"query": "bird"}),
            ("similar", {"id": "a"}),
        ):
            sent = request | {"where": "tags = 'rde'"}
            for _ in range(2):  # it is repeated
                (warning,) = client.post(f"{BIRDS}/{place}", json=sent).json()["warnings"]
                assert warning == "no document matches the filter"

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


class TestDocuments:
    def test_similar_documents(self, client, path):
        with Index.open(path) as index:
            expected = [hit.to_dict() for hit in index.more_like("a", 1)]
        answer = client.get(f"{BIRDS}/similar?id=a&k=1").json()
        assert answer == {"id": "a", "hits": expected}
        assert client.post(f"{BIRDS}/similar", json={"id": "a", "k": 1}).json() == answer

    def test_systems_are_compared(self, client):
        answer = client.post(f"{BIRDS}/compare", json={"query": "red bird", "k": 1}).json()
        assert set(answer["systems"]) == {"hashing", "bm25", "hybrid"}
        assert [hits[0]["id"] for hits in answer["systems"].values()] == ["a", "a", "a"]
        assert is_problem(client.post(f"{BIRDS}/compare", json={"query": ["a", "b"]}), 422)

    @pytest.mark.parametrize("name", ["new", "c/1", "50%2Fb", "a b+c", "ä?#;&", "a/../b"])
    def test_writing(self, serve, name):
        client, place = serve(writable=True), {"url": f"{BIRDS}/documents", "params": {"id": name}}
        document = {"text": "a green bird", "title": "Finch", "metadata": {"year": 2020}}
        assert client.put(**place, json=document).status_code == 204
        assert client.get(**place).json() == {"id": name, **document}
        found = client.get(f"{BIRDS}/search", params={"query": "green bird", "k": 1}).json()
        assert found["hits"][0]["id"] == name
        assert client.get(f"{BIRDS}/similar", params={"id": name}).json()["id"] == name
        assert client.delete(**place).json() == {"deleted": 1}
        assert is_problem(client.delete(**place), 404)
        assert is_problem(client.put(**place, json={"text": " "}), 422)
        assert is_problem(client.put(f"{BIRDS}/documents?id=", json=document), 422)

    @pytest.mark.parametrize("as_lines", [False, True])
    def test_several_documents_are_answered_one_by_one(self, serve, as_lines):
        client = serve(writable=True)
        items = [
            {"id": "a", "text": "a red bird sings", "title": "Robin", "metadata": {"year": 1}},
            {"id": "new", "text": "a green bird"},
            {"text": "no id"},
            {"id": "d", "text": " "},
            {"id": "e", "text": "x", "year": 1999},
            {"id": "new", "text": "the same id"},
            "no object",
        ]
        sent = {"json": items}
        if as_lines:
            lines = "\n".join(map(json.dumps, items)) + "\n\n{"
            sent = {"content": lines, "headers": {"Content-Type": "application/x-ndjson"}}
        answer = client.post(f"{BIRDS}/documents", **sent).json()
        assert [answer[name] for name in ("added", "changed", "unchanged")] == [2, 1, 0]
        ids = [one["id"] for one in answer["documents"] if "error" not in one]
        derived = sha256(b"no id").hexdigest()[:16]
        assert ids == ["a", "new", derived]
        errors = [one["error"] for one in answer["documents"] if "error" in one]
        assert answer["failed"] == len(errors) == 4 + as_lines
        for error, named in zip(errors, ("empty text", "year", "'new'", "", ""), strict=False):
            assert named in error
        found = client.get(f"{BIRDS}/documents", params={"id": "new"}).json()
        assert found["text"] == "a green bird"

    def test_one_document_and_bodies_that_are_none(self, serve):
        client, place = serve(writable=True), f"{BIRDS}/documents"
        one = client.post(place, json={"id": "one", "text": "a green bird"}).json()
        assert one == {
            "added": 1,
            "changed": 0,
            "unchanged": 0,
            "failed": 0,
            "documents": [{"id": "one"}],
        }
        assert is_problem(client.post(place, data={"text": "x"}), 415, "application/x-ndjson")
        json_type = {"Content-Type": "application/json"}
        assert is_problem(client.post(place, content="{", headers=json_type), 422)
        assert client.post(place, json={"text": "x" * (1 << 20)}).status_code == 413

    def test_pages_of_documents_and_removal_by_filter(self, serve, path):
        client, place = serve(writable=True), f"{BIRDS}/documents"
        with Index.open(path) as index:
            index.add([Document(f"n{n}", f"bird {n}", None, {"year": 2020}) for n in range(5)])
        pages, offset = [], 0
        while offset is not None:
            found = client.get(place, params={"limit": 3, "offset": offset, "where": "year > 2000"})
            pages.append([one["id"] for one in found.json()["documents"]])
            assert found.json()["total"] == 7
            offset = found.json()["next"]
        assert pages == [["b", "c/1", "n0"], ["n1", "n2", "n3"], ["n4"]]
        whole = client.get(place).json()["documents"][1]
        assert whole == {
            "id": "b",
            "title": "Carp",
            "text": "a blue fish swims",
            "metadata": {"year": 2005, "tags": []},
        }
        for where, status in (("yaer > 1", 422), ("", 422)):
            assert is_problem(client.delete(place, params={"where": where}), status)
        assert is_problem(client.delete(place), 422)
        assert client.delete(place, params={"where": "year = 2020"}).json() == {"deleted": 5}
        assert client.delete(place, params={"where": "year = 2020"}).json() == {"deleted": 0}
        assert client.get(place).json()["total"] == 3

    def test_second_writer_is_refused(self, serve, path, writing_elsewhere):
        client = serve(writable=True)
        with writing_elsewhere(path):
            response = client.put(f"{BIRDS}/documents?id=new", json={"text": "x"})
        assert is_problem(response, 409)


def test_what_other_processes_do_to_an_index_is_found(client, path):
    with Index.open(path) as index:
        index.add([Document("new", "a purple whale")])
    place = f"{BIRDS}/search?query=purple+whale&k=1"
    assert client.get(place).json()["hits"][0]["id"] == "new"
    shutil.rmtree(path)
    assert is_problem(client.get(place), 503)
    with Index.create(path, "hashing:64") as index:
        index.add([Document("new", "a green bird")])
        expected = index.search("purple whale", k=1).to_dict()
    assert client.get(place).json() == expected
    assert is_problem(client.get(f"{BIRDS}/documents?id=a"), 404)


def test_one_unavailable_index_does_not_hide_the_others(path, tmp_path):
    with Index.create(tmp_path / "fish", "hashing") as index:
        index.add(DOCUMENTS)
    with asking({"birds": path, "fish": tmp_path / "fish"}) as client:
        (tmp_path / "fish").rename(tmp_path / "elsewhere")
        assert [one["name"] for one in client.get("/v1/indexes").json()] == ["birds"]
        assert is_problem(client.get("/v1/indexes/fish/search?query=red"), 503)
        path.rename(tmp_path / "gone")
        assert is_problem(client.get("/v1/indexes"), 503)


def test_indexes_health_and_documentation(client):
    (served,) = client.get("/v1/indexes").json()
    assert (served["name"], served["documents"]) == ("birds", 3)
    assert served["spaces"][0]["name"] == "hashing"
    assert served["fields"]["tags"]
    assert client.get("/health").json()["status"] == "ok"
    used = re.findall(r'(?:src|href)="([^"]+)"', client.get("/docs").text)
    assert used
    for place in used:
        assert client.get(place).status_code == 200, place  # no other host: they are paths


@pytest.mark.parametrize(("token", "schemes"), [(None, None), ("secret", {"HTTPBearer"})])
def test_the_schema_describes_errors_and_the_token(path, token, schemes):
    schema = create_app({"birds": path}, Settings(token=token)).openapi()
    assert "/v1/indexes/{name}/search" in schema["paths"]
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert list(operation["responses"]["4XX"]["content"]) == ["application/problem+json"]
    assert schema["components"].get("securitySchemes", {}).keys() == (schemes or set())
