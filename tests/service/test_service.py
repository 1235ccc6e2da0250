"""The HTTP interface, called through its ASGI application."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from http import HTTPStatus
from urllib.parse import quote

import pytest

from semsearch import Document, Index
from semsearch.errors import ArgumentError, EncoderError

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
from fastapi.testclient import TestClient

from semsearch.service import Settings, create_app
from semsearch.service.settings import settings_for

BASE = "http://localhost"
BIRDS = "/v1/indexes/birds"
DOCUMENTS = [
    Document("a", "a red bird sings", "Robin", {"year": 1999, "tags": ["red"]}),
    Document("b", "a blue fish swims", "Carp", {"year": 2005, "tags": []}),
    Document("c/1", "a red fish swims", None, {"year": 2010, "tags": ["red"]}),
]


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "birds", "hashing") as index:
        index.add(DOCUMENTS)
    return tmp_path / "birds"


@pytest.fixture
def serve(path):
    """Starts a service with the given settings and returns a client."""
    clients = []

    def started(**settings):
        app = create_app({"birds": path}, Settings(**settings))
        client = TestClient(app, base_url=BASE, raise_server_exceptions=False)
        clients.append(client)
        return client.__enter__()

    yield started
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve):
    return serve()


def is_problem(response, status, detail=""):
    """Check that a response is this problem, in the format of RFC 9457."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    content = response.json()
    assert content["status"] == status
    assert content["title"] == HTTPStatus(status).phrase
    assert detail in content["detail"]
    return True


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("search?query=x&where=yaer>1", "field-not-found"),
        ("search?query=x&where=year>", "invalid-filter"),
        ("search?query=x&space=minilm", "space-not-found"),
        ("documents/z", "document-not-found"),
        ("search?query=x&k=many", None),  # rejected before it reaches an index
        ("nothing", None),
    ],
)
def test_errors_have_codes(client, place, code):
    response = client.get(f"{BIRDS}/{place}")
    assert response.status_code in (404, 422)
    assert response.json().get("code") == code


