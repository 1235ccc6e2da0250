"""A file on a local server whose answers can break off, and a fixture that writes small files."""

from __future__ import annotations

import hashlib
from http.server import BaseHTTPRequestHandler

import pytest

from semsearch.evaluation.datasets.registry import KnownFile
from tests.conftest import serving


class Served(BaseHTTPRequestHandler):
    """One file and how it is served."""

    protocol_version = "HTTP/1.1"
    content = bytes(range(250)) * 12_000
    breaks_after: int | None = None  #: the size at which the next answer breaks off
    url: str

    @classmethod
    def file(cls, path: str, content: bytes = content) -> KnownFile:
        return KnownFile(path, len(content), hashlib.sha256(content).hexdigest(), cls.url)

    def do_GET(self):
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content[: self.breaks_after])
        type(self).breaks_after = None


@pytest.fixture
def served(monkeypatch, tmp_path):
    """A file of 3,000,000 bytes on a server; the data folder is the test's."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    with serving(Served) as address:
        Served.url = f"{address}/a.bin"
        yield Served


@pytest.fixture
def put(tmp_path):
    """Writes a file into the test's folder: bytes unchanged, text as UTF-8."""

    def write(name, content):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write
