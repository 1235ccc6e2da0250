"""A small index, and clients of services that serve it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from birds import DOCUMENTS, asking

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
    from semsearch.service import Settings

    with ExitStack() as clients:
        yield lambda **given: clients.enter_context(asking({"birds": path}, Settings(**given)))


@pytest.fixture
def client(serve):
    return serve()
