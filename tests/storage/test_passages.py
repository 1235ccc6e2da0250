"""All passages of an index, with their vectors."""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from semsearch.errors import FilterError
from semsearch.storage.sqlite import reader


@pytest.mark.parametrize("where", [None, "n > 2 and n != 5"])
def test_passages_in_order(tmp_path, monkeypatch, hashing, where):
    monkeypatch.setattr(reader, "BLOCK_ROWS", 3)
    with Index.create(tmp_path / "i", ["hashing"]) as index:
        index.add(Document(f"d{n}", f"text number {n}", metadata={"n": n}) for n in range(10))
        index.delete(["d4"])
        found = index.passages(where=where)
        assert index.passages(where="n > 99").vectors.shape == (0, hashing.dimension)
        with pytest.raises(FilterError):
            index.passages(where="m = 1")
    numbers = [n for n in range(10) if n != 4 and (not where or (n > 2 and n != 5))]
    assert found.document_ids == [f"d{n}" for n in numbers]
    assert found.texts == [f"text number {n}" for n in numbers]
    assert found.documents.tolist() == found.passage_ids.tolist() == [n + 1 for n in numbers]
    assert (found.vectors == hashing.encode_documents(found.texts)).all()
