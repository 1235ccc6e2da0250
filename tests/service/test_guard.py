"""Requests that are refused before they are processed: hosts, origins, tokens, sizes, times."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from birds import BIRDS, is_problem, running

from semsearch import Index
from semsearch.errors import ArgumentError

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
import httpx
from starlette.staticfiles import StaticFiles

from semsearch.service.settings import settings_for
from semsearch.service.worker import Worker


class TestGuard:
    def test_a_foreign_host(self, client):
        """DNS rebinding: an attacker's host name resolves to this machine."""
        assert client.get("/health", headers={"Host": "evil.example"}).status_code == 400
        for host in ("127.0.0.1:8080", "[::1]:8080", "LocalHost"):
            assert client.get("/health", headers={"Host": host}).status_code == 200

    def test_origins(self, serve):
        """Pages of other origins cannot read answers."""
        client = serve(origins=["https://good.example"])
        for origin, allowed in {
            "https://good.example": True,
            "https://evil.example": False,
        }.items():
            answer = client.get("/health", headers={"Origin": origin})
            assert ("access-control-allow-origin" in answer.headers) is allowed

    def test_pages_of_other_sites_are_refused(self, serve):
        """Browsers send their requests, without an origin for images and links."""
        client = serve(origins=["https://good.example"])
        document = f"{BIRDS}/documents?id=a"
        for site in ("cross-site", "same-site"):
            headers = {"Sec-Fetch-Site": site}
            assert is_problem(client.get(document, headers=headers), 403)
            assert client.get("/", headers=headers).status_code == 200
            headers["Origin"] = "https://good.example"
            assert client.get(document, headers=headers).status_code == 200
        for site in ("same-origin", "none"):
            assert client.get(document, headers={"Sec-Fetch-Site": site}).status_code == 200

    def test_all_answers_restrict_browsers(self, serve):
        client = serve(token="secret")
        for path in ("/", "/page/main.js", "/health", "/v1/indexes", "/docs", "/nowhere"):
            headers = client.get(path).headers
            assert headers["x-content-type-options"] == "nosniff", path
            policy = headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy
            assert ("'unsafe-inline'" in policy) == (path == "/docs")

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
        assert client.post(f"{BIRDS}/search", json=request).status_code == 413
        chunks = (b"x" * 100 for _ in range(11))  # without a length
        assert client.post(f"{BIRDS}/search", content=chunks).status_code == 413

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
        response = client.get(f"{BIRDS}/documents?id=a")
        health = client.get("/health")
        leave.set()
        first.join()
        assert is_problem(response, 429)
        assert response.headers["retry-after"] == "1"
        assert health.status_code == 200
        assert client.get(f"{BIRDS}/documents?id=a").status_code == 200

    def test_open_paths_do_not_count(self, serve, monkeypatch):
        """Slow readers of the page would shut out clients with a token."""
        client = serve(concurrency=1)
        entered, leave = threading.Event(), threading.Event()
        real = StaticFiles.get_response

        async def slow(files, path, scope):
            entered.set()
            while not leave.is_set():
                await asyncio.sleep(0.01)
            return await real(files, path, scope)

        monkeypatch.setattr(StaticFiles, "get_response", slow)
        first = threading.Thread(target=client.get, args=["/page/main.js"])
        first.start()
        assert entered.wait(10)
        answer = client.get(f"{BIRDS}/documents?id=a")
        leave.set()
        first.join()
        assert answer.status_code == 200

    def test_timeout(self, serve, monkeypatch):
        client = serve(seconds=0.1)
        monkeypatch.setattr(Index, "get", lambda index, name: time.sleep(0.5))
        assert is_problem(client.get(f"{BIRDS}/documents?id=a"), 504)
        assert client.get("/health").status_code == 200


def test_requests_that_wait_when_the_service_closes_are_answered(path, monkeypatch):
    leave, queued = threading.Event(), threading.Semaphore(0)
    search = Worker.search

    async def queue(worker, queries, options):
        queued.release()
        return await search(worker, queries, options)

    def search_slowly(index, queries, **options):
        assert leave.wait(20)
        return []

    with (
        ThreadPoolExecutor() as clients,
        running({"birds": path}, timeout_graceful_shutdown=1) as started,
    ):
        server, port = started
        monkeypatch.setattr(Worker, "search", queue)
        monkeypatch.setattr(Index, "search_many", search_slowly)
        place = f"http://localhost:{port}{BIRDS}/search?query=red"
        answers = [clients.submit(httpx.get, place) for _ in range(3)]
        for _ in answers:
            assert queued.acquire(timeout=10)
        server.should_exit = True
        for answer in answers:
            assert is_problem(answer.result(timeout=10), 503)
        leave.set()


def test_work_for_clients_that_have_gone_is_dropped(path, monkeypatch):
    leave, begun = threading.Event(), threading.Event()
    queued, gone, searched = threading.Semaphore(0), threading.Semaphore(0), []
    search, search_many = Worker.search, Index.search_many

    async def queue(worker, queries, options):
        queued.release()
        try:
            return await search(worker, queries, options)
        except asyncio.CancelledError:
            gone.release()
            raise

    def search_slowly(index, queries, **options):
        searched.extend(queries)
        begun.set()
        assert leave.wait(20)
        return search_many(index, queries, **options)

    with running({"birds": path}) as (_, port):
        monkeypatch.setattr(Worker, "search", queue)
        monkeypatch.setattr(Index, "search_many", search_slowly)
        head = " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for request in (
            f"GET {BIRDS}/search?query=first{head}\r\n",
            f"GET {BIRDS}/search?query=second{head}\r\n",
            f'POST {BIRDS}/search{head}Content-Length: 18\r\n\r\n{{"query": "third"}}',
        ):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(request.encode())
                assert queued.acquire(timeout=10)
                assert begun.wait(10)  # the others wait for the first one
        for _ in range(3):
            assert gone.acquire(timeout=10)
        leave.set()
        assert httpx.get(f"http://localhost:{port}{BIRDS}/search?query=red").status_code == 200
    assert searched == ["first", "red"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "search.example.org"])
def test_other_machines_need_a_token(host):
    for token in (None, " "):
        with pytest.raises(ArgumentError):
            settings_for(host, token)
    assert settings_for(host, "secret\n").token == "secret"


def test_hosts():
    assert "192.168.0.7" in settings_for("192.168.0.7", "x").hosts
    assert "0.0.0.0" not in settings_for("0.0.0.0", "x").hosts
    assert "search.example.org" in settings_for("0.0.0.0", "x", ["search.example.org"]).hosts
    assert "[::1]" in settings_for("::1", None).hosts
