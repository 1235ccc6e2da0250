"""Fixtures for tests on Milvus servers and milvus-lite."""

from __future__ import annotations

import pytest
from milvus_server import Server

from semsearch import Document, Index

DOCUMENTS = [
    Document("a", "a red bird sings", "Robin", {"year": 1999, "tags": ["red"]}),
    Document("b", "a blue fish swims", "Carp", {"year": 2005, "tags": []}),
    Document("c", "a red fish swims", None, {"year": 2010, "tags": ["red"]}),
]


@pytest.fixture(scope="session")
def make_server(package, tmp_path_factory):
    """Start servers, each with its own data."""
    package("pymilvus")
    package("milvus")
    servers = []

    def make(**settings: object) -> Server:
        lock = tmp_path_factory.getbasetemp().parent / "milvus.lock"
        server = Server(tmp_path_factory.mktemp("milvus"), lock, **settings)
        servers.append(server)
        server.start()
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def server(make_server) -> Server:
    """One server for all tests: each uses its own indexes, and restarts a server that it killed."""
    return make_server()


@pytest.fixture
def lite(package, tmp_path):
    """The address of an index to create in a milvus-lite file, which is closed after the test."""
    package("pymilvus")
    package("milvus_lite")
    yield f"milvus-lite:{tmp_path}/file.db/one"
    from milvus_lite.server_manager import server_manager_instance

    server_manager_instance.release_server(str(tmp_path / "file.db"))


@pytest.fixture
def documents() -> list[Document]:
    """Those of `lite_index`."""
    return list(DOCUMENTS)


@pytest.fixture
def lite_index(lite):
    """An index of three documents in a milvus-lite file."""
    with Index.create(lite, "hashing:64") as index:
        index.add(DOCUMENTS)
        yield index
