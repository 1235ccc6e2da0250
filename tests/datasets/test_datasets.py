"""Published data sets, as their authors ship them."""

from __future__ import annotations

import pytest

from semsearch.datasets import data_file, read_scifact, read_stsbenchmark
from semsearch.errors import DatasetNotFoundError


def test_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    (tmp_path / "a.txt").touch()
    assert data_file("a.txt") == tmp_path / "a.txt"
    with pytest.raises(DatasetNotFoundError, match="which has no b.txt$"):
        data_file("b.txt")
    monkeypatch.delenv("SEMSEARCH_DATA")
    with pytest.raises(DatasetNotFoundError, match="^a.txt is needed: set SEMSEARCH_DATA"):
        data_file("a.txt")


@pytest.mark.parametrize(("split", "count"), [("train", 5749), ("dev", 1500), ("test", 1379)])
def test_stsbenchmark(data, monkeypatch, split, count):
    """The numbers of pairs are those of its readme."""
    monkeypatch.setenv("SEMSEARCH_DATA", str(data))
    pairs = read_stsbenchmark(split)
    assert len(pairs) == count
    assert all(0 <= pair.gold <= 5 and pair.left and pair.right for pair in pairs)


def test_scifact(data, monkeypatch):
    """5,183 abstracts and 300 claims: Wadden et al. 2020, section 3."""
    monkeypatch.setenv("SEMSEARCH_DATA", str(data))
    found = read_scifact()
    assert (len(found.documents), len(found.queries), len(found.qrels)) == (5183, 300, 300)
    assert all(found.qrels.values())
    assert all(name in found.documents for relevant in found.qrels.values() for name in relevant)
    assert not any(text.endswith(("']", '"]')) for text in found.documents.values())
