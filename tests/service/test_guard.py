"""Requests that are refused before they are processed: hosts, origins, tokens, sizes, times."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from birds import BIRDS, is_problem, running

from semsearch import Index
from semsearch.errors import ArgumentError

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
import httpx
from starlette.staticfiles import StaticFiles

from semsearch.service import connections
from semsearch.service.settings import settings_for
from semsearch.service.worker import Worker

DOCUMENT = f"{BIRDS}/documents?id=a"
GOOD = {"Origin": "https://good.example"}
EVIL = {"Origin": "https://evil.example"}


class TestGuard:
    def test_a_foreign_host(self, client):
        """DNS rebinding: an attacker's host name resolves to this machine."""
        for host in ("evil.example", "localhost:evil.example", "[::1]evil.example"):
            assert client.get("/health", headers={"Host": host}).status_code == 400
        for host in ("127.0.0.1:8080", "[::1]:8080", "LocalHost"):
            assert client.get("/health", headers={"Host": host}).status_code == 200

    def test_origins(self, serve):
        """Pages of others can read neither answers nor refusals; preflights need no token."""
        client = serve(token="secret", origins=[GOOD["Origin"]])
        asked = {"Access-Control-Request-Method": "POST"}
        asked["Access-Control-Request-Headers"] = "authorization"
        for origin, status in ((GOOD, 200), (EVIL, 400)):
            health = client.get("/health", headers=origin)
            refusal = client.get("/v1/indexes", headers=origin)
            preflight = client.options(f"{BIRDS}/search", headers=origin | asked)
            assert is_problem(refusal, 401)
            assert preflight.status_code == status
            for answer in (health, refusal, preflight):
                allowed = answer.headers.get("access-control-allow-origin")
                assert allowed == (GOOD["Origin"] if origin is GOOD else None)

    def test_pages_of_other_sites_are_refused(self, serve):
        """Browsers send their requests, without an origin for images and links."""
        client = serve(origins=[GOOD["Origin"]])
        for site in ("cross-site", "same-site"):
            headers = {"Sec-Fetch-Site": site}
            assert is_problem(client.get(DOCUMENT, headers=headers), 403)
            assert client.get("/", headers=headers).status_code == 200
            assert client.get(DOCUMENT, headers=headers | GOOD).status_code == 200
        for site in ("same-origin", "none"):
            assert client.get(DOCUMENT, headers={"Sec-Fetch-Site": site}).status_code == 200

    def test_all_answers_restrict_browsers(self, serve):
        client = serve(token="secret")
        for path in ("/", "/page/main.js", "/health", "/v1/indexes", "/docs", "/nowhere"):
            headers = client.get(path).headers
            assert headers["x-content-type-options"] == "nosniff", path
            policy = headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy
            assert ("'unsafe-inline'" in policy) == (path == "/docs")

    @pytest.mark.parametrize("token", ["secret", "gehéim"])
    def test_a_token(self, serve, token):
        client = serve(token=token)
        assert client.get("/health").status_code == 200
        response = client.get("/v1/indexes")
        assert is_problem(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"
        for sent, status in {
            f"Bearer {token}".encode(): 200,
            f"bearer {token}".encode(): 200,
            token.encode(): 401,
            b"Bearer wrong": 401,
            b"Bearer ": 401,
            "Bearer sécret".encode("latin-1"): 401,
        }.items():
            answer = client.get("/v1/indexes", headers={"Authorization": sent})
            assert answer.status_code == status

    def test_a_large_body(self, serve):
        client = serve(max_body=1000)
        request = {"query": "x" * 1000}
        assert client.post(f"{BIRDS}/search", json=request).status_code == 413
        chunks = (b"x" * 100 for _ in range(11))  # without a length
        assert client.post(f"{BIRDS}/search", content=chunks).status_code == 413

    def test_too_many_requests_at_once(self, serve, monkeypatch):
        """Slow readers of the page do not count: they would shut out clients with a token."""
        client = serve(concurrency=1)
        entered, leave = threading.Semaphore(0), threading.Event()
        real = StaticFiles.get_response

        def slow(index):
            entered.release()
            assert leave.wait(10)
            return []

        async def slow_file(files, path, scope):
            await asyncio.to_thread(slow, None)
            return await real(files, path, scope)

        monkeypatch.setattr(Index, "info", slow)
        monkeypatch.setattr(StaticFiles, "get_response", slow_file)
        with ThreadPoolExecutor() as clients:
            statuses = []
            for place in ("/page/main.js", "/v1/indexes"):
                clients.submit(client.get, place)
                assert entered.acquire(timeout=10)
                response = client.get(DOCUMENT)
                statuses.append(response.status_code)
            health = client.get("/health")
            leave.set()
        assert statuses == [200, 429]
        assert is_problem(response, 429)
        assert response.headers["retry-after"] == "1"
        assert health.status_code == client.get(DOCUMENT).status_code == 200

    def test_timeout(self, serve, monkeypatch):
        client = serve(seconds=0.1)
        monkeypatch.setattr(Index, "get", lambda index, name: time.sleep(0.5))
        assert is_problem(client.get(DOCUMENT), 504)
        assert client.get("/health").status_code == 200


def test_searches_that_wait_when_their_clients_or_the_service_go(path, monkeypatch):
    """The clients' work is dropped; the service answers that it closes."""
    begun, leave, searched = threading.Event(), threading.Event(), []
    queued, gone = threading.Semaphore(0), threading.Semaphore(0)
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

    monkeypatch.setattr(Worker, "search", queue)
    monkeypatch.setattr(Index, "search_many", search_slowly)
    served = running({"birds": path}, timeout_graceful_shutdown=1)
    with ThreadPoolExecutor() as clients, served as (server, port):
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
        assert all(gone.acquire(timeout=10) for _ in range(3))
        leave.set()
        place = f"http://localhost:{port}{BIRDS}/search?query=red"
        assert httpx.get(place).status_code == 200
        assert queued.acquire(timeout=10)
        assert searched == ["first", "red"]
        leave.clear()
        answers = [clients.submit(httpx.get, place) for _ in range(3)]
        assert all(queued.acquire(timeout=10) for _ in answers)
        server.should_exit = True
        for answer in answers:
            assert is_problem(answer.result(timeout=10), 503)
        leave.set()


def test_clients_that_send_no_whole_head(path, monkeypatch):
    """They are disconnected, also after an answer; one too many is at once."""
    monkeypatch.setattr(connections, "SECONDS_FOR_HEAD", 0.5)
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 2)
    with running({"birds": path}, http=connections.LimitedConnection) as (_, port):
        first, second, third = (socket.create_connection(("127.0.0.1", port)) for _ in range(3))
        with first, second, third:
            with suppress(ConnectionResetError):
                assert third.recv(1) == b""
            first.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal")
            second.sendall(b"GET /health HTTP/1.1\r\nHost: local")
            for client in (first, second):
                client.settimeout(10)
            assert first.recv(1000).startswith(b"HTTP/1.1 200")
            while first.recv(1000):  # the rest of the answer
                pass
            assert second.recv(1) == b""


@pytest.mark.parametrize(
    ("host", "own"),
    [("0.0.0.0", set()), ("::", set()), ("192.168.0.7", {"192.168.0.7"}), ("2::1", {"[2::1]"})],
)
def test_other_machines_need_a_token(host, own):
    for token in (None, " "):
        with pytest.raises(ArgumentError):
            settings_for(host, token)
    settings = settings_for(host, "secret\n", ["search.example.org"])
    assert settings.token == "secret"
    assert settings.hosts == {"localhost", "127.0.0.1", "[::1]", "search.example.org"} | own
    assert settings_for("::1", None).token is settings_for("localhost", None).token is None
