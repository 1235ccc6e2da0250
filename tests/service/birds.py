"""A small index that tests of the service ask, and a check of its error responses."""

from __future__ import annotations

from http import HTTPStatus

from semsearch import Document

BASE = "http://localhost"
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
