"""A real server: crashes and restarts, tokens and certificates."""

from __future__ import annotations

import subprocess
import threading
import time

import pytest

from semsearch import Document, Index
from semsearch.errors import ArgumentError, IndexStoreError, StoreUnreachableError

WORDS = ["amber", "birch", "cedar", "delta", "fjord", "grove"]
DOCUMENTS = [
    Document(f"d{number}", f"{WORDS[number % 6]} {WORDS[number % 5]} {number}", None, {"n": number})
    for number in range(1000)
]

#: The token of the user that every server has.
TOKEN = "root:Milvus"


@pytest.mark.nightly
def test_a_server_crash(server):
    """An error; after a restart, reported batches are there, and a sync completes the others."""
    reported = []

    def corpus():
        for number, document in enumerate(DOCUMENTS):
            if number == 800:
                server.kill()
                index._store._connection.timeout = 2
            yield document

    with Index.create(server.address(), "hashing:64") as index:
        started = time.monotonic()
        with pytest.raises(IndexStoreError):
            index.add(corpus(), on_batch=reported.append)
        with pytest.raises(IndexStoreError):
            index.search("amber")
        assert time.monotonic() - started < 60
        index._store._connection.timeout = 90
        restarting = threading.Thread(target=server.restart)
        restarting.start()
        held = [document.id for document in index]  # waits for the server
        restarting.join()
        count = reported[-1].documents
        assert held[:count] == [document.id for document in DOCUMENTS[:count]]
        with index.writer() as writer:
            writer.sync(DOCUMENTS)
            assert writer.verify() == []
        assert sorted(index, key=lambda one: one.metadata["n"]) == DOCUMENTS
        assert index.search(DOCUMENTS[-1].text, 1)[0].score == pytest.approx(1, abs=1e-5)


def make_certificate(folder):
    """A certificate for 127.0.0.1, its own authority, as `ca.pem`, with `server.key`."""
    folder.mkdir()
    subject = ["-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject]
    files = ["-keyout", folder / "server.key", "-out", folder / "ca.pem"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def authority(program, tmp_path_factory):
    program("openssl")
    return make_certificate(tmp_path_factory.mktemp("tls") / "one")


@pytest.mark.nightly
def test_access(make_server, authority, monkeypatch, tmp_path):
    """A server that requires a token and has a certificate of its own authority."""
    guarded = make_server(
        authorization_enabled=True,
        tls_mode=1,
        server_pem_path=str(authority / "ca.pem"),
        server_key_path=str(authority / "server.key"),
        ca_pem_path=str(authority / "ca.pem"),
    )
    address = guarded.address()
    monkeypatch.setenv("SEMSEARCH_MILVUS_TOKEN", TOKEN)
    monkeypatch.setenv("SEMSEARCH_MILVUS_CA", str(authority / "ca.pem"))
    monkeypatch.setenv("SEMSEARCH_MILVUS_TIMEOUT", "20")
    with Index.create(address, "hashing:64") as index:
        index.add([Document("a", "amber"), Document("b", "birch")])
    with Index.open(address) as index:
        assert index.search("birch", 1)[0].document_id == "b"
    for token in ("root:wrong", ""):
        monkeypatch.setenv("SEMSEARCH_MILVUS_TOKEN", token)
        with pytest.raises(StoreUnreachableError, match="SEMSEARCH_MILVUS_TOKEN"):
            Index.open(address)
    monkeypatch.setenv("SEMSEARCH_MILVUS_TOKEN", TOKEN)
    monkeypatch.setenv("SEMSEARCH_MILVUS_CA", str(make_certificate(tmp_path / "other") / "ca.pem"))
    with pytest.raises(StoreUnreachableError, match="SEMSEARCH_MILVUS_CA"):
        Index.open(address)


def test_a_file_that_is_no_certificate(package, monkeypatch, tmp_path):
    package("pymilvus")
    monkeypatch.setenv("SEMSEARCH_MILVUS_CA", str(tmp_path / "ca.pem"))
    with pytest.raises(ArgumentError, match="SEMSEARCH_MILVUS_CA"):
        Index.open("milvus://127.0.0.1:1/news")
