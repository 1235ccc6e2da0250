"""Files at URLs, from a local test server."""

from __future__ import annotations

import gzip
import re
import time
from http.server import BaseHTTPRequestHandler

import pytest

from semsearch.corpus import Corpus
from semsearch.records import Document
from tests.conftest import serving
from tests.corpus.conftest import refused

CSV = b"id,text\n1,One.\n2,Two.\n"
PAGE = "<title>Page</title><h1>Ärger</h1>Text.".encode()
#: The headers and the content of each place.
ANSWERS = {
    "/films.csv": ({"Content-Type": "text/csv"}, CSV),
    "/films.csv.gz": ({"Content-Type": "application/gzip"}, gzip.compress(CSV)),
    "/export?format=csv&n=2": ({"Content-Type": "text/csv; charset=utf-8"}, CSV),
    "/page": ({"Content-Type": "text/html; charset=utf-8"}, PAGE),
    "/a%20b/page.html": ({"Content-Type": "application/octet-stream"}, PAGE),
    "/moved": ({"Location": "/films.csv"}, b""),
    "/circle": ({"Location": "/circle"}, b""),
    "/secret.csv": ({}, CSV),  # with credentials only
    "/silent.csv": ({}, CSV),  # after a second
    "/cut.csv": ({"Content-Length": "1000"}, CSV),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        headers, content = ANSWERS.get(self.path, (None, b""))
        if headers is None or (self.path == "/secret.csv" and "Authorization" not in self.headers):
            self.send_error(404)
            return
        self.send_response(302 if "Location" in headers else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        time.sleep(self.path == "/silent.csv")
        self.wfile.write(content)


@pytest.fixture(scope="module")
def site():
    with serving(Handler) as address:
        yield address


@pytest.mark.parametrize(
    "place", ["/films.csv", "/films.csv.gz", "/export?format=csv&n=2", "/moved"]
)
def test_a_table(site, place):
    corpus = Corpus(site + place)
    documents = list(corpus)
    assert documents == [Document("1", "One."), Document("2", "Two.")]
    assert documents[0].source == f"{site}{place}:2"
    assert (corpus.name, corpus.fraction_read) == (re.match(r"/(\w+)", place)[1], None)


@pytest.mark.parametrize("place", ["/page", "/a%20b/page.html"])
def test_a_page(site, place):
    (document,) = Corpus(site + place + "#part")
    assert document.id == f"{site}{place}#section=1"
    assert document.title.startswith("Page")
    assert document.metadata["file"] == site + place


def test_credentials_are_sent_but_not_shown(site):
    url = site.replace("//", "//me:secret@")
    assert next(iter(Corpus(f"{url}/secret.csv"))).source == f"{site}/secret.csv:2"
    assert "cret" not in refused(f"{site.replace('//', '//me:se@cret@')}/gone")


def test_failed_downloads(site, monkeypatch):
    places = [f"{site}/{place}" for place in ("secret.csv", "circle", "cut.csv")]
    for url in (*places, "http://127.0.0.1:1/x", "http://[/x", "http:///x"):
        refused(url)
    monkeypatch.setattr("semsearch.corpus.sources.MAX_SILENCE_SECONDS", 0.2)
    assert refused(f"{site}/silent.csv").endswith("no answer in 0 s")
