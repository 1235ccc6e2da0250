"""A small index that tests of the service ask, a server, and a check of its error responses."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from http import HTTPStatus

from semsearch import Document

BIRDS = "/v1/indexes/birds"
DOCUMENTS = [
    Document("a", "a red bird sings", "Robin", {"year": 1999, "tags": ["red"]}),
    Document("b", "a blue fish swims", "Carp", {"year": 2005, "tags": []}),
    Document("c/1", "a red fish swims", None, {"year": 2010, "tags": ["red"]}),
]


def is_problem(response, status, detail=""):
    """Check that a response is this problem, in the format of RFC 9457."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    content = response.json()
    assert content["status"] == status
    assert content["title"] == HTTPStatus(status).phrase
    assert detail in content["detail"]
    return True


def asking(indexes, settings=None):
    """A client of a service in this process, for a block."""
    from fastapi.testclient import TestClient

    from semsearch.service import create_app

    app = create_app(indexes, settings)
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


@contextmanager
def running(indexes, settings=None, **options):
    """A server in a thread, and its port."""
    import uvicorn

    from semsearch.service import create_app

    app = create_app(indexes, settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield server, server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()
