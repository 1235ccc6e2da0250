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
def server(package, tmp_path_factory):
    """One server for all tests: each uses its own indexes, and restarts a server that it killed."""
    package("pymilvus")
    package("milvus")
    lock = tmp_path_factory.getbasetemp().parent / "milvus.lock"
    server = Server(tmp_path_factory.mktemp("milvus"), lock)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def lite(package, tmp_path) -> str:
    """The address of an index to create in a milvus-lite file."""
    package("pymilvus")
    package("milvus_lite")
    return f"milvus-lite:{tmp_path}/file.db/one"


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
