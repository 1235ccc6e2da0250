"""Milvus servers, and what is common to their tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from milvus_server import Server


@pytest.fixture(scope="session")
def make_server(package, tmp_path_factory):
    """Starts servers, each with data of its own."""
    package("pymilvus")
    package("milvus")
    servers = []

    def make(folder: Path | None = None, **settings: object) -> Server:
        lock = tmp_path_factory.getbasetemp().parent / "milvus.lock"
        server = Server(folder or tmp_path_factory.mktemp("milvus"), lock, **settings)
        servers.append(server)
        server.start()
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def server(make_server) -> Server:
    """One for all tests: they choose indexes of their own, and start it again if they kill it."""
    return make_server()


@pytest.fixture
def lite(package, tmp_path) -> str:
    """The address of an index that is not there yet, in a file of milvus-lite."""
    package("pymilvus")
    package("milvus_lite")
    return f"milvus-lite:{tmp_path}/file.db/one"