class TestSearch:
    def test_hits_are_those_of_the_index(self, client, path):
        with Index.open(path) as index:
            expected = index.search("red fish", k=2, where="year > 2000").to_dict()
        parameters = {"query": "red fish", "k": 2, "where": "year > 2000"}
        assert client.get(f"{BIRDS}/search", params=parameters).json() == expected
        assert client.post(f"{BIRDS}/search", json=parameters).json() == expected

    def test_several_queries(self, client):
        answers = client.post(f"{BIRDS}/search", json={"query": ["bird", "fish"], "k": 1}).json()
        assert [answer["query"] for answer in answers] == ["bird", "fish"]
        assert answers[0]["hits"][0]["id"] == "a"
        same = client.get(f"{BIRDS}/search", params={"query": ["bird", "fish"], "k": 1}).json()
        assert same == answers

    def test_options(self, client):
        request = {"query": "red -bird", "mode": "hybrid", "explain": True, "offset": 1, "k": 5}
        answer = client.post(f"{BIRDS}/search", json=request).json()
        assert [hit["id"] for hit in answer["hits"]] == ["b"]
        assert answer["stages"]

    def test_invalid_filter_is_reported(self, client):
        response = client.get(f"{BIRDS}/search", params={"query": "x", "where": "yaer > 1"})
        assert is_problem(response, 422, "year")

    @pytest.mark.parametrize(
        "request_",
        [
            {"query": "x", "k": 0},
            {"query": "x", "mode": "magic"},
            {"query": "x", "unknown": 1},
            {"query": ""},
            {"query": []},
            {"query": "x", "space": "no such"},
            {"query": "x" * 10_001},
            {"query": ["x"] * 101},
            {"query": "x", "k": 900, "offset": 101},
            {"query": "x\ud800"},
            [],
        ],
    )
    def test_mistakes(self, client, request_):
        content = json.dumps(request_).encode()
        headers = {"Content-Type": "application/json"}
        assert is_problem(client.post(f"{BIRDS}/search", content=content, headers=headers), 422)

    def test_misspelt_parameter_is_reported(self, client):
        response = client.get(f"{BIRDS}/search", params={"query": "x", "kk": 3})
        assert is_problem(response, 422, "kk")
        assert is_problem(client.get(f"{BIRDS}/documents/a/similar", params={"kk": 3}), 422, "kk")

    def test_get_accepts_all_options(self, client, path):
        options = {"k": 2, "offset": 1, "mode": "hybrid", "fusion": "rrf", "dense_weight": 0.3}
        with Index.open(path) as index:
            expected = index.search("red fish", **options).to_dict()
        asked = client.get(f"{BIRDS}/search", params={"query": "red fish", **options})
        assert asked.json() == expected

    def test_body_that_is_not_json(self, client):
        place, content = f"{BIRDS}/search", b'{"query": '
        json_ = {"Content-Type": "application/json"}
        response = client.post(place, content=content, headers=json_)
        assert is_problem(response, 422, "the body is not JSON: Expecting value (character 10)")
        for kind in ("application/x-www-form-urlencoded", "text/plain; charset=utf-8"):
            response = client.post(place, content=content, headers={"Content-Type": kind})
            assert is_problem(response, 415, f"application/json, not {kind.partition(';')[0]}")

    def test_an_unknown_index(self, client):
        response = client.get("/v1/indexes/cats/search", params={"query": "x"})
        assert is_problem(response, 404, "indexes: birds")

    def test_an_unknown_path_and_method(self, client):
        assert is_problem(client.get("/v2"), 404)
        assert is_problem(client.patch(f"{BIRDS}/search"), 405)


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
        assert is_problem(client.get(f"{BIRDS}/documents/z"), 404, "no document 'z'")

    def test_similar_documents(self, client, path):
        with Index.open(path) as index:
            expected = [hit.to_dict() for hit in index.more_like("a", 1)]
        answer = client.get(f"{BIRDS}/documents/a/similar", params={"k": 1}).json()
        assert answer == {"id": "a", "hits": expected}
        assert is_problem(client.get(f"{BIRDS}/documents/z/similar"), 404)
        assert is_problem(client.get(f"{BIRDS}/documents/a/similar", params={"k": 9999}), 422)

    @pytest.mark.parametrize("name", ["a/similar", "similar", "/similar", "a/similar/similar"])
    def test_id_that_ends_in_similar(self, serve, name):
        client = serve(writable=True)
        place = f"{BIRDS}/documents/{quote(name, safe='')}"
        assert client.put(place, json={"text": "a green bird"}).status_code == 204
        assert client.get(place).json()["id"] == name
        assert client.get(f"{place}/similar").json()["id"] == name
        similar = client.get(f"{BIRDS}/documents/a/similar").json()
        assert similar["id"] == "a"
        assert name in [hit["id"] for hit in similar["hits"]]
        assert client.delete(place).status_code == 204
        assert is_problem(client.get(place), 404, name)

    def test_similar_documents_cannot_be_written(self, serve):
        client = serve(writable=True)
        assert is_problem(client.put(f"{BIRDS}/documents/a/similar", json={"text": "x"}), 405)
        assert is_problem(client.delete(f"{BIRDS}/documents/a/similar"), 405)

    @pytest.mark.parametrize("name", ["50%", "50%2Fb", "a b+c", "ä?#;", "a/../b", "ü/%"])
    def test_ids_of_any_characters(self, serve, name):
        client = serve(writable=True)
        place = f"{BIRDS}/documents/{quote(name, safe='')}"
        assert client.put(place, json={"text": "a green bird"}).status_code == 204
        assert client.get(place).json()["id"] == name
        assert client.get(f"{place}/similar").json()["id"] == name

    def test_needless_percent_encoding_is_accepted(self, client):
        assert client.get("/v1/%69ndexes/bird%73/documents/%61").json()["id"] == "a"
        assert client.get(f"{BIRDS}/documents/a/%73imilar").json()["id"] == "a"

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
        assert is_problem(client.put(f"{BIRDS}/documents/new", json={"text": " "}), 422, "empty")

    def test_second_writer_is_refused(self, serve, path):
        client = serve(writable=True)
        with Index.open(path) as index, index.writer():
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
    assert is_problem(gone, 503, f"no index at {path}")
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


def test_agents_without_the_extra(monkeypatch, serve):
    monkeypatch.setattr("semsearch.service.app.find_spec", lambda name: None)
    assert is_problem(serve().post("/mcp", json={}), 501, "pip install 'semsearch[mcp]'")


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


