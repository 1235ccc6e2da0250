"""Hits and comparisons as notebooks show them."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from semsearch import Document, Index
from semsearch.explore.compare import compare_neighbours
from semsearch.texts import CELL_MAX_CHARACTERS, table_html

HOSTILE = "<script>alert('$x$')</script> & \u202etxet\" onload=\"x"


class Tables(HTMLParser):
    """The tables of a page as texts, and the names of its elements and attributes."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes, self.tables, self._texts = set(), set(), [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attributes}
        if tag == "table":
            self.tables.append([])
        if tag in ("tr", "caption"):
            self.tables[-1].append([])
        if tag in ("td", "th", "caption"):
            self.tables[-1][-1].append("")

    def handle_data(self, data):
        self.tables[-1][-1][-1] += data


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
    hits = index.search(f"red bird {HOSTILE}", k=2)
    page = Tables(hits._repr_html_())
    [[caption, header, *rows]] = page.tables
    assert caption == [hits.query]
    assert header == ["", "score", "document", "passage"]
    assert rows == [
        [str(hit.rank), f"{hit.score:.3f}", hit.title or hit.document_id, hit.text] for hit in hits
    ]
    assert page.elements == {"table", "caption", "thead", "tbody", "tr", "th", "td", "bdi"}
    assert page.attributes == {"class", "style"}


def test_long_texts_are_cut():
    page = table_html("", ["a"], [["x" * (CELL_MAX_CHARACTERS + 1)]])
    assert f"{'x' * CELL_MAX_CHARACTERS}…<" in page


def test_a_comparison(index):
    class Judge:
        def score(self, query, passages):
            import numpy

            return numpy.arange(len(passages), dtype=float)

    found = compare_neighbours(index.path, f"red {HOSTILE}", k=2, judge=Judge())
    page = Tables(found._repr_html_())
    [[caption, header, *rows], [_, _, *agreements]] = page.tables
    assert caption == [f"red {HOSTILE}"]
    assert header == ["", "hashing-64", "hashing-32", "bm25"]
    assert [row[0] for row in rows] == ["1", "2"]
    first = found.hits["hashing-64"][0]
    assert rows[0][1] == (
        f"* {first.score:.3f} {first.title} (judge {found.verdicts['b']:.3f}): {first.text}"
    )
    assert [[left, right, int(count)] for left, right, count, _ in agreements] == [
        list(one[:3]) for one in found.agreements
    ]
    assert page.elements == {"table", "caption", "thead", "tbody", "tr", "th", "td", "bdi"}
