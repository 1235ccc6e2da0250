"""Access to a server that requires a token and TLS."""

from __future__ import annotations

import subprocess
import time

import pytest

from semsearch import Document, Index
from semsearch.errors import ArgumentError, StoreUnreachableError

pytestmark = pytest.mark.nightly

#: The token of the user that every server has.
TOKEN = "root:Milvus"


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


@pytest.fixture(scope="module")
def guarded(make_server, authority):
    """A server that requires a token and has the authority's certificate."""
    return make_server(
        authorization_enabled=True,
        tls_mode=1,
        server_pem_path=str(authority / "ca.pem"),
        server_key_path=str(authority / "server.key"),
        ca_pem_path=str(authority / "ca.pem"),
    )


@pytest.fixture
def environment(monkeypatch, authority):
    """Valid access settings; tests override the one that they break."""
    monkeypatch.setenv("SEMSEARCH_MILVUS_TOKEN", TOKEN)
    monkeypatch.setenv("SEMSEARCH_MILVUS_CA", str(authority / "ca.pem"))
    monkeypatch.setenv("SEMSEARCH_MILVUS_TIMEOUT", "20")
    return monkeypatch


def test_valid_token_and_certificate(guarded, environment):
    address = guarded.address()
    with Index.create(address, "hashing:64") as index:
        index.add([Document("a", "amber"), Document("b", "birch")])
    with Index.open(address) as index:
        assert index.search("birch", 1)[0].document_id == "b"


@pytest.mark.parametrize("token", ["root:wrong", ""])
def test_a_wrong_token(guarded, environment, token):
    """Refused at once, without retries."""
    environment.setenv("SEMSEARCH_MILVUS_TOKEN", token)
    started = time.monotonic()
    with pytest.raises(StoreUnreachableError, match="SEMSEARCH_MILVUS_TOKEN"):
        Index.create(guarded.address(), "hashing:64")
    assert time.monotonic() - started < 10


def test_a_certificate_of_another_authority(guarded, environment, tmp_path):
    other = make_certificate(tmp_path / "other")
    match = r"^the certificate of https://127\.0\.0\.1:\d+"
    environment.setenv("SEMSEARCH_MILVUS_CA", str(other / "ca.pem"))
    with pytest.raises(StoreUnreachableError, match=match):
        Index.open(guarded.address())
    environment.delenv("SEMSEARCH_MILVUS_CA")  # the system's authorities
    environment.setenv("SEMSEARCH_MILVUS_TLS", "1")
    with pytest.raises(StoreUnreachableError, match=match):
        Index.open(guarded.address())


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_a_certificate(environment, tmp_path, package, content):
    package("pymilvus")
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    environment.setenv("SEMSEARCH_MILVUS_CA", str(path))
    with pytest.raises(ArgumentError, match="SEMSEARCH_MILVUS_CA"):
        Index.open("milvus://127.0.0.1:1/news")
