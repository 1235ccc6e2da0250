"""Files at URLs, from a local test server."""

from __future__ import annotations

import gzip
import time
from http.server import BaseHTTPRequestHandler

import pytest

from semsearch.corpus import Corpus
from semsearch.records import Document
from tests.conftest import serving
from tests.corpus.conftest import refused

CSV = b"id,text\n1,One.\n2,Two.\n"
FILES = {
    "/films.csv": ("text/csv", CSV),
    "/films.csv.gz": ("application/gzip", gzip.compress(CSV)),
    "/export?format=csv&n=2": ("text/csv; charset=utf-8", CSV),
    "/page": ("text/html; charset=utf-8", "<title>Page</title><h1>Ärger</h1>Text.".encode()),
    "/a%20b/page.html": ("application/octet-stream", b"<title>Page</title>Text."),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        place = self.path
        if place in ("/moved", "/circle"):
            self.answer(302, Location="/films.csv" if place == "/moved" else "/circle")
        elif place == "/secret.csv" and not self.headers.get("Authorization"):
            self.send_error(401)
        elif place == "/silent.csv":
            self.answer(200)
            time.sleep(1)
        elif place == "/cut.csv":
            self.answer(200, **{"Content-Length": "1000"})
            self.wfile.write(CSV)
        elif found := FILES.get("/films.csv" if place == "/secret.csv" else place):
            self.answer(200, **{"Content-Type": found[0]})
            self.wfile.write(found[1])
        else:
            self.send_error(404)

    def answer(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


@pytest.fixture(scope="module")
def site():
    with serving(Handler) as address:
        yield address


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("/films.csv", "films"),
        ("/films.csv.gz", "films"),
        ("/export?format=csv&n=2", "export"),
        ("/moved", "moved"),
    ],
)
def test_a_table(site, place, name):
    corpus = Corpus(site + place)
    documents = list(corpus)
    assert documents == [Document("1", "One."), Document("2", "Two.")]
    assert documents[0].source == f"{site}{place}:2"
    assert (corpus.name, corpus.fraction_read) == (name, None)


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
