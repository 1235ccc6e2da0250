"""Batches of a corpus."""

from __future__ import annotations

from semsearch import Document
from semsearch.index.plan import next_documents


def test_batches_are_limited_by_documents_or_characters():
    texts = ["abc", "de", "f", "ghijklmnop", "q"]
    corpus = iter([Document(None, text) for text in texts])
    found = []
    for count, characters in [(2, 100), (5, 4), (5, 4), (5, 4)]:
        found.append([document.text for document in next_documents(corpus, count, characters)])
    assert found == [["abc", "de"], ["f", "ghijklmnop"], ["q"], []]
