"""Hits and comparisons as notebooks show them."""

from __future__ import annotations

import io

import numpy
import pandas
import pytest

from semsearch import Document, Index
from semsearch.explore.compare import compare_neighbours

HOSTILE = "<script>alert('$x$')</script> & \u202etxet\" onload=x"


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "i", ["hashing:64", "hashing:32"]) as index:
        index.add(
            [
                Document("a", "a red fish"),
                Document("b", f"a red bird {HOSTILE}", f"Birds {HOSTILE}"),
                Document("c", "stones"),
            ]
        )
        yield index


def test_hits(index):
    hits = index.search("red bird", k=2)
    html = hits._repr_html_()
    [table] = pandas.read_html(io.StringIO(html))
    assert table["id"].tolist() == [hit.document_id for hit in hits]
    assert table["text"].tolist() == [hit.text for hit in hits]
    assert "<script>" not in html


def test_a_comparison(index):
    class Judge:
        def score(self, query, passages):
            return numpy.arange(len(passages), dtype=float)

    found = compare_neighbours(index.path, f"red {HOSTILE}", k=2, judge=Judge())
    html = found._repr_html_()
    hits, agreements = pandas.read_html(io.StringIO(html))
    assert list(hits.columns[1:]) == ["hashing-64", "hashing-32", "bm25"]
    first = found.hits["hashing-64"][0]
    judged = f"(judge {found.verdicts[first.document_id]:.3f})"
    assert hits["hashing-64"][0].startswith(f"* {first.score:.3f} {first.title} {judged}")
    assert agreements["documents shared"].tolist() == [one.shared for one in found.agreements]
    assert "<script>" not in html
