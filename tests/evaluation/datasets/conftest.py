"""A file on a local server whose answers can break off, and a fixture that writes small files."""

from __future__ import annotations

import hashlib
from http.server import BaseHTTPRequestHandler

import pytest

from semsearch.evaluation.datasets.registry import KnownFile
from tests.conftest import serving


class Served:
    """One file and how it is served."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.breaks_after: list[int] = []  #: sizes at which the next answers break off
        self.url = ""

    def file(self, path: str, content: bytes | None = None) -> KnownFile:
        known = self.content if content is None else content
        return KnownFile(path, len(known), hashlib.sha256(known).hexdigest(), self.url)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Served

    def do_GET(self):
        served, body = self.served, self.served.content
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if served.breaks_after:
            body = body[: served.breaks_after.pop(0)]
        self.wfile.write(body)


@pytest.fixture
def served(monkeypatch, tmp_path):
    """A file of 3,000,000 bytes on a server; the data folder is the test's."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    file = Served(bytes(range(250)) * 12_000)
    with serving(type("Handler", (_Handler,), {"served": file})) as address:
        file.url = f"{address}/a.bin"
        yield file


@pytest.fixture
def put(tmp_path):
    """Writes a file into the test's folder: bytes unchanged, text as UTF-8."""

    def write(name, content):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write
