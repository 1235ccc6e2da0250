"""A small index, and clients of services that serve it."""

from __future__ import annotations

import logging

import pytest
from birds import BASE, DOCUMENTS

from semsearch import Index


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "birds", "hashing") as index:
        index.add(DOCUMENTS)
    return tmp_path / "birds"


@pytest.fixture
def serve(path):
    """Starts a service with the given settings and returns a client."""
    pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
    from fastapi.testclient import TestClient

    from semsearch.service import Settings, create_app

    clients = []

    def started(**settings):
        app = create_app({"birds": path}, Settings(**settings))
        client = TestClient(app, base_url=BASE, raise_server_exceptions=False)
        clients.append(client)
        return client.__enter__()

    yield started
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve):
    return serve()


@pytest.fixture
def warning_about_fish(monkeypatch):
    """Searches for "fish", and those together with it, log a warning."""
    search_many = Index.search_many

    def warned(index, queries, **options):
        if "fish" in queries:
            logging.getLogger("semsearch.index").warning("about fish")
        return search_many(index, queries, **options)

    monkeypatch.setattr(Index, "search_many", warned)
