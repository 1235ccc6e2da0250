"""A real server: crashes and restarts, tokens and certificates."""

from __future__ import annotations

import subprocess
import time

import pytest

from semsearch import Document, Index
from semsearch.errors import IndexStoreError
from semsearch.storage.milvus import connection

WORDS = ["amber", "birch", "cedar", "delta", "fjord", "grove"]
DOCUMENTS = [
    Document(f"d{number}", f"{WORDS[number % 6]} {WORDS[number % 5]} {number}", None, {"n": number})
    for number in range(1000)
]

#: The token of the user that every server has.
TOKEN = "root:Milvus"


def once_loaded(read):
    """What can be read as soon as a server that restarted has loaded the index."""
    until = time.monotonic() + 120
    while True:
        try:
            return read()
        except IndexStoreError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


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
        index._store._connection.timeout = 30
        server.restart()
        held = once_loaded(lambda: [document.id for document in index])
        count = reported[-1].documents
        assert held[:count] == [document.id for document in DOCUMENTS[:count]]
        with index.writer() as writer:
            writer.sync(DOCUMENTS)
            assert writer.verify() == []
        assert sorted(index, key=lambda one: one.metadata["n"]) == DOCUMENTS
        assert index.search(DOCUMENTS[-1].text, 1)[0].score == pytest.approx(1, abs=1e-5)


@pytest.fixture(scope="module")
def certificate(program, tmp_path_factory):
    """A folder with a certificate for 127.0.0.1, its own authority, and its key."""
    program("openssl")
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject]
    files = ["-keyout", folder / "server.key", "-out", folder / "ca.pem"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return folder


@pytest.mark.nightly
def test_access(make_server, certificate, monkeypatch):
    """A server that requires a token and has a certificate of its own authority."""
    guarded = make_server(
        authorization_enabled=True,
        tls_mode=1,
        server_pem_path=str(certificate / "ca.pem"),
        server_key_path=str(certificate / "server.key"),
        ca_pem_path=str(certificate / "ca.pem"),
    )
    address = guarded.address()
    monkeypatch.setattr(connection, "TIMEOUT_SECONDS", 20)
    monkeypatch.setenv("SEMSEARCH_MILVUS_TOKEN", TOKEN)
    monkeypatch.setenv("SEMSEARCH_MILVUS_TLS", "1")
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(certificate / "ca.pem"))
    with Index.create(address, "hashing:64") as index:
        index.add([Document("a", "amber"), Document("b", "birch")])
    with Index.open(address) as index:
        assert index.search("birch", 1)[0].document_id == "b"
    for token in ("root:wrong", ""):
        monkeypatch.setenv("SEMSEARCH_MILVUS_TOKEN", token)
        with pytest.raises(IndexStoreError, match="SEMSEARCH_MILVUS_TOKEN"):
            Index.open(address)
    monkeypatch.setenv("SEMSEARCH_MILVUS_TOKEN", TOKEN)
    monkeypatch.setenv("SEMSEARCH_MILVUS_TLS", "0")
    with pytest.raises(IndexStoreError, match="SEMSEARCH_MILVUS_TLS"):
        Index.open(address)
