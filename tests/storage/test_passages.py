"""All passages of an index, with their vectors."""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from semsearch.errors import FilterError
from semsearch.storage.sqlite import reader


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "BLOCK_ROWS", 3)
    with Index.create(tmp_path / "i", ["hashing"]) as index:
        index.add(Document(f"d{n}", f"text number {n}", metadata={"n": n}) for n in range(10))
        index.delete(["d4"])
        yield index


def test_all_passages_in_order(index, hashing):
    found = index.passages()
    assert found.document_ids == [f"d{n}" for n in range(10) if n != 4]
    assert found.texts == [f"text number {n}" for n in range(10) if n != 4]
    assert (found.vectors == hashing.encode_documents(found.texts)).all()
    assert len(set(found.documents.tolist())) == 9


def test_passages_that_match_a_filter(index, hashing):
    found = index.passages(where="n > 2 and n != 5")
    assert found.document_ids == ["d3", "d6", "d7", "d8", "d9"]
    assert (found.vectors == hashing.encode_documents(found.texts)).all()
    assert index.passages(where="n > 99").vectors.shape == (0, hashing.dimension)
    with pytest.raises(FilterError):
        index.passages(where="m = 1")
