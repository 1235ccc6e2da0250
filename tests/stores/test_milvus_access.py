"""Access to a server that requires a token and TLS."""

from __future__ import annotations

import datetime
import ipaddress
import pickle
import time

import pytest

from semsearch import Document, Index
from semsearch.errors import ArgumentError, StoreUnreachableError

pytestmark = pytest.mark.nightly

#: The token of the user that every server has.
TOKEN = "root:Milvus"


class Authority:
    """A certificate authority, with a certificate for 127.0.0.1.

    Args:
        folder: directory of its files: `ca.pem`, `server.pem` and `server.key`.
        x509: the module `cryptography.x509`.
    """

    def __init__(self, folder, x509):
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        folder.mkdir()
        self.folder = folder
        names, keys = [], []
        for name in ("authority", "server"):
            names.append(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            keys.append(ec.generate_private_key(ec.SECP256R1()))
        now = datetime.datetime.now(datetime.UTC)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        for place, name in enumerate(("ca", "server")):
            certificate = (
                x509.CertificateBuilder()
                .subject_name(names[place])
                .issuer_name(names[0])
                .public_key(keys[place].public_key())
                .serial_number(x509.random_serial_number())
                .not_valid_before(now - datetime.timedelta(days=1))
                .not_valid_after(now + datetime.timedelta(days=1))
                .add_extension(x509.BasicConstraints(ca=not place, path_length=None), critical=True)
                .add_extension(x509.SubjectAlternativeName([address]), critical=False)
                .sign(keys[0], hashes.SHA256())
            )
            pem = certificate.public_bytes(serialization.Encoding.PEM)
            (folder / f"{name}.pem").write_bytes(pem)
        key = keys[1].private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (folder / "server.key").write_bytes(key)


@pytest.fixture(scope="module")
def x509(package):
    return package("cryptography.x509")


@pytest.fixture(scope="module")
def authority(x509, tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "one", x509)


@pytest.fixture(scope="module")
def guarded(make_server, authority):
    """A server that requires a token and has the authority's certificate."""
    folder = authority.folder
    return make_server(
        authorization_enabled=True,
        tls_mode=1,
        server_pem_path=str(folder / "server.pem"),
        server_key_path=str(folder / "server.key"),
        ca_pem_path=str(folder / "ca.pem"),
    )


@pytest.fixture
def environment(monkeypatch, authority):
    """Valid access settings; tests override the one that they break."""
    monkeypatch.setenv("SEMSEARCH_MILVUS_TOKEN", TOKEN)
    monkeypatch.setenv("SEMSEARCH_MILVUS_CA", str(authority.folder / "ca.pem"))
    monkeypatch.setenv("SEMSEARCH_MILVUS_TIMEOUT", "20")
    return monkeypatch


def test_valid_token_and_certificate(guarded, environment):
    address = guarded.address()
    with Index.create(address, "hashing:64") as index:
        index.add([Document("a", "amber"), Document("b", "birch")])
    with Index.open(address) as index:
        assert index.search("birch", 1)[0].document_id == "b"


def test_another_machine_gets_the_same_access(guarded, environment, authority, tmp_path):
    """With the writer's settings and the content of its certificate file."""
    with Index.create(guarded.address(), "hashing:64") as index, index._store.writer() as writer:
        share = pickle.loads(pickle.dumps(writer.share([])))  # noqa: S301 - ours
        for name in ("TOKEN", "TIMEOUT"):
            environment.delenv(f"SEMSEARCH_MILVUS_{name}")
        environment.setenv("SEMSEARCH_MILVUS_CA", str(tmp_path / "none"))
        remote = share.access.open()
        assert remote.vectors_of(["0" * 32]) == {}
        remote.close()
        writer.put_share(writer.write_share(share, {}))


@pytest.mark.parametrize("token", ["root:wrong", "", "no-such-key"])
def test_a_wrong_token(guarded, environment, token):
    """Refused at once, without retries."""
    environment.setenv("SEMSEARCH_MILVUS_TOKEN", token)
    started = time.monotonic()
    with pytest.raises(StoreUnreachableError, match="SEMSEARCH_MILVUS_TOKEN"):
        Index.create(guarded.address(), "hashing:64")
    assert time.monotonic() - started < 10


def test_a_user_without_rights(guarded, environment, authority):
    from pymilvus import MilvusClient

    address = guarded.address()
    with Index.create(address, "hashing:64") as index:
        index.add([Document("a", "amber")])
    certificate = str(authority.folder / "ca.pem")
    client = MilvusClient(
        f"https://127.0.0.1:{guarded.port}", token=TOKEN, server_pem_path=certificate
    )
    client.create_user("guest", "password")
    environment.setenv("SEMSEARCH_MILVUS_TOKEN", "guest:password")
    with Index.open(address) as index, pytest.raises(StoreUnreachableError):
        index.search("amber")


def test_a_certificate_of_another_authority(guarded, environment, x509, tmp_path):
    other = Authority(tmp_path / "other", x509)
    match = r"^the certificate of https://127\.0\.0\.1:\d+"
    environment.setenv("SEMSEARCH_MILVUS_CA", str(other.folder / "ca.pem"))
    with pytest.raises(StoreUnreachableError, match=match):
        Index.open(guarded.address())
    environment.delenv("SEMSEARCH_MILVUS_CA")  # the system's authorities
    environment.setenv("SEMSEARCH_MILVUS_TLS", "1")
    with pytest.raises(StoreUnreachableError, match=match):
        Index.open(guarded.address())


def test_the_server_does_not_answer_without_tls(guarded, environment):
    environment.delenv("SEMSEARCH_MILVUS_CA")
    environment.setenv("SEMSEARCH_MILVUS_TIMEOUT", "1")
    with pytest.raises(StoreUnreachableError, match="http://"):
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