class TestGuard:
    def test_a_foreign_host(self, client):
        """DNS rebinding: an attacker's host name resolves to this machine."""
        assert is_problem(client.get("/health", headers={"Host": "evil.example"}), 403)
        assert client.get("/health", headers={"Host": "127.0.0.1:8080"}).status_code == 200
        assert client.get("/health", headers={"Host": "[::1]:8080"}).status_code == 200
        assert client.get("/health", headers={"Host": "LocalHost"}).status_code == 200

    def test_a_foreign_origin(self, client):
        assert is_problem(client.get("/health", headers={"Origin": "https://evil.example"}), 403)
        assert is_problem(client.get("/health", headers={"Origin": "null"}), 403)
        response = client.get("/health", headers={"Origin": BASE})
        assert response.status_code == 200
        assert "access-control-allow-origin" not in response.headers

    def test_allowed_origin(self, serve):
        client = serve(origins=["https://good.example"])
        response = client.get("/health", headers={"Origin": "https://good.example"})
        assert response.headers["access-control-allow-origin"] == "https://good.example"
        assert is_problem(client.get("/health", headers={"Origin": "https://evil.example"}), 403)

    def test_a_preflight_needs_no_token(self, serve):
        client = serve(token="secret", origins=["https://good.example"])
        asked = {"Access-Control-Request-Method": "POST"}
        asked["Access-Control-Request-Headers"] = "authorization"
        for origin, status in {"https://good.example": 200, "https://evil.example": 400}.items():
            headers = {"Origin": origin, **asked}
            answer = client.options(f"{BIRDS}/search", headers=headers)
            assert answer.status_code == status
            assert ("access-control-allow-origin" in answer.headers) == (status == 200)

    def test_refusals_are_readable_by_allowed_origins(self, serve):
        client = serve(token="secret", origins=["https://good.example"])
        response = client.get("/v1/indexes", headers={"Origin": "https://good.example"})
        assert is_problem(response, 401)
        assert response.headers["access-control-allow-origin"] == "https://good.example"

    def test_a_token(self, serve):
        client = serve(token="secret")
        assert client.get("/health").status_code == 200
        response = client.get("/v1/indexes")
        assert is_problem(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"
        for wrong in ("Bearer wrong", "secret", "Bearer ", "Bearer sécret"):
            headers = {"Authorization": wrong.encode("latin-1")}
            assert is_problem(client.get("/v1/indexes", headers=headers), 401)
        for right in ("Bearer secret", "bearer secret"):
            headers = {"Authorization": right}
            assert client.get("/v1/indexes", headers=headers).status_code == 200

    def test_a_token_of_any_characters(self, serve):
        headers = {"Authorization": "Bearer gehéim".encode()}
        assert serve(token="gehéim").get("/v1/indexes", headers=headers).status_code == 200

    def test_a_large_body(self, serve):
        client = serve(max_body=1000)
        request = {"query": "x" * 1000}
        assert is_problem(client.post(f"{BIRDS}/search", json=request), 413, "1,000 bytes")
        chunks = (b"x" * 100 for _ in range(11))  # without a length
        assert is_problem(client.post(f"{BIRDS}/search", content=chunks), 413)

    def test_too_many_requests_at_once(self, serve, monkeypatch):
        client = serve(concurrency=1)
        entered, leave = threading.Event(), threading.Event()

        def slow(self):
            entered.set()
            assert leave.wait(10)
            return []

        monkeypatch.setattr(Index, "info", slow)
        first = threading.Thread(target=client.get, args=["/v1/indexes"])
        first.start()
        assert entered.wait(10)
        response = client.get(f"{BIRDS}/documents/a")
        health = client.get("/health")
        leave.set()
        first.join()
        assert is_problem(response, 429)
        assert response.headers["retry-after"] == "1"
        assert health.status_code == 200
        assert client.get(f"{BIRDS}/documents/a").status_code == 200

    def test_timeout(self, serve, monkeypatch):
        client = serve(seconds=0.1)
        monkeypatch.setattr(Index, "get", lambda index, name: time.sleep(0.5))
        assert is_problem(client.get(f"{BIRDS}/documents/a"), 504, "within 0.1 s")
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "search.example.org"])
def test_other_machines_need_a_token(host):
    with pytest.raises(ArgumentError, match="SEMSEARCH_TOKEN"):
        settings_for(host, None)
    with pytest.raises(ArgumentError, match="SEMSEARCH_TOKEN"):
        settings_for(host, " ")
    assert settings_for(host, "secret\n").token == "secret"


def test_hosts():
    assert "192.168.0.7" in settings_for("192.168.0.7", "x").hosts
    assert "0.0.0.0" not in settings_for("0.0.0.0", "x").hosts
    assert "search.example.org" in settings_for("0.0.0.0", "x", ["search.example.org"]).hosts
    assert "[::1]" in settings_for("::1", None).hosts


