"""Documents for tests on milvus-lite."""

from __future__ import annotations

from semsearch import Document

DOCUMENTS = [
    Document("a", "a red bird sings", "Robin", {"year": 1999, "tags": ["red"]}),
    Document("b", "a blue fish swims", "Carp", {"year": 2005, "tags": []}),
    Document("c", "a red fish swims", None, {"year": 2010, "tags": ["red"]}),
]