def test_failing_query_does_not_fail_its_batch(path, monkeypatch):
    import asyncio

    from semsearch.service.worker import Worker

    sizes = []
    worker = Worker(path, sizes.append)
    started, leave = threading.Event(), threading.Event()

    def busy(index):
        started.set()
        assert leave.wait(10)

    async def asked():
        first = asyncio.create_task(worker.call(busy))
        await asyncio.to_thread(started.wait, 10)
        searches = [
            asyncio.create_task(worker.search([word], {"k": 1}))
            for word in ("bird", "fish", "", "red")
        ]
        await asyncio.sleep(0.05)
        leave.set()
        await first
        return await asyncio.gather(*searches, return_exceptions=True)

    bird, fish, empty, red = asyncio.run(asked())
    worker.close()
    assert bird[0][0].document_id == "a"
    assert fish[0].query == "fish"
    assert isinstance(empty, ArgumentError)  # does not fail the others
    assert red[0].query == "red"
    assert sizes == [1, 1, 1]  # one of the batch failed, so each was encoded alone


def test_waiting_queries_are_encoded_together(path):
    import asyncio

    from semsearch.service.worker import Worker

    sizes = []
    worker = Worker(path, sizes.append)

    async def asked():
        words = ["bird", "fish", "red"]
        blocked = asyncio.create_task(worker.call(lambda index: time.sleep(0.2)))
        await asyncio.sleep(0.05)
        searches = [worker.search([word], {"k": 1}) for word in words]
        searches.append(worker.search(words, {"k": 2}))
        found = await asyncio.gather(*searches)
        await blocked
        return found

    found = asyncio.run(asked())
    worker.close()
    assert [hits[0].query for hits in found] == ["bird", "fish", "red", "bird"]
    assert sizes == [3, 3]


def test_batch_waits_for_as_many_requests_as_the_previous_one(path, monkeypatch):
    import asyncio

    from semsearch.service import worker as module

    monkeypatch.setattr(module, "LONGEST_WAIT", 60)
    sizes = []
    worker = module.Worker(path, sizes.append)

    async def asked():
        search = lambda word: worker.search([word], {"k": 1})  # noqa: E731
        for _ in range(3):
            await search("bird")  # no wait after a single request
        blocked = asyncio.create_task(worker.call(lambda index: time.sleep(0.2)))
        await asyncio.sleep(0.05)
        await asyncio.gather(search("bird"), search("fish"), blocked)
        first = asyncio.create_task(search("bird"))
        await asyncio.sleep(0.05)
        assert not first.done()
        await asyncio.gather(first, search("fish"))
        monkeypatch.setattr(module, "LONGEST_WAIT", 0.01)
        await search("red")  # the second request does not come

    asyncio.run(asyncio.wait_for(asked(), 30))
    worker.close()
    assert sizes == [1, 1, 1, 2, 2, 1]


@pytest.mark.parametrize("origin", ["http://[::1", "http://[", "null", "http://elsewhere"])
def test_a_foreign_or_malformed_origin_is_refused(client, origin):
    assert is_problem(client.get("/health", headers={"Origin": origin}), 403, "is not allowed")


@pytest.mark.parametrize("error", [type("PanicException", (BaseException,), {}), StopIteration])
def test_any_error_leaves_the_service_running(client, monkeypatch, error):
    def fail(*_, **__):
        raise error("panicked")

    for name in ("search_many", "more_like"):
        with monkeypatch.context() as patch:
            patch.setattr(Index, name, fail)
            for place in ("search?query=red", "documents/a/similar"):
                status = client.get(f"{BIRDS}/{place}").status_code
                assert status == (500 if ("search" in place) == (name == "search_many") else 200)
    assert client.get(f"{BIRDS}/search?query=red").status_code == 200


def test_fields_of_a_writer_that_goes_on(client, path, monkeypatch):
    """Its fields are read before its documents, in another state."""
    info = Index.info

    def then_written(index):
        found = info(index)
        with Index.open(path) as other:
            other.add([Document("new", "a green frog", metadata={"colour": "green"})])
        return found

    monkeypatch.setattr(Index, "info", then_written)
    assert {field["name"] for field in client.get(f"{BIRDS}/fields").json()} == {"year", "tags"}


def test_one_unavailable_index_does_not_hide_the_others(path, tmp_path):
    with Index.create(tmp_path / "fish", "hashing") as index:
        index.add(DOCUMENTS)
    app = create_app({"birds": path, "fish": tmp_path / "fish"})
    with TestClient(app, base_url=BASE) as client:
        (tmp_path / "fish").rename(tmp_path / "elsewhere")
        assert [one["name"] for one in client.get("/v1/indexes").json()] == ["birds"]
        is_problem(client.get("/v1/indexes/fish/search?query=red"), 503)
        path.rename(tmp_path / "gone")
        is_problem(client.get("/v1/indexes"), 503)


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
    assert (
        "at most 100 hits in all"
        in client.post(f"{BIRDS}/search", json={"query": ["red"] * 50, "k": 9}).json()["detail"]
    )
